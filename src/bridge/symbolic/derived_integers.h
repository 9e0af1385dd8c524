// Derived integers: whole numbers computed from a call's floats and sizes by arithmetic outside of symbolic
// expressions: int(rate * n), 1 << n, round(n * 0.3). They are symbols like sizes. Every call computes their values
// before it checks guards.
#pragma once

#include <optional>

#include "bridge/symbolic/float_expr.h"

namespace cresset::bridge {

class DerivedInteger {
 public:
  // Requires is_whole(made->number).
  explicit DerivedInteger(FloatExpr::Ref made);

  static bool is_whole(double number);  // and exactly representable as a double
  // Whether the two numbers are computed alike. May return false when the comparison takes too long.
  bool same(const FloatExpr& other) const;
  const FloatExpr& made() const { return *made_; }
  const std::vector<sym::ExprId>& sizes() const { return program_.sizes(); }
  // nullopt: the result is not whole, or too large.
  std::optional<int64_t> value(const FloatSources& sources) const;

 private:
  FloatExpr::Ref made_;
  FloatProgram program_;
};

}  // namespace cresset::bridge
