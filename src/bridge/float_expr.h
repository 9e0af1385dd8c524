// How floats came about that arguments, sizes and given scalars give, so that later calls can repeat the arithmetic.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sym/expr.h"

namespace cresset::bridge {

// What Python does with two floats, or with the first of them. Of whole numbers (bits, shifts, ...): no number (NaN)
// where one of them, or the result, is not held exactly by a double.
struct FloatOp {
  double (*apply)(double, double);
  const char* name;
};
namespace float_ops {
extern const FloatOp kAdd, kSubtract, kMultiply, kDivide, kPower, kMin, kMax, kSqrt, kFloor, kCeil, kTruncate;
extern const FloatOp kFloorDivide, kRemainder, kIntPower;
extern const FloatOp kSingle;  // rounded to 32 bits
// round, and, or, xor, lshift, rshift, gcd, isqrt, bit_length: what gives whole numbers. nullptr: another name.
const FloatOp* whole_op(std::string_view name);
}  // namespace float_ops

// An argument, the number in a tensor that was there before the call, made of sizes, a number, or an operation on
// others.
struct FloatExpr {
  using Ref = std::shared_ptr<const FloatExpr>;

  double number = 0;          // in the call that is captured
  int64_t input = -1;         // an argument, or a tensor of one: its place among the graph's inputs
  int64_t held = -1;          // a tensor of one: its place among the graph's constants
  sym::ExprId size, divisor;  // made of sizes: size / divisor * factor; the divisor may be missing
  double factor = 1;
  const FloatOp* op = nullptr;  // an operation
  Ref a, b;
  uint32_t depth = 0;

  static Ref constant(double number);
  static Ref argument(double number, size_t input);
  static Ref held_tensor(double number, size_t place);
  static Ref of_sizes(double number, sym::ExprId size, sym::ExprId divisor, double factor);
  // nullptr where the chain of operations is too long to be repeated at every call.
  static Ref make(const FloatOp& op, const Ref& a, const Ref& b);

  // Neither is an operation, and both are one.
  static bool same_leaf(const FloatExpr& a, const FloatExpr& b);

  // What it is made of: arguments, tensors, sizes, numbers; each once.
  std::vector<const FloatExpr*> leaves() const;
  // Whether a tensor that it is made of holds another number now.
  bool is_of_other_data(const struct FloatSources& sources) const;

  struct Names {
    std::vector<std::string> inputs, constants;
    std::function<std::string(sym::ExprId)> size;
  };
  std::string text(const Names& names) const;
};

// By the index of graph values.
using NumbersOfValues = std::unordered_map<uint32_t, FloatExpr::Ref>;

// What a later call gives: tensors, of one f64 where arguments are floats, and the values of FloatProgram::sizes().
struct FloatSources {
  c10::ArrayRef<at::Tensor> inputs, constants;
  const int64_t* sizes;
};

// The number in a tensor of one f64, f32, integer or bool; NaN: an integer that no double holds.
double number_in(const at::Tensor& tensor);

// Several of them, to be evaluated at later calls.
class FloatProgram {
 public:
  uint32_t add(const FloatExpr::Ref& expr);  // its place among the values
  // What a later call must evaluate for run().
  const std::vector<sym::ExprId>& sizes() const { return sizes_; }
  size_t value_count() const { return steps_.size(); }
  void run(const FloatSources& sources, double* values) const;

 private:
  struct Step {
    double number;  // made of sizes: the factor
    int64_t input, held;
    int32_t size, divisor;  // among sizes(); -1: none
    const FloatOp* op;
    uint32_t a, b;
  };
  int32_t add_size(sym::ExprId size);

  std::unordered_map<FloatExpr::Ref, uint32_t> places_;  // of the steps
  std::vector<sym::ExprId> sizes_;
  std::vector<Step> steps_;
};

}  // namespace cresset::bridge
