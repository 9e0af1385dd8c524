// Images copied between channels first and channels last: each element once, whatever is left beside whole tiles.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bridge/device/cpu/layout_copy.h"

namespace cresset::bridge {
namespace {

constexpr at::MemoryFormat kFirst = at::MemoryFormat::Contiguous, kLast = at::MemoryFormat::ChannelsLast;

at::Tensor numbered(at::IntArrayRef sizes, at::ScalarType dtype) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  return at::arange(count, at::kInt).view(sizes).to(dtype);
}

void expect_turned(const at::Tensor& image, at::MemoryFormat last) {
  for (const at::MemoryFormat order : {kFirst, last}) {
    const at::Tensor from = image.contiguous(order == kFirst ? last : kFirst);
    const at::Tensor to = at::empty(image.sizes(), image.options().memory_format(order));
    EXPECT_TRUE(turn_channels(from, to)) << image.sizes();
    EXPECT_TRUE(at::equal(to, image)) << image.sizes();
    const at::Tensor made = turned(from, order);
    EXPECT_TRUE(made.is_contiguous(order) && at::equal(made, image)) << image.sizes();
  }
}

TEST(ChannelTurns, CoverEachElement) {
  for (const at::ScalarType dtype : {at::kFloat, at::kInt, at::kBFloat16, at::kHalf})
    for (const int64_t channels : {1, 3, 16, 33, 48})
      for (const int64_t side : {1, 4, 7, 40}) expect_turned(numbered({2, channels, side, side + 1}, dtype), kLast);
  expect_turned(numbered({2, 17, 3, 4, 5}, at::kFloat), at::MemoryFormat::ChannelsLast3d);
  expect_turned(at::empty({0, 3, 4, 5}), kLast);
}

TEST(ChannelTurns, LeaveOtherCopiesAlone) {
  const at::Tensor image = at::randn({2, 3, 4, 5}), last = at::zeros_like(image).contiguous(kLast);
  EXPECT_FALSE(turn_channels(image, last.to(at::kDouble)));
  EXPECT_FALSE(turn_channels(image.to(at::kDouble), last.to(at::kDouble)));
  EXPECT_FALSE(turn_channels(image.transpose(2, 3), last.transpose(2, 3)));
  EXPECT_FALSE(turn_channels(image.narrow(0, 0, 1), last));
  EXPECT_FALSE(turn_channels(at::randn({3, 4}), at::zeros({3, 4})));
  EXPECT_TRUE(at::equal(last, at::zeros_like(image)));
}

}  // namespace
}  // namespace cresset::bridge
