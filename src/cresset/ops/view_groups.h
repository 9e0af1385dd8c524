// Arithmetic on lists of sizes: the correspondence of old and new dimensions in a reshape.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/context.h"
#include "ops/op_def.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {

// Returns a / b as a polynomial when the division leaves no remainder; assumes that b is non-zero.
std::optional<sym::ExprId> divide_exactly(sym::ExprPool& pool, sym::ExprId a, sym::ExprId b);

// True for a dimension proved to have size 1.
bool is_one(sym::ShapeEnv& env, sym::ExprId size);
// Whether a dimension of an operand is broadcast, and read at 0 instead of the index. A computed size of 1 was guarded
// to be 1 by the shape rule. More facts learned since then may make the proof fail. In this case the condition is
// guarded again, unless the index provably lies inside.
bool is_broadcast(sym::ShapeEnv& env, sym::ExprId size, sym::ExprId index);

// Dimensions old_dims of one shape contain the same elements as new_dims of another shape: the finest pairs of this
// kind, in order. Dimensions of size 1 belong to no group.
struct DimGroup {
  std::vector<size_t> old_dims, new_dims;  // ascending, never empty
};

// Splits two shapes of equal element counts into groups. A boundary exists where `equal` accepts the products of the
// sizes to the right; the outermost boundary is assumed. Sizes known to be 1 belong to no group, and neither do sizes
// for which `equal_to_one` returns true.
using SizeEquality = std::function<bool(sym::ExprId, sym::ExprId)>;
std::vector<DimGroup> match_dims(sym::ShapeEnv& env, const Sizes& old_sizes, const Sizes& new_sizes,
                                 const SizeEquality& equal, const SizeEquality& equal_to_one = nullptr);

// The old index of the element `index` in a row-major reinterpretation from old_sizes to new_sizes.
Index reshape_index(sym::ShapeEnv& env, const Sizes& old_sizes, const Sizes& new_sizes, const Index& index);

// The index of the element at row-major position `position` of a tensor of these sizes.
Index delinearize(sym::ShapeEnv& env, sym::ExprId position, const Sizes& sizes);

// Resolves the sizes given to view() and reshape(): infers a single -1 and checks the element count.
Result<Sizes> infer_sizes(ShapeContext& shapes, const Sizes& requested, const Sizes& old_sizes);

// The strides with which `sizes` describe the elements of `type` without a copy; InvalidArguments when there are none.
Result<Sizes> view_strides(ShapeContext& shapes, const graph::TensorType& type, const Sizes& sizes);

// The same where all numbers are known: those of ATen, dimensions of one element included. nullopt: no strides do, or
// some number is not known.
std::optional<Sizes> known_view_strides(sym::ExprPool& pool, const graph::TensorType& type, const Sizes& sizes);

}  // namespace cresset::ops
