// The bounds of a slice, shared by slice and slice_scatter.
#pragma once

#include "ops/context.h"

namespace cresset::ops {

struct SliceBounds {
  sym::ExprId start, length, step;
};

// From arguments start_arg (start), +1 (end), +2 (step), each as in aten::slice; guards what clamping decides.
Result<SliceBounds> slice_bounds(ShapeContext& shapes, const OpArgs& args, sym::ExprId size, size_t start_arg);

// The start that slice_bounds settled on, from what is known by now.
sym::ExprId slice_start(sym::ShapeEnv& env, const OpArgs& args, sym::ExprId size, size_t start_arg);

// A bound of a slice of which only data can tell whether it is negative, and so counts from the end.
sym::ExprId from_either_end(sym::ExprPool& pool, sym::ExprId bound, sym::ExprId size);

// An index in [-size, size), counted from the front.
sym::ExprId index_from_front(sym::ShapeEnv& env, sym::ExprId index, sym::ExprId size);

// A dim argument that the shape rule has checked, counted from the front.
int64_t known_dim(const OpArgs& args, size_t arg, size_t rank);

// The same for a dim that is known already.
inline int64_t known_dim_value(int64_t dim, size_t rank) { return dim < 0 ? dim + int64_t(rank) : dim; }

}  // namespace cresset::ops
