// A library's product that needs memory for a while where the plan has none to spare, in two parts: while the first
// rows are computed the last rows of the result are still free, and while the last ones are, so are the first rows of
// an argument that dies in this call.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include "bridge/executor_context.h"

namespace cresset::bridge {

class RowParts {
 public:
  static constexpr int64_t kMatrixRows = 16;  // what products' kernels work on at a time

  // After a call as a whole: what it asked for and the plan had not.
  void note(const PlaceResults& placed) { missed_ = std::max(missed_, placed.missed()); }
  bool any_missed() const { return missed_ != 0; }

  // Whether the library writes what it is given, or allocates its result: then an allocation of a part's bytes is the
  // part itself.
  enum class Result : uint8_t { Given, Allocated };

  // `a` and `out`: of as many rows (images of a batch), dense, `a` in the memory of `argument`, which dies in this
  // step; `out` in planned memory. `unit`: of how many rows parts are multiples. Computes by compute(rows of a, rows of
  // out). False: there is no room either way, nothing was done.
  bool run(const BoundContext& context, runtime::TensorId argument, const at::Tensor& a, const at::Tensor& out,
           Result result, int64_t unit, std::string_view op,
           c10::function_ref<void(const at::Tensor&, const at::Tensor&)> compute) const;

 private:
  int64_t first_rows(const at::Tensor& a, const at::Tensor& out, int64_t unit) const;

  size_t missed_ = 0;
};

}  // namespace cresset::bridge
