// Operators that give a view where they can and a copy where they must (reshape, contiguous, to). Which one it is may
// hang on sizes being 0 or 1. The answer of general sizes, which is taken, makes a copy where eager gives a view at
// batch 1; that matters only to who sees the memory: Capture keeps what was assumed, and guards it when a write or a
// result shows it.
#pragma once

#include <utility>
#include <vector>

#include "bridge/captured.h"

namespace cresset::bridge {

// While one lives, such an operator runs.
class ViewOrCopy {
 public:
  using Answers = std::vector<std::pair<sym::ExprId, bool>>;

  // format: in which its argument is given as it is.
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
  // A condition was given the answer of general sizes, without a guard.
  static void answered(sym::ExprId condition, bool answer) {
    if (current() != nullptr) current()->answers_.emplace_back(condition, answer);
  }
  const Answers& answers() const { return answers_; }
  ViewChoice choice(graph::ValueId source) const { return {source, false, format_, as_suggested_}; }

 private:
  ViewOrCopy* outer_;
  Answers answers_;
  c10::MemoryFormat format_;
  bool as_suggested_;
};

struct PossibleView {
  uint32_t copy, source;  // storages
  graph::TensorType source_type;
  sym::ExprId source_offset;
  ViewChoice choice;
  bool of_base;                 // the source is no view
  bool conjugated, negated;     // as the source is read
  ViewOrCopy::Answers answers;  // with these it is a copy
};

// A result as eager gives it: a view of that storage.
struct AsView {
  uint32_t source;
  std::vector<sym::ExprId> strides;
  sym::ExprId offset;
  bool is_source;  // the very tensor
  bool conjugated, negated;
};

}  // namespace cresset::bridge
