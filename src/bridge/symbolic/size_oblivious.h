// Composite operators of ATen which test whether a size is 0 or 1 only to return early or to choose an algorithm.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sym/expr.h"

namespace cresset::bridge {

// RAII: a test of this kind on a data-dependent size gets the answer of a general size, rather than ending the graph
// segment. The program checks the answer at run time; a call with a different answer runs eagerly. Use only for
// operators whose result shapes do not depend on the answer: Python has seen the shapes and cannot unsee them.
class SizeOblivious {
 public:
  SizeOblivious() = default;
  // Excludes variables from `first_own` on, made during the lifetime: derivative formulas test these sizes to find
  // elements, and give other values where there are none.
  explicit SizeOblivious(sym::VarId first_own) { end() = std::min(first_own.index, end()); }
  ~SizeOblivious() {
    --depth();
    end() = outer_end_;
  }
  SizeOblivious(const SizeOblivious&) = delete;
  SizeOblivious& operator=(const SizeOblivious&) = delete;

  static bool active() { return depth() != 0; }
  static bool differentiates() { return active() && end() != UINT32_MAX; }  // derivative formulas ask
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

// RAII: these conditions are answered "no", without a guard, whatever the caller's sizes. Use only where the result
// does not depend on the answer.
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
