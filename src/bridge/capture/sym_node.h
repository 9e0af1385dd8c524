// Symbolic sizes for PyTorch: a c10::SymNodeImpl over cresset's expressions.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymNodeImpl.h>

#include <functional>
#include <memory>
#include <string_view>

#include "bridge/symbolic/float_guard.h"
#include "sym/shape_env.h"

namespace cresset::bridge {

// Integers and booleans carry an expression. A float made of sizes carries its origin, so floor and ceil stay symbolic:
// a ratio of expressions, or an expression times a number (rounded to double as in eager mode: sym/scale.h). Any other
// float of sizes is a value specialized by guards. Every decision on a node goes through ShapeEnv::evaluate.
//
// A float from the caller or from data is a Value: a float64 tensor with a single element in the graph. Sums and
// products with a Value are Values too (sym_node_value.cpp), also for floats made of sizes. A comparison between floats
// from arguments is a guard (float_guard.h). Reading the number specializes its origins, or ends the graph segment.
class SymNode final : public c10::SymNodeImpl {
 public:
  enum class Type : uint8_t { Int, Bool, Ratio, Scaled, Float, Value };
  using Env = std::shared_ptr<sym::ShapeEnv>;

  SymNode(Env env, Type type, sym::ExprId numerator, sym::ExprId denominator = {}, double value = 0)
      : env_(std::move(env)), type_(type), expr_(numerator), denominator_(denominator), value_(value) {}

  // Knowledge of a Value which depends only on float arguments, sizes and input scalars (input_scalars.h): the number
  // in this call, and its origins: the arguments' bits (Capture::specialized_floats) and the sizes. `made_by` may be
  // null. of_data: input scalars take part, so reading the number ends the graph segment.
  struct Known {
    double number = 0;
    uint64_t arguments = 0;
    std::vector<sym::ExprId> sizes;
    FloatExpr::Ref made_by;
    bool of_data = false;
  };
  static c10::SymNode make_value(const Env& env, at::Tensor tensor, std::optional<Known> known);
  // The tensor of a Value; undefined for any other node, and when the number is already known.
  static at::Tensor tensor_of(const c10::SymNode& node);
  // As tensor_of(), and also for a float made of sizes; for operators which take a tensor in place of a number.
  static at::Tensor operand_of(const c10::SymNode& node);
  // A function of Python's module math, where the result is a Value; null otherwise.
  static c10::SymNode function_of(std::string_view name, const c10::SymNode& node);
  // The whole number which `op` (float_ops::whole_op) computes from symbols, as a symbol; null where impossible.
  static c10::SymNode whole_of(std::string_view op, const c10::SymNode& a, const c10::SymNode& b);
  // `a // b` or `a % b`, where an operand is a float; null where the answer requires the numbers.
  static c10::SymNode with_remainder(bool quotient, const c10::SymNode& a, const c10::SymNode& b);
  // math.isfinite(), math.isinf(), math.isnan(), as a guard; nullopt where the answer requires the number.
  static std::optional<bool> kind_of(std::string_view name, const c10::SymNode& node);
  static c10::SymInt make_int(const Env& env, sym::ExprId expr);  // a plain int when constant
  static c10::SymBool make_bool(const Env& env, sym::ExprId expr);
  // The expression of a SymInt in this environment: a constant, or our node's. A foreign node is specialized.
  static sym::ExprId expr_of(const Env& env, const c10::SymInt& value);

  // Requires a number which leaves the graph to fit into 64 bits in later calls: adds a guard unless this is proved.
  static void keep_in_int64(sym::ShapeEnv& env, sym::ExprId expr);

  // A float made of sizes: numerator / denominator, else numerator * factor.
  struct OfSizes {
    sym::ExprId numerator, denominator;
    double factor = 1;
  };
  std::optional<OfSizes> of_sizes() const {
    if (type_ != Type::Ratio && type_ != Type::Scaled) return std::nullopt;
    return OfSizes{expr_, denominator_, type_ == Type::Scaled ? value_ : 1.0};
  }

  bool is_value() const { return type_ == Type::Value; }
  // Whether a float from arguments and sizes is not yet specialized to a single value.
  static bool is_open_float(const c10::SymNode& node);
  sym::ExprId expr() const { return expr_; }
  const Env& env() const { return env_; }

