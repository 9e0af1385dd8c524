#include "bridge/symbolic_parts.h"

#include <ATen/ops/clone.h>
#include <ATen/ops/split_ops.h>
#include <ATen/ops/split_with_sizes_ops.h>
#include <ATen/ops/unbind_ops.h>

namespace cresset::bridge {
namespace {

// As ATen does it: then the views say how many there are, with a guard.
std::vector<at::Tensor> copied(std::vector<at::Tensor> parts) {
  for (at::Tensor& part : parts) part = part.clone(at::MemoryFormat::Contiguous);
  return parts;
}

std::vector<at::Tensor> unbind_copy(const at::Tensor& self, int64_t dim) {
  return copied(at::_ops::unbind_int::call(self, dim));
}
std::vector<at::Tensor> split_copy(const at::Tensor& self, c10::SymInt size, int64_t dim) {
  return copied(at::_ops::split_Tensor::call(self, std::move(size), dim));
}
std::vector<at::Tensor> split_with_sizes_copy(const at::Tensor& self, c10::SymIntArrayRef sizes, int64_t dim) {
  return copied(at::_ops::split_with_sizes::call(self, sizes, dim));
}

}  // namespace

void add_parts(torch::Library& library) {
  library.impl("unbind_copy.int", TORCH_FN(unbind_copy));
  library.impl("split_copy.Tensor", TORCH_FN(split_copy));
  library.impl("split_with_sizes_copy", TORCH_FN(split_with_sizes_copy));
}

}  // namespace cresset::bridge
