// Composite operators of ATen that ask "is this size 0, is it 1?" only to leave early or to choose among algorithms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sym/expr.h"

namespace cresset::bridge {

// While one lives, such a question about a size that data gives has the answer of a general size, instead of ending the
// piece; the program checks it when it runs, and a call where it is otherwise runs eagerly. Only for operators whose
// results have the same shapes either way: what a capture has told Python cannot be taken back.
class SizeOblivious {
 public:
  SizeOblivious() = default;
  // Not about sizes that are made while it lives, of variables from this one on: formulas of derivatives that look for
  // such elements give other values where there are none.
  explicit SizeOblivious(sym::VarId first_own) { end() = std::min(first_own.index, end()); }
  ~SizeOblivious() {
    --depth();
    end() = outer_end_;
  }
  SizeOblivious(const SizeOblivious&) = delete;
  SizeOblivious& operator=(const SizeOblivious&) = delete;

  static bool active() { return depth() != 0; }
  static bool differentiates() { return active() && end() != UINT32_MAX; }  // formulas of derivatives ask
  static bool is_about(sym::VarId var) { return active() && var.index < end(); }

 private:
  static int& depth() {
    thread_local int depth = 0;
    return depth;
  }
  static uint32_t& end() {
    thread_local uint32_t end = UINT32_MAX;
    return end;
  }
  uint32_t outer_end_ = (++depth(), end());
};

// While one lives, these conditions have the answer no, without a guard, whatever the caller's sizes are. Only where
// the one who asks does the same either way.
class EitherWay {
 public:
  explicit EitherWay(std::vector<sym::ExprId> conditions) : conditions_(std::move(conditions)), outer_(current()) {
    current() = this;
  }
  ~EitherWay() { current() = outer_; }
  EitherWay(const EitherWay&) = delete;
  EitherWay& operator=(const EitherWay&) = delete;

  static bool has(sym::ExprId condition) {
    for (const EitherWay* one = current(); one != nullptr; one = one->outer_)
      if (std::find(one->conditions_.begin(), one->conditions_.end(), condition) != one->conditions_.end()) return true;
    return false;
  }

 private:
  static const EitherWay*& current() {
    thread_local const EitherWay* innermost = nullptr;
    return innermost;
  }
  std::vector<sym::ExprId> conditions_;
  const EitherWay* outer_;
};

}  // namespace cresset::bridge
