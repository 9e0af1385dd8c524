// How a float follows from arguments, sizes and input scalars, so that later calls can repeat the arithmetic.
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

// A float operation of Python with one or two operands. Operations on whole numbers (bits, shifts, ...) give NaN where
// a double cannot hold an operand or the result exactly.
struct FloatOp {
  double (*apply)(double, double);
  const char* name;
};
namespace float_ops {
extern const FloatOp kAdd, kSubtract, kMultiply, kDivide, kPower, kMin, kMax, kSqrt, kFloor, kCeil, kTruncate;
extern const FloatOp kFloorDivide, kRemainder, kIntPower;
extern const FloatOp kSingle;  // rounded to float32
// Operations with whole results: round, and, or, xor, lshift, rshift, gcd, isqrt, bit_length. nullptr: an unknown name.
const FloatOp* whole_op(std::string_view name);
}  // namespace float_ops

// An argument, a number in a tensor which existed before the call, a quotient or product of sizes, a constant, or an
// operation on two expressions.
struct FloatExpr {
  using Ref = std::shared_ptr<const FloatExpr>;

  double number = 0;          // in the captured call
  int64_t input = -1;         // position among the graph's inputs, for an argument or a single-element tensor
  int64_t held = -1;          // position among the graph's constants, for a single-element tensor
  sym::ExprId size, divisor;  // of sizes: size / divisor * factor; the divisor may be missing
  double factor = 1;
  const FloatOp* op = nullptr;  // not null: an operation on a and b
  Ref a, b;
  uint32_t depth = 0;

  static Ref constant(double number);
  static Ref argument(double number, size_t input);
  static Ref held_tensor(double number, size_t place);
  static Ref of_sizes(double number, sym::ExprId size, sym::ExprId divisor, double factor);
  // Returns nullptr when the chain of operations is too long to repeat at every call.
  static Ref make(const FloatOp& op, const Ref& a, const Ref& b);

  // Neither expression is an operation, and both are equal.
  static bool same_leaf(const FloatExpr& a, const FloatExpr& b);

  // The arguments, tensors, sizes and numbers inside the expression, each once.
  std::vector<const FloatExpr*> leaves() const;
  // Whether a tensor inside the expression now holds a different number.
  bool is_of_other_data(const struct FloatSources& sources) const;

  struct Names {
    std::vector<std::string> inputs, constants;
    std::function<std::string(sym::ExprId)> size;
  };
  std::string text(const Names& names) const;
};

// Keyed by the index of graph values.
using NumbersOfValues = std::unordered_map<uint32_t, FloatExpr::Ref>;

// Inputs of a later call: tensors (float arguments as float64 tensors) and the values of FloatProgram::sizes().
struct FloatSources {
  c10::ArrayRef<at::Tensor> inputs, constants;
  const int64_t* sizes;
};

// The number in a single-element tensor of float64, float32, integer or bool. NaN: an integer which no double holds.
double number_in(const at::Tensor& tensor);

// Several expressions, evaluated in later calls.
class FloatProgram {
 public:
  uint32_t add(const FloatExpr::Ref& expr);  // returns its position among the values
  // The sizes which a later call must evaluate for run().
  const std::vector<sym::ExprId>& sizes() const { return sizes_; }
  size_t value_count() const { return steps_.size(); }
  void run(const FloatSources& sources, double* values) const;

 private:
  struct Step {
    double number;  // factor, for an expression of sizes
    int64_t input, held;
    int32_t size, divisor;  // index in sizes(); -1: none
    const FloatOp* op;
    uint32_t a, b;
  };
  int32_t add_size(sym::ExprId size);

  std::unordered_map<FloatExpr::Ref, uint32_t> places_;  // of the steps
  std::vector<sym::ExprId> sizes_;
  std::vector<Step> steps_;
};

}  // namespace cresset::bridge
