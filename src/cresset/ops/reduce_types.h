// What the shape and reduction rules of reductions share: which dimensions are folded, and the type that is left.
#pragma once

#include "ops/op_def.h"

namespace cresset::ops {

// The dimensions that argument `dim` names (None: all; one; a list, where empty means all unless told otherwise),
// wrapped, ascending. Fails on a dimension out of range or named twice.
Result<std::vector<int64_t>> reduced_dims(ShapeContext& shapes, const graph::Arg& dim, size_t rank,
                                          bool empty_means_all = true);
// The same for arguments that a shape rule accepted. A tensor without dimensions has none to fold.
std::vector<int64_t> reduced_dims(const graph::Graph& graph, const graph::Arg& dim, size_t rank,
                                  bool empty_means_all = true);

// `self` with `dims` folded: row-major, as every ATen reduction's result.
graph::TensorType reduced_type(ShapeContext& shapes, const graph::TensorType& self, const std::vector<int64_t>& dims,
                               bool keepdim, DType dtype);

// Demands at least one element in each of `dims`; guards.
bool require_elements(ShapeContext& shapes, const graph::TensorType& self, const std::vector<int64_t>& dims);

// The product of the sizes of `dims`.
sym::ExprId element_count(sym::ExprPool& pool, const graph::TensorType& self, const std::vector<int64_t>& dims);

}  // namespace cresset::ops
