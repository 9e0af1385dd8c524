// The saved values which a pass through a part of a backward program reads. Eager mode checks only versions of saved
// tensors which it reads: a weight written by an optimizer is no error where only other results are differentiated.
#pragma once

#include <vector>

#include "bridge/capture/captured.h"

namespace cresset::bridge {

class SavedUse {
 public:
  // No knowledge: all saved values count as read.
  SavedUse() = default;
  // saved: values of `program`. Backward programs are linear in the tangents. A value without a tangent in it is read
  // for the tangents of the remaining operands; values which belong to a different tangent add nothing.
  SavedUse(const graph::Graph& program, const Backward& backward, const std::vector<graph::ValueId>& saved);

  bool is_known() const { return !rows_.empty(); }
  // By position in `saved`: the values read between the root's tangent and the group's gradients.
  const std::vector<bool>& of(size_t root, size_t group) const { return rows_[root * groups_ + group]; }

 private:
  size_t groups_ = 0;
  std::vector<std::vector<bool>> rows_;
};

}  // namespace cresset::bridge