  bool is_int() override { return type_ == Type::Int; }
  bool is_bool() override { return type_ == Type::Bool; }
  bool is_float() override { return type_ != Type::Int && type_ != Type::Bool; }
  bool is_symbolic() override { return true; }
  bool has_hint() override {
    return type_ == Type::Float || (type_ == Type::Value ? known_.has_value() : env_->hint(expr_).has_value());
  }

  c10::SymNode add(const c10::SymNode& other) override;
  c10::SymNode sub(const c10::SymNode& other) override;
  c10::SymNode mul(const c10::SymNode& other) override;
  c10::SymNode truediv(const c10::SymNode& other) override;
  c10::SymNode int_truediv(const c10::SymNode& other) override { return truediv(other); }
  c10::SymNode float_truediv(const c10::SymNode& other) override { return truediv(other); }
  c10::SymNode floordiv(const c10::SymNode& other) override;
  c10::SymNode int_floordiv(const c10::SymNode& other) override { return floordiv(other); }
  c10::SymNode mod(const c10::SymNode& other) override;
  c10::SymNode pow(const c10::SymNode& other) override;
  c10::SymNode float_pow(const c10::SymNode& other) override { return pow(other); }
  c10::SymNode pow_by_natural(const c10::SymNode& other) override;
  c10::SymNode eq(const c10::SymNode& other) override;
  c10::SymNode ne(const c10::SymNode& other) override;
  c10::SymNode gt(const c10::SymNode& other) override;
  c10::SymNode lt(const c10::SymNode& other) override;
  c10::SymNode le(const c10::SymNode& other) override;
  c10::SymNode ge(const c10::SymNode& other) override;
  c10::SymNode sym_min(const c10::SymNode& other) override;
  c10::SymNode sym_max(const c10::SymNode& other) override;
  c10::SymNode sym_or(const c10::SymNode& other) override;
  c10::SymNode sym_and(const c10::SymNode& other) override;
  c10::SymNode sym_not() override;
  c10::SymNode sym_ite(const c10::SymNode& then_value, const c10::SymNode& else_value) override;
  c10::SymNode neg() override;
  c10::SymNode ceil() override;
  c10::SymNode floor() override;
  c10::SymNode sym_float() override;
  c10::SymNode clone() override;
  c10::SymNode wrap_int(int64_t value) override;
  c10::SymNode wrap_float(double value) override;
  c10::SymNode wrap_bool(bool value) override;

  c10::SymNode is_contiguous(c10::ArrayRef<c10::SymNode> sizes, c10::ArrayRef<c10::SymNode> strides) override;
  c10::SymNode is_channels_last_contiguous_2d(c10::ArrayRef<c10::SymNode>, c10::ArrayRef<c10::SymNode>) override;
  c10::SymNode is_channels_last_contiguous_3d(c10::ArrayRef<c10::SymNode>, c10::ArrayRef<c10::SymNode>) override;
  c10::SymNode is_channels_last_strides_2d(c10::ArrayRef<c10::SymNode>, c10::ArrayRef<c10::SymNode>) override;
  c10::SymNode is_channels_last_strides_3d(c10::ArrayRef<c10::SymNode>, c10::ArrayRef<c10::SymNode>) override;
  c10::SymNode is_non_overlapping_and_dense(c10::ArrayRef<c10::SymNode>, c10::ArrayRef<c10::SymNode>) override;

  int64_t guard_int(const char* file, int64_t line) override;
  bool guard_bool(const char* file, int64_t line) override;
  double guard_float(const char* file, int64_t line) override;
  bool guard_size_oblivious(const char* file, int64_t line) override;
  bool guard_or_false(const char* file, int64_t line) override;
  bool guard_or_true(const char* file, int64_t line) override;
  bool statically_known_true(const char* file, int64_t line) override;
  bool expect_true(const char* file, int64_t line) override;
  // As expect_true(); the message is requested where data decides.
  bool expect(const char* file, int64_t line, const std::function<std::string()>& message);
  int64_t int_() override { return guard_int("", 0); }
  bool bool_() override { return guard_bool("", 0); }
  std::string str() override;
  std::optional<int64_t> constant_int() override { return std::nullopt; }
  std::optional<bool> constant_bool() override { return std::nullopt; }
  std::optional<int64_t> maybe_as_int() override;

