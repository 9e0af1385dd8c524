// Copies between matrices whose rows lie at other distances, by a generated kernel: ATen's copy works out each
// element's place by divisions.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>

#include "bridge/executor/executor_context.h"
#include "runtime/compiled_kernel.h"

namespace cresset::bridge {

// The copies of a call. A kernel is bound to the sizes of each when they first occur.
class RowCopies {
 public:
  // Copies elements of `from` to `to`: GPU matrices of one dtype and size whose rows have stride 1. Other matrices are
  // copied by ATen.
  void copy(BoundContext& context, const at::Tensor& from, const at::Tensor& to);

 private:
  struct Bound {
    std::vector<std::byte> block;
    runtime::ParamBlock params;
    std::unique_ptr<runtime::BoundKernel> kernel;  // nullptr: left to ATen
  };
  Bound& bound(const at::Tensor& from, const at::Tensor& to);

  std::map<std::vector<int64_t>, Bound> bound_;  // by sizes and distances
};

}  // namespace cresset::bridge
