// Row-split matmul: a library's product which needs temporary memory beyond the plan runs in two parts. While the first
// rows are computed, the last rows of the result are still free. While the last rows are computed, the first rows of an
// argument which dies in this call are free.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include "bridge/executor/executor_context.h"

namespace cresset::bridge {

class SplitMatmul {
 public:
  static constexpr int64_t kMatrixRows = 16;  // products' kernels work on so many rows at a time

  // Called after a whole run: records the bytes which the plan lacked.
  void note(const PlaceResults& placed) { missed_ = std::max(missed_, placed.missed()); }
  bool any_missed() const { return missed_ != 0; }

  // Given: the library writes to given memory. Allocated: it allocates its result; an allocation with the size of a
  // part then becomes the part.
  enum class Result : uint8_t { Given, Allocated };

  // `a` and `out` have equally many rows (images of a batch) and are dense. `a` lies in the memory of `argument`, which
  // dies in this step; `out` is planned memory. `unit`: part sizes are multiples of it. Calls compute(rows of a, rows
  // of out). Returns false, without effects, when neither part has room.
  bool run(const BoundContext& context, runtime::TensorId argument, const at::Tensor& a, const at::Tensor& out,
           Result result, int64_t unit, std::string_view op,
           c10::function_ref<void(const at::Tensor&, const at::Tensor&)> compute) const;

 private:
  int64_t first_rows(const at::Tensor& a, const at::Tensor& out, int64_t unit) const;

  size_t missed_ = 0;
};

}  // namespace cresset::bridge
