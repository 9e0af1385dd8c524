#include "bridge/decompositions/vmap_rules.h"

#include <ATen/core/Tensor.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace cresset::bridge {
namespace {

using SymInts = std::vector<c10::SymInt>;

SymInts behind(c10::SymInt first, c10::SymIntArrayRef others) {
  SymInts out{std::move(first)};
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

int64_t current_level() { return at::functorch::maybeCurrentDynamicLayer()->layerId(); }

// Both are used by autograd's engine after a write to a part of a tensor.
at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                      std::optional<c10::SymInt> offset) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::FuncTorchBatched);
  const int64_t level = current_level();
  const auto [value, batch] = at::functorch::unwrapTensorAtLevel(self, level);
  if (!batch) return value.as_strided_symint(sizes, strides, std::move(offset));
  TORCH_CHECK(sizes.size() == strides.size(), "Tensor.as_strided(size, stride, ...): size and stride must have the ",
              "same length! Got size ", sizes, " and stride ", strides);
  return at::functorch::makeBatched(
      value.as_strided_symint(behind(value.sym_size(*batch), sizes), behind(value.sym_stride(*batch), strides),
                              std::move(offset)),
      0, level);
}

at::Tensor new_empty_strided(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                             std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                             std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::FuncTorchBatched);
  const int64_t level = current_level();
  const auto [value, batch] = at::functorch::unwrapTensorAtLevel(self, level);
  if (!batch) return value.new_empty_strided_symint(sizes, strides, dtype, layout, device, pin_memory);
  c10::SymInt one = 1;  // memory of a single element of the batch
  for (size_t i = 0; i < sizes.size(); ++i) one = one + (sizes[i] - 1) * strides[i];
  return at::functorch::makeBatched(
      value.new_empty_strided_symint(behind(value.sym_size(*batch), sizes), behind(one, strides), dtype, layout, device,
                                     pin_memory),
      0, level);
}

struct Nobody final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

SymbolicBatching::SymbolicBatching()
    : library_(torch::Library::IMPL, "aten", c10::DispatchKey::FuncTorchBatched, __FILE__, __LINE__) {
  Nobody nobody;
  const c10::WarningUtils::WarningHandlerGuard unheard(&nobody);  // hides the warning about a replaced kernel
  library_.impl("as_strided", TORCH_FN(as_strided));
  library_.impl("new_empty_strided", TORCH_FN(new_empty_strided));
}

}  // namespace cresset::bridge
