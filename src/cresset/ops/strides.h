// The memory order of symbolic strides: what ATen decides by comparing numbers is decided here without guards wherever
// the answer is the same for every shape.
#pragma once

#include <vector>

#include "ops/context.h"

namespace cresset::ops {

// Dimensions from innermost to outermost, in the order TensorIterator visits them for these operands. `sizes` is the
// broadcast shape; nullptr stands for an operand that is a number.
std::vector<size_t> stride_order(ShapeContext& shapes, const std::vector<sym::ExprId>& sizes,
                                 const std::vector<const graph::TensorType*>& operands);

// Strides of a dense tensor whose dimensions lie in this order (innermost first). Of what has no elements ATen has two
// ways to say them.
std::vector<sym::ExprId> strides_in_order(sym::ExprPool& pool, const std::vector<sym::ExprId>& sizes,
                                          const std::vector<size_t>& order, bool empty_counts_as_one = true);

// Proved, without guards beyond those that the order needs.
bool is_non_overlapping_and_dense(ShapeContext& shapes, const graph::TensorType& type);
bool is_channels_last_contiguous(sym::ShapeEnv& env, const graph::TensorType& type);

}  // namespace cresset::ops
