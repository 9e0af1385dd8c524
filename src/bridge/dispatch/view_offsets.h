// Storage offsets of views, computed from their operators. Decisions on indices are guarded.
#pragma once

#include <vector>

#include "bridge/capture/capture.h"

namespace cresset::bridge {

class ViewOffsets {
 public:
  explicit ViewOffsets(Capture& capture) : capture_(capture) {}

  // Offset of a view with a single result. A view at its parent's offset needs no case.
  sym::ExprId of(const TraceTensor& parent, graph::OpId op, const std::vector<graph::Arg>& args) const;
  // Converts an offset to elements of the view, whose element size may differ from the parent's.
  sym::ExprId rescaled(sym::ExprId offset, DType from, DType to) const;
  size_t dim(const TraceTensor& parent, const graph::Arg& arg) const;

 private:
  bool negative(sym::ExprId e) const;
  sym::ExprId wrapped_index(const TraceTensor& parent, size_t d, const graph::Arg& arg) const;
  sym::ExprId slice_offset(const TraceTensor& parent, const std::vector<graph::Arg>& args) const;
  sym::ExprId diagonal_offset(const TraceTensor& parent, const std::vector<graph::Arg>& args) const;

  Capture& capture_;
};

// Whether the tensor has each element of its memory once, without gaps.
bool is_dense(sym::ShapeEnv& env, const TraceTensor& tensor);

}  // namespace cresset::bridge
