// Whole numbers that a call's floats and sizes give by arithmetic that expressions do not have: int(rate * n), 1 << n,
// round(n * 0.3). They are symbols as sizes are, whose values every call computes before its guards are asked.
#pragma once

#include <optional>

#include "bridge/float_expr.h"

namespace cresset::bridge {

class ComputedNumber {
 public:
  // One that is_whole(made->number) says to be a whole number.
  explicit ComputedNumber(FloatExpr::Ref made);

  static bool is_whole(double number);  // and held exactly by a double
  // Whether it is made alike; false also where that takes long to tell.
  bool same(const FloatExpr& other) const;
  const FloatExpr& made() const { return *made_; }
  const std::vector<sym::ExprId>& sizes() const { return program_.sizes(); }
  // nullopt: no whole number, or one that is too large.
  std::optional<int64_t> value(const FloatSources& sources) const;

 private:
  FloatExpr::Ref made_;
  FloatProgram program_;
};

}  // namespace cresset::bridge
