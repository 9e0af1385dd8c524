// Which way decisions on floats went that arguments, sizes and given scalars give. A program that only compares a float
// serves all calls that compare alike.
#pragma once

#include <string>
#include <vector>

#include "bridge/float_expr.h"

namespace cresset::bridge {

enum class FloatRelation : uint8_t { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual };

// Whether a comparison is of what tensors hold when the call begins: of a decision of the program's on floats, or to
// have one number, or one truth value, alone (docs/guards.md).
enum class OfData : uint8_t { No, Decision, Pin };

// `left` and `right` compare as they did.
struct FloatGuard {
  FloatGuard(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right, std::string location);

  bool same(const FloatExpr::Ref& other_left, FloatRelation other, const FloatExpr::Ref& other_right) const;
  std::string text(const FloatExpr::Names& names) const;
  // Whether a number that both sides are made of is another one than in the call that was captured; sizes may be, too.
  bool is_of_other_data(const FloatSources& sources) const;

  FloatExpr::Ref left, right;
  FloatRelation relation;
  bool expected;
  OfData of_data = OfData::No;
  std::string location;
};

// Those of a program, to be asked at later calls.
class FloatGuards {
 public:
  FloatGuards() = default;
  explicit FloatGuards(const std::vector<FloatGuard>& guards);

  bool empty() const { return rows_.empty(); }
  // What a later call must evaluate for them.
  const std::vector<sym::ExprId>& sizes() const { return program_.sizes(); }
  // The first one that does not hold; -1: all do.
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
