// Images copied between channels first and channels last: each element once, whatever is left beside whole tiles.
#include "bridge/device/cpu/layout_copy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cresset::bridge {
namespace {

constexpr at::MemoryFormat kFirst = at::MemoryFormat::Contiguous, kLast = at::MemoryFormat::ChannelsLast;

at::Tensor numbered(at::IntArrayRef sizes, at::ScalarType dtype) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  return at::arange(count, at::kInt).view(sizes).to(dtype);
}

void expect_converted(const at::Tensor& image, at::MemoryFormat last) {
  for (const at::MemoryFormat order : {kFirst, last}) {
    const at::Tensor from = image.contiguous(order == kFirst ? last : kFirst);
    const at::Tensor to = at::empty(image.sizes(), image.options().memory_format(order));
    EXPECT_TRUE(convert_layout(from, to)) << image.sizes();
    EXPECT_TRUE(at::equal(to, image)) << image.sizes();
    const at::Tensor made = turned(from, order);
    EXPECT_TRUE(made.is_contiguous(order) && at::equal(made, image)) << image.sizes();
  }
}

TEST(LayoutConversion, CoverEachElement) {
  for (const at::ScalarType dtype : {at::kFloat, at::kInt, at::kBFloat16, at::kHalf})
    for (const int64_t channels : {1, 3, 16, 33, 48})
      for (const int64_t side : {1, 4, 7, 40}) expect_converted(numbered({2, channels, side, side + 1}, dtype), kLast);
  expect_converted(numbered({2, 17, 3, 4, 5}, at::kFloat), at::MemoryFormat::ChannelsLast3d);
  expect_converted(at::empty({0, 3, 4, 5}), kLast);
}

TEST(LayoutConversion, LeaveOtherCopiesAlone) {
  const at::Tensor image = at::randn({2, 3, 4, 5}), last = at::zeros_like(image).contiguous(kLast);
  EXPECT_FALSE(convert_layout(image, last.to(at::kDouble)));
  EXPECT_FALSE(convert_layout(image.to(at::kDouble), last.to(at::kDouble)));
  EXPECT_FALSE(convert_layout(image.transpose(2, 3), last.transpose(2, 3)));
  EXPECT_FALSE(convert_layout(image.narrow(0, 0, 1), last));
  EXPECT_FALSE(convert_layout(at::randn({3, 4}), at::zeros({3, 4})));
  EXPECT_TRUE(at::equal(last, at::zeros_like(image)));
}

}  // namespace
}  // namespace cresset::bridge
