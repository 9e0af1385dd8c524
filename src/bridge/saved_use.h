// What a pass through a part of a backward program reads of what was saved. Eager looks at the versions of what it
// reads: a weight that an optimizer has written meanwhile is no error where only other results are differentiated.
#pragma once

#include <vector>

#include "bridge/captured.h"

namespace cresset::bridge {

class SavedUse {
 public:
  // Nothing is known: all is read.
  SavedUse() = default;
  // saved: values of `program`. Backward programs are linear in the tangents: a value of which no tangent is a part is
  // read for the tangents of the other operands; what else belongs to another tangent adds nothing to it.
  SavedUse(const graph::Graph& program, const Backward& backward, const std::vector<graph::ValueId>& saved);

  bool is_known() const { return !rows_.empty(); }
  // By position in `saved`: what leads from the root's tangent to gradients of the group.
  const std::vector<bool>& of(size_t root, size_t group) const { return rows_[root * groups_ + group]; }

 private:
  size_t groups_ = 0;
  std::vector<std::vector<bool>> rows_;
};

}  // namespace cresset::bridge
