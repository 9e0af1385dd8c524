#include "bridge/aten/strided_by_positions.h"

#include <ATen/ops/arange.h>

#include <algorithm>
#include <numeric>

namespace cresset::bridge {

bool is_strided_write(graph::OpId op) {
  static const graph::OpId write = graph::op_id("aten::as_strided_scatter");
  return op == write;
}

// Dimensions of more than one element in the order of memory, the innermost one last, then the others; nullopt:
// elements are not dense.
static std::optional<std::vector<int64_t>> order_of_memory(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  std::vector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto size = [&](int64_t d) { return sizes[static_cast<size_t>(d)]; };
  const auto stride = [&](int64_t d) { return strides[static_cast<size_t>(d)]; };
  const auto single = std::stable_partition(order.begin(), order.end(), [&](int64_t d) { return size(d) != 1; });
  std::stable_sort(order.begin(), single, [&](int64_t a, int64_t b) { return stride(a) > stride(b); });
  int64_t below = 1;
  for (auto d = std::make_reverse_iterator(single); d != order.rend(); ++d) {
    if (stride(*d) != below) return std::nullopt;
    below *= size(*d);
  }
  return order;
}

at::Tensor strided_write(const at::Tensor& self, const at::Tensor& source, c10::IntArrayRef sizes,
                         c10::IntArrayRef strides, int64_t offset, c10::IntArrayRef own_strides) {
  const std::optional<std::vector<int64_t>> order = order_of_memory(self.sizes(), own_strides);
  if (!order) return {};
  std::vector<int64_t> in_order, back(order->size());
  for (size_t i = 0; i < order->size(); ++i) {
    in_order.push_back(self.size((*order)[i]));
    back[static_cast<size_t>((*order)[i])] = static_cast<int64_t>(i);
  }
  const at::Tensor positions =
      at::arange(self.numel(), at::dtype(at::kLong).device(self.device())).as_strided(sizes, strides, offset);
  const at::Tensor elements = self.permute(*order).reshape({-1});
  return elements.index_put({positions.reshape({-1})}, source.reshape({-1})).reshape(in_order).permute(back);
}

}  // namespace cresset::bridge
