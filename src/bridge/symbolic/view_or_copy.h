// Operators which return a view where possible and a copy otherwise (reshape, contiguous, to). The outcome may depend
// on sizes of 0 and 1. Capture answers for general sizes and therefore makes a copy where eager mode returns a view at
// batch 1. The difference shows only in shared memory. Capture records its assumptions and guards them when a write or
// a result exposes the memory.
#pragma once

#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

// The layout of a copied value, where eager mode may return a view of `source` at sizes of 0 and 1.
struct ViewChoice {
  graph::ValueId source;
  bool any_view = false;  // a view whenever strides allow it (reshape); else only if the source has this format,
  c10::MemoryFormat format = c10::MemoryFormat::Contiguous;
  bool as_suggested = false;  // or if the source's strides suggest the format (to)
};

// RAII: alive while an operator of this kind runs.
class ViewOrCopy {
 public:
  using Answers = std::vector<std::pair<sym::ExprId, bool>>;

  // `format`: the memory format in which the operator returns its argument unchanged.
  explicit ViewOrCopy(c10::MemoryFormat format = c10::MemoryFormat::Contiguous, bool as_suggested = false)
      : outer_(current()), format_(format), as_suggested_(as_suggested) {
    current() = this;
  }
  ~ViewOrCopy() { current() = outer_; }
  ViewOrCopy(const ViewOrCopy&) = delete;
  ViewOrCopy& operator=(const ViewOrCopy&) = delete;

  static ViewOrCopy*& current() {
    thread_local ViewOrCopy* innermost = nullptr;
    return innermost;
  }
  // Records a condition which was answered for general sizes, without a guard.
  static void answered(sym::ExprId condition, bool answer) {
    if (current() != nullptr) current()->answers_.emplace_back(condition, answer);
  }
  const Answers& answers() const { return answers_; }
  // Storages of copies which this operator made: a reshape copies first, and then views or copies the copy.
  void note_made(uint32_t storage) { made_.push_back(storage); }
  bool has_made(uint32_t storage) const { return std::find(made_.begin(), made_.end(), storage) != made_.end(); }
  ViewChoice choice(graph::ValueId source) const { return {source, false, format_, as_suggested_}; }

 private:
  ViewOrCopy* outer_;
  Answers answers_;
  std::vector<uint32_t> made_;
  c10::MemoryFormat format_;
  bool as_suggested_;
};

struct PossibleView {
  uint32_t copy, source;  // storages
  graph::TensorType source_type;
  sym::ExprId source_offset;
  ViewChoice choice;
  bool of_base;                 // the source is a base, not a view
  bool conjugated, negated;     // the source's conjugate and negative bits
  ViewOrCopy::Answers answers;  // with these answers the operator makes a copy
};

// A result in eager mode's form: a view of the storage `source`.
struct AsView {
  uint32_t source;
  std::vector<sym::ExprId> strides;
  sym::ExprId offset;
  bool is_source;  // the result is the source tensor itself
  bool conjugated, negated;
  bool of_copy = true;  // false: the tensor is a view in the capture, too
};

}  // namespace cresset::bridge
