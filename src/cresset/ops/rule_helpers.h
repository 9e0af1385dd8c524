// Helpers of shape rules.
#pragma once

#include <algorithm>
#include <utility>

#include "ops/context.h"
#include "ops/op_def.h"

namespace cresset::ops {

using Sizes = std::vector<sym::ExprId>;

// `like` with other sizes and strides.
inline graph::TensorType with_shape(const graph::TensorType& like, std::vector<sym::ExprId> sizes,
                                    std::vector<sym::ExprId> strides) {
  return {like.dtype, like.device, std::move(sizes), std::move(strides)};
}

// A row-major tensor of these sizes, with dtype and device of `like`.
inline graph::TensorType contiguous_like(ShapeContext& shapes, const graph::TensorType& like,
                                         std::vector<sym::ExprId> sizes) {
  std::vector<sym::ExprId> strides = shapes.contiguous_strides(sizes);
  return with_shape(like, std::move(sizes), std::move(strides));
}

inline graph::TensorType contiguous_like(ShapeContext& shapes, const graph::TensorType& like,
                                         std::vector<sym::ExprId> sizes, DType dtype) {
  graph::TensorType out = contiguous_like(shapes, like, std::move(sizes));
  out.dtype = dtype;
  return out;
}

template <size_t kArg>
Result<std::vector<graph::TensorType>> contiguous_as_shape(ShapeContext& shapes, const OpArgs& args) {
  const graph::TensorType& like = args.tensor(kArg);
  return std::vector<graph::TensorType>{contiguous_like(shapes, like, like.sizes)};
}

// Whether a tensor created with this memory format may have this rank. Eager mode requires the rank.
inline bool has_rank_of(graph::MemoryFormat format, size_t rank) {
  return (format != graph::MemoryFormat::ChannelsLast || rank == 4) &&
         (format != graph::MemoryFormat::ChannelsLast3d || rank == 5);
}

// The tensor to which eager mode writes when it leaves its argument unchanged: a copy with the same strides and gaps,
// unless elements are repeated.
inline graph::TensorType copy_to_write(ShapeContext& shapes, const graph::TensorType& self) {
  const bool repeats = std::any_of(self.strides.begin(), self.strides.end(),
                                   [&](sym::ExprId stride) { return shapes.pool().is_const(stride, 0); });
  return repeats ? with_shape(self, self.sizes, shapes.like_strides(self)) : self;
}

// Whether a size is -1, which means "inferred" or "kept". For an integer given by the caller, a guard is recorded.
inline bool is_minus_one(ShapeContext& shapes, sym::ExprId size) {
  sym::ExprPool& pool = shapes.pool();
  if (pool.is_const(size)) return pool.const_value(size) == -1;
  if (shapes.env().range(size).lo >= 0 || shapes.env().hint(size) != -1) return false;
  return shapes.decide(pool.eq(size, pool.constant(-1)));
}

// Tests whether an operator returns argument 0 unchanged (OpDef::is_no_op).
inline bool always(const OpArgs&) { return true; }
inline bool second_is_zero(const OpArgs& args) { return is_number(args.graph(), args[1], 0); }
inline bool second_is_one(const OpArgs& args) { return is_number(args.graph(), args[1], 1); }

inline Types one(graph::TensorType type) {
  Types out;
  out.push_back(std::move(type));
  return out;
}

}  // namespace cresset::ops
