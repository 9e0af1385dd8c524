// The memory order of symbolic strides. ATen compares numbers; this code decides without guards wherever the answer is
// the same for every shape.
#pragma once

#include <vector>

#include "ops/context.h"

namespace cresset::ops {

// Returns the dimensions from innermost to outermost, in the order in which TensorIterator visits them for these
// operands. `sizes` is the broadcast shape; nullptr stands for a number operand.
std::vector<size_t> stride_order(ShapeContext& shapes, const std::vector<sym::ExprId>& sizes,
                                 const std::vector<const graph::TensorType*>& operands);

// Strides of a dense tensor with this order of dimensions (innermost first). ATen has two conventions for tensors
// without elements, selected by `empty_counts_as_one`.
std::vector<sym::ExprId> strides_in_order(sym::ExprPool& pool, const std::vector<sym::ExprId>& sizes,
                                          const std::vector<size_t>& order, bool empty_counts_as_one = true);

// Proved, without guards beyond the guards of the order.
bool is_non_overlapping_and_dense(ShapeContext& shapes, const graph::TensorType& type);
bool is_channels_last_contiguous(sym::ShapeEnv& env, const graph::TensorType& type);

}  // namespace cresset::ops
