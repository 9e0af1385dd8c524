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
// Stride order only (what is_strides_like means in ATen). The answer is that of general sizes.
bool is_channels_last_like(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, size_t rank);
// Whether the program may take the tensor for contiguous. Strides that are no products of sizes (a slice's) decide it,
// with a guard; what only sizes of 0 and 1 could change has the answer of general sizes.
bool decide_contiguous(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides,
                       const std::function<sym::Reason()>& why);
// Likewise for the channel dimension innermost.
bool decide_channels_last(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, size_t rank,
                          const std::function<sym::Reason()>& why);
// Whether memory lies in the format, guarded dimension by dimension: those of one element are passed over.
bool decide_format(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides, c10::MemoryFormat format,
                   const std::function<sym::Reason()>& why);
bool is_non_overlapping_and_dense(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides);
// Whether it is plain that no two elements share their memory: each stride steps over all that smaller strides reach.
bool decide_non_overlapping(sym::ShapeEnv& env, const Exprs& sizes, const Exprs& strides,
                            const std::function<sym::Reason()>& why);
sym::ExprId numel(sym::ShapeEnv& env, const Exprs& sizes);

}  // namespace cresset::bridge::geometry
