// Which way decisions on floats went that arguments and sizes give. A program that only compares a float serves all
// calls that compare alike.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "bridge/float_expr.h"

namespace cresset::bridge {

enum class FloatRelation : uint8_t { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual };

// `left` and `right` compare as they did.
class FloatGuard {
 public:
  FloatGuard(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right, std::string location);

  bool expected() const { return expected_; }
  bool same(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right) const;
  // What a later call must evaluate for holds().
  const std::vector<sym::ExprId>& sizes() const { return program_.sizes(); }
  // As FloatProgram::run() has them.
  bool holds(c10::ArrayRef<at::Tensor> inputs, const int64_t* sizes) const;
  std::string text(c10::ArrayRef<std::string> names, const FloatExpr::SizeText& size_text) const;

 private:
  FloatExpr::Ref left_, right_;
  FloatRelation relation_;
  bool expected_;
  std::string location_;
  FloatProgram program_;
  uint32_t left_step_, right_step_;
};

}  // namespace cresset::bridge
