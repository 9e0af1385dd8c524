// Which way decisions on floats went that arguments and sizes give. A program that only compares a float serves all
// calls that compare alike.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sym/expr.h"

namespace cresset::bridge {

// What Python does with two floats, or with the first of them.
struct FloatOp {
  double (*apply)(double, double);
  const char* name;
};
namespace float_ops {
extern const FloatOp kAdd, kSubtract, kMultiply, kDivide, kPower, kMin, kMax, kSqrt, kFloor, kCeil, kTruncate;
}

// How a float came about: from an argument, sizes, a number, or an operation on others.
struct FloatExpr {
  using Ref = std::shared_ptr<const FloatExpr>;

  double number = 0;          // in the call that is captured
  int64_t input = -1;         // an argument: its place among the graph's inputs
  sym::ExprId size, divisor;  // made of sizes: size / divisor * factor; the divisor may be missing
  double factor = 1;
  const FloatOp* op = nullptr;  // an operation
  Ref a, b;
  uint32_t depth = 0;

  static Ref constant(double number);
  static Ref argument(double number, size_t input);
  static Ref of_sizes(double number, sym::ExprId size, sym::ExprId divisor, double factor);
  // nullptr where the chain of operations is too long to be repeated at every call.
  static Ref make(const FloatOp& op, const Ref& a, const Ref& b);
};

enum class FloatRelation : uint8_t { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual };

// `left` and `right` compare as they did.
class FloatGuard {
 public:
  FloatGuard(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right, std::string location);

  bool expected() const { return expected_; }
  bool same(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right) const;
  // What a later call must evaluate for holds().
  const std::vector<sym::ExprId>& sizes() const { return sizes_; }
  // `inputs` of a later call: tensors of one f64 where arguments are floats; `sizes`: the values of sizes().
  bool holds(c10::ArrayRef<at::Tensor> inputs, const int64_t* sizes) const;
  // names: of the inputs.
  using SizeText = std::function<std::string(sym::ExprId)>;
  std::string text(c10::ArrayRef<std::string> names, const SizeText& size_text) const;

 private:
  struct Step {
    double number;  // made of sizes: the factor
    int64_t input;
    int32_t size, divisor;  // among sizes(); -1: none
    const FloatOp* op;
    uint32_t a, b;
  };
  uint32_t add(const FloatExpr::Ref& expr);
  int32_t add_size(sym::ExprId size);

  FloatExpr::Ref left_, right_;
  FloatRelation relation_;
  bool expected_;
  std::string location_;
  std::vector<const FloatExpr*> placed_;  // of the steps
  std::vector<sym::ExprId> sizes_;
  std::vector<Step> steps_;
  uint32_t left_step_, right_step_;
};

}  // namespace cresset::bridge
