// Arithmetic on lists of sizes: what reshaping needs to know about the correspondence of old and new dimensions.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/context.h"
#include "ops/op_def.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {

// a / b as a polynomial when the division leaves no remainder; b is taken to be non-zero.
std::optional<sym::ExprId> divide_exactly(sym::ExprPool& pool, sym::ExprId a, sym::ExprId b);

// True for a dimension that is proved to have size 1.
bool is_one(sym::ShapeEnv& env, sym::ExprId size);
// Whether a dimension of an operand, which may be broadcast, is read at 0 instead of the index. A size that is
// computed, and is 1, was told to be 1 when the shape rule met it; where more is known of its parts since then, that
// may no longer be proved. It is asked again, unless the index is known to lie inside.
bool is_broadcast(sym::ShapeEnv& env, sym::ExprId size, sym::ExprId index);

// Dimensions old_dims of one shape hold the same elements as new_dims of another: the finest such pairs, in order.
// Dimensions of size 1 belong to no group.
struct DimGroup {
  std::vector<size_t> old_dims, new_dims;  // ascending, never empty
};

// Splits two shapes of equal element counts into groups. Boundaries lie where `equal` says that the products of the
// sizes to the right agree; the outermost boundary is taken for granted. Sizes known to be 1 belong to no group, nor do
// those that `equal_to_one`, where given, finds equal to 1.
using SizeEquality = std::function<bool(sym::ExprId, sym::ExprId)>;
std::vector<DimGroup> match_dims(sym::ShapeEnv& env, const Sizes& old_sizes, const Sizes& new_sizes,
                                 const SizeEquality& equal, const SizeEquality& equal_to_one = nullptr);

// Where the element `index` of a row-major reinterpretation from old_sizes to new_sizes lies in the old shape.
Index reshape_index(sym::ShapeEnv& env, const Sizes& old_sizes, const Sizes& new_sizes, const Index& index);

// The index of the element at row-major position `position` of a tensor of these sizes.
Index delinearize(sym::ShapeEnv& env, sym::ExprId position, const Sizes& sizes);

// The sizes that view() and reshape() are given, a single -1 worked out and the element count checked.
Result<Sizes> infer_sizes(ShapeContext& shapes, const Sizes& requested, const Sizes& old_sizes);

// The strides that let `sizes` describe the elements of `type` without moving them; InvalidArguments when none do.
Result<Sizes> view_strides(ShapeContext& shapes, const graph::TensorType& type, const Sizes& sizes);

// The same where all numbers are known: those of ATen, dimensions of one element included. nullopt: no strides do, or
// some number is not known.
std::optional<Sizes> known_view_strides(sym::ExprPool& pool, const graph::TensorType& type, const Sizes& sizes);

}  // namespace cresset::ops
