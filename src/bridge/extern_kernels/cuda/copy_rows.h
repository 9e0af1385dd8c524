// Copies between matrices whose rows lie at other distances, by generated kernels: ATen's copy works out each element's
// place by divisions.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>

#include "bridge/executor/executor_context.h"
#include "bridge/extern_kernels/cuda/written_kernel.h"

namespace cresset::bridge {

// The copies of a call. A kernel is bound to the sizes of each when they first occur.
class RowCopies {
 public:
  // Copies elements of `from` to `to`: GPU matrices of one dtype and size whose rows have stride 1. Other matrices are
  // copied by ATen.
  void copy(BoundContext& context, const at::Tensor& from, const at::Tensor& to);
  // The same for a contiguous `to` with at least the columns of `from`; zeros fill the other columns.
  void copy_padded(BoundContext& context, const at::Tensor& from, const at::Tensor& to);

 private:
  // Rows: a thread an element of a row. Whole: `to` is written as a single row, in whole vectors where the length of a
  // row is odd. Padded: whole, with zeros behind each row.
  enum class Way : uint8_t { Rows, Whole, Padded };
  friend struct CopyKernels;

  using Key = std::pair<Way, std::vector<int64_t>>;  // sizes and distances
  // nullptr: left to ATen.
  BoundWrittenKernel* bound(Way way, const at::Tensor& from, const at::Tensor& to);
  // Whether a kernel copied.
  bool launch(BoundContext& context, Way way, const at::Tensor& from, const at::Tensor& to);

  std::map<Key, std::unique_ptr<BoundWrittenKernel>> bound_;
};

}  // namespace cresset::bridge
