// Shared code of the rules of reductions: the folded dimensions, and the resulting type.
#pragma once

#include "ops/op_def.h"

namespace cresset::ops {

// The dimensions of argument `dim`, wrapped, ascending. None means all; a list is also accepted, and an empty list
// means all unless `empty_means_all` is false. Fails on a dimension out of range or named twice.
Result<std::vector<int64_t>> reduced_dims(ShapeContext& shapes, const graph::Arg& dim, size_t rank,
                                          bool empty_means_all = true);
// The same for arguments accepted by a shape rule. A tensor without dimensions has no dimension to fold.
std::vector<int64_t> reduced_dims(const graph::Graph& graph, const graph::Arg& dim, size_t rank,
                                  bool empty_means_all = true);

// `self` with `dims` folded: row-major, like every ATen reduction's result.
graph::TensorType reduced_type(ShapeContext& shapes, const graph::TensorType& self, const std::vector<int64_t>& dims,
                               bool keepdim, DType dtype);

// Requires at least one element in each of `dims`; guards.
bool require_elements(ShapeContext& shapes, const graph::TensorType& self, const std::vector<int64_t>& dims);

// The product of the sizes of `dims`.
sym::ExprId element_count(sym::ExprPool& pool, const graph::TensorType& self, const std::vector<int64_t>& dims);

}  // namespace cresset::ops
