// Guards on comparisons of floats which arguments, sizes and input scalars determine. A program which only compares a
// float serves all calls with the same outcome.
#pragma once

#include <string>
#include <vector>

#include "bridge/symbolic/float_expr.h"

namespace cresset::bridge {

enum class FloatRelation : uint8_t { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual };

// Whether a comparison depends on tensor contents at the start of the call: for a decision of the program on floats, or
// to specialize a number or bool (docs/guards.md).
enum class OfData : uint8_t { No, Decision, Specialization };

// Requires the captured outcome of comparing `left` and `right`.
struct FloatGuard {
  FloatGuard(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right, std::string location);

  bool same(const FloatExpr::Ref& other_left, FloatRelation other, const FloatExpr::Ref& other_right) const;
  std::string text(const FloatExpr::Names& names) const;
  // Whether a number from tensor contents inside a side differs from the captured call; sizes may differ as well.
  bool is_of_other_data(const FloatSources& sources) const;

  FloatExpr::Ref left, right;
  FloatRelation relation;
  bool expected;
  OfData of_data = OfData::No;
  std::string location;
};

// All float guards of a program, checked in later calls.
class FloatGuards {
 public:
  FloatGuards() = default;
  explicit FloatGuards(const std::vector<FloatGuard>& guards);

  bool empty() const { return rows_.empty(); }
  // The sizes which a later call must evaluate for the guards.
  const std::vector<sym::ExprId>& sizes() const { return program_.sizes(); }
  // The first failed guard; -1: all hold.
  int64_t first_missed(const FloatSources& sources) const;

 private:
  struct Row {
    uint32_t left, right;  // steps
    FloatRelation relation;
    bool expected;
  };
  FloatProgram program_;
  std::vector<Row> rows_;
};

}  // namespace cresset::bridge
