// Operators that give a view where they can and a copy where they must (reshape, contiguous). Which one it is may hang
// on sizes being 0 or 1. The answer of general sizes, which is taken, makes a copy where eager gives a view at batch 1;
// that matters only to who sees the memory: Capture keeps what was assumed, and guards it when a write or a result
// shows it.
#pragma once

#include <utility>
#include <vector>

#include "sym/expr.h"

namespace cresset::bridge {

// While one lives, such an operator runs.
class ViewOrCopy {
 public:
  using Answers = std::vector<std::pair<sym::ExprId, bool>>;

  ViewOrCopy() : outer_(current()) { current() = this; }
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

 private:
  ViewOrCopy* outer_;
  Answers answers_;
};

}  // namespace cresset::bridge
