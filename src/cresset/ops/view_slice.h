// The bounds of a slice, shared by slice and slice_scatter.
#pragma once

#include "ops/context.h"

namespace cresset::ops {

struct SliceBounds {
  sym::ExprId start, length, step;
};

// Reads arguments start_arg (start), +1 (end), +2 (step), each as in aten::slice, and guards the decisions of clamping.
Result<SliceBounds> slice_bounds(ShapeContext& shapes, const OpArgs& args, sym::ExprId size, size_t start_arg);

// Recomputes the start chosen by slice_bounds, from the present facts.
sym::ExprId slice_start(sym::ShapeEnv& env, const OpArgs& args, sym::ExprId size, size_t start_arg);

// A data-dependent bound of a slice, which counts from the end if it is negative.
sym::ExprId from_either_end(sym::ExprPool& pool, sym::ExprId bound, sym::ExprId size);

// An index in [-size, size), counted from the front.
sym::ExprId index_from_front(sym::ShapeEnv& env, sym::ExprId index, sym::ExprId size);

// A dim argument checked by the shape rule, counted from the front.
int64_t known_dim(const OpArgs& args, size_t arg, size_t rank);

// The same for a known dim.
inline int64_t known_dim_value(int64_t dim, size_t rank) { return dim < 0 ? dim + int64_t(rank) : dim; }

}  // namespace cresset::ops
