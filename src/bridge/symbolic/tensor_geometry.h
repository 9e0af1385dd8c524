// Questions about sizes and strides, answered by proof: "no" means "not proved", and only decide_* add guards. A
// dimension proved to be 1 has no meaningful stride.
#pragma once

#include <c10/core/MemoryFormat.h>

#include <functional>
#include <vector>

#include "sym/shape_env.h"

namespace cresset::bridge::geometry {

using Exprs = std::vector<sym::ExprId>;

bool is_contiguous(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides);
// Dense with the channel dimension innermost; rank 4 or 5.
bool is_channels_last(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, size_t rank);
// Stride order only (is_strides_like in ATen). The answer is for general sizes.
bool is_channels_last_like(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, size_t rank);
// Whether the program may treat the tensor as contiguous. Strides which are no products of sizes (of a slice) decide
// with a guard. A difference only at sizes of 0 and 1 gets the answer of general sizes.
bool decide_contiguous(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides,
                       const std::function<sym::Reason()>& why);
// The same for channels last.
bool decide_channels_last(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, size_t rank,
                          const std::function<sym::Reason()>& why);
// Whether the memory has the format, guarded by dimension; dimensions of one element are skipped.
bool decide_format(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, c10::MemoryFormat format,
                   const std::function<sym::Reason()>& why);
bool is_non_overlapping_and_dense(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides);
// Whether distinct elements evidently have distinct memory: each stride exceeds the reach of all smaller strides.
bool decide_non_overlapping(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides,
                            const std::function<sym::Reason()>& why);
sym::ExprId numel(sym::ShapeEnv& env, const Exprs& sizes);

}  // namespace cresset::bridge::geometry