 private:
  c10::SymNode make(Type type, sym::ExprId expr) const;
  c10::SymNode ratio(sym::ExprId numerator, sym::ExprId denominator) const;
  c10::SymNode number(double value) const;
  sym::ExprPool& pool() const { return env_->pool(); }
  sym::ExprId operand(const c10::SymNode& other) const;  // the expression of an int or bool operand
  using Overflows = bool (*)(int64_t, int64_t);
  void require_room(sym::ExprId other, Overflows overflows) const;
  bool involves_float(const c10::SymNode& other);
  template <class F>
  c10::SymNode float_op(const c10::SymNode& other, F&& f);
  int64_t known(sym::ExprId expr);
  std::optional<bool> general_answer();
  using TensorOp = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
  // The result when an operand is a Value or made of sizes; null otherwise.
  c10::SymNode value_op(const c10::SymNode& other, TensorOp op, const FloatOp& float_op);
  c10::SymNode root_of_size();
  c10::SymNode power_of_values(const c10::SymNode& exponent);
  // As a guard; nullopt where the answer requires the number.
  std::optional<bool> is_finite();
  bool can_be_value() const;
  at::Tensor as_tensor();
  std::optional<Known> as_known();
  double look();  // at a Value
  bool is_just_this();
  void tell_number() const;
  // How two floats compare, as a guard; nullopt where the answer requires the numbers.
  std::optional<bool> decided(const c10::SymNode& other, FloatRelation relation, bool specializes = false);
  // The whole number to which a Value is rounded, as a guard.
  int64_t rounded(const FloatOp& rounding);
  // The whole number which `op` computes from this and `other` (nullptr: only this), as a symbol (derived_integers.h);
  // null where there is none.
  c10::SymNode computed(const FloatOp& op, SymNode* other);
  c10::SymNode whole(const FloatOp& rounding);  // of a Value: a symbol, or specialized
  static int64_t as_int64(double whole);        // throws BeyondInt64, also for NaN and infinities
  double specialized(const c10::SymNode& node) const;
  struct Quotient {
    sym::ExprId numerator, denominator;
  };
  struct Compared {
    sym::ExprId mine, theirs;
  };
  std::optional<Quotient> quotient() const;
  std::optional<Compared> cross_multiplied(const c10::SymNode& other);
  std::optional<double> whole_ratio();
  bool known_size();  // the expression is at least 0
  c10::SymNode rounded_product(bool up);
  c10::SymNode scaled(double factor) const;
  int64_t truncated();
  c10::SymNode against_number(const c10::SymNode& other, const std::function<bool(double, double)>& holds);
  using Relation = sym::ExprId (sym::ExprPool::*)(sym::ExprId, sym::ExprId);
  c10::SymNode extremum(const c10::SymNode& other, Relation of_sizes, TensorOp of_tensors, const FloatOp& op);
  template <class Holds>
  c10::SymNode compare(const c10::SymNode& other, Relation relation, FloatRelation of_floats, Holds&& holds);

  Env env_;
  Type type_;
  sym::ExprId expr_;         // Int, Bool: the value; Ratio: the numerator; Scaled: the size
  sym::ExprId denominator_;  // Ratio
  double value_ = 0;         // Float; Scaled: the factor
  at::Tensor tensor_;        // Value
  std::optional<Known> known_;
};

// The reason recorded with guards. Capture sets the provider while it handles an operator.
sym::Reason current_reason();
void set_reason_provider(sym::Reason (*provider)());

// Ends the current graph segment, so data-dependent numbers become known. Returns false inside a capture kernel, which
// ends the segment itself, and where no segment of `env` is being captured.
bool breaks_graph(const SymNode::Env& env, const std::function<std::string()>& why);  // BreakKind::DataDependentValue

// Arithmetic on the float64 tensors of Values.
at::Tensor add_tensors(const at::Tensor& a, const at::Tensor& b);
at::Tensor subtract_tensors(const at::Tensor& a, const at::Tensor& b);
at::Tensor multiply_tensors(const at::Tensor& a, const at::Tensor& b);
at::Tensor divide_tensors(const at::Tensor& a, const at::Tensor& b);
at::Tensor power_tensors(const at::Tensor& a, const at::Tensor& b);
at::Tensor floor_divide_tensors(const at::Tensor& a, const at::Tensor& b);
at::Tensor remainder_tensors(const at::Tensor& a, const at::Tensor& b);

// Python has a separate exception for a division by zero.
class DivisionByZero : public std::runtime_error {
 public:
  explicit DivisionByZero(const char* words) : std::runtime_error(words) {}
};

// A Python int beyond 64 bits, which expressions cannot hold: Python continues with plain ints.
class BeyondInt64 : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

// A decision needs a value which only data can supply.
class DataDependentError : public c10::Error {
 public:
  using c10::Error::Error;
};

}  // namespace cresset::bridge
