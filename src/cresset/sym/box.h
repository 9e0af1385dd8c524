// Interval propagation for the solver: the ranges of variables are narrowed under conditions until a fixed point.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "sym/expr.h"
#include "sym/interval.h"

namespace cresset::sym {

// A range for each variable. A division by zero counts as any number, so a range in the box is never too narrow.
class Box {
 public:
  explicit Box(const ExprPool& pool) : pool_(&pool) {}

  void set(VarId var, Interval range) { ranges_[var] = range; }
  Interval of(VarId var) const;
  // Returns the interval which contains all values of `e`.
  Interval range(ExprId e) const;
  // Assumes that all conditions hold and removes the values which contradict them. Returns false when a range becomes
  // empty. The work is bounded by a few rounds.
  bool narrow(std::span<const ExprId> conditions);

 private:
  bool narrow(ExprId e, Interval target);
  bool narrow_sum(std::span<const ExprId> operands, Interval target);
  bool narrow_product(std::span<const ExprId> operands, Interval target);
  bool narrow_quotient(ExprId a, ExprId b, Interval target);
  bool narrow_remainder(ExprId a, ExprId b, Interval target);
  bool narrow_extremum(Kind kind, std::span<const ExprId> operands, Interval target);
  bool narrow_relation(Kind kind, ExprId lhs, ExprId rhs, bool truth);
  bool narrow_junction(Kind kind, std::span<const ExprId> operands, bool truth);
  bool round_to_class(ExprId a, int64_t divisor, int64_t remainder);
  Interval fold(const Expr& e, std::span<const ExprId> operands, size_t without) const;
  Interval relation(Kind kind, Interval difference) const;

  const ExprPool* pool_;
  std::unordered_map<VarId, Interval> ranges_;
  bool moved_ = false;
};

}  // namespace cresset::sym
