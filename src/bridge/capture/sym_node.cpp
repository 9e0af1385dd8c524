#include "bridge/capture/sym_node.h"

#include <ATen/ops/pow.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "bridge/capture/capture.h"
#include "bridge/symbolic/number_formatting.h"
#include "bridge/symbolic/size_oblivious.h"
#include "bridge/symbolic/tensor_geometry.h"
#include "bridge/symbolic/view_or_copy.h"
#include "sym/explain.h"
#include "sym/general_sizes.h"
#include "sym/scale.h"

namespace cresset::bridge {
namespace {

sym::Reason (*reason_provider)() = nullptr;

// The class is final, so a comparison of types is a comparison of pointers, whereas dynamic_cast walks the bases.
SymNode* ours(c10::SymNodeImpl& node) {
  return typeid(node) == typeid(SymNode) ? static_cast<SymNode*>(&node) : nullptr;
}
SymNode* ours(const c10::SymNode& node) { return ours(*node); }

// Explains a data-dependent decision: the line which read the data, and a statement which avoids the decision.
std::string decision_text(const sym::ShapeEnv& env, sym::ExprId expr) {
  std::vector<sym::VarId> vars;
  env.pool().collect_vars(expr, vars);
  std::string text = "a decision needs the value of " + env.to_string(expr) + ", which only tensor data can tell";
  const Capture* capture = Capture::current();
  for (const sym::VarId var : vars) {
    const sym::Symbol* symbol = env.symbol(var);
    if (symbol == nullptr || symbol->hint) continue;
    const std::string line = capture != nullptr ? capture->recorder().origin(var) : std::string();
    text += "; " + symbol->name + " is " + symbol->source + (line.empty() ? "" : ", at " + line);
  }
  if (!env.pool().is_boolean(expr)) return text + "; to go on without it, state cresset.check(... == ...)";
  sym::ExprPool& pool = const_cast<sym::ExprPool&>(env.pool());
  return text + "; to go on without it, state what always holds: cresset.check(" + env.to_string(expr) +
         ") or cresset.check(" + env.to_string(pool.logical_not(expr)) + ")";
}

// Makes the end of the segment compute this data-dependent number, even if no value of the program holds it.
void ask(const SymNode::Env& env, sym::ExprId expr) {
  Capture* capture = Capture::current();
  if (capture != nullptr && !capture->closed() && capture->env_ptr() == env) capture->asked_numbers.push_back(expr);
}

bool made_known(const SymNode::Env& env, sym::ExprId expr) {
  ask(env, expr);
  return breaks_graph(env, [&] { return decision_text(*env, expr); });
}

}  // namespace

bool breaks_graph(const SymNode::Env& env, const std::function<std::string()>& why) {
  Capture* capture = Capture::current();
  if (capture == nullptr || capture->closed() || capture->recording != 0 || capture->env_ptr() != env) return false;
  capture->set_location();
  capture->flush({BreakKind::DataDependentValue, why()});
  return true;
}

namespace {

[[noreturn]] void data_dependent(const sym::ShapeEnv& env, sym::ExprId expr) {
  throw DataDependentError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                           "cresset: " + decision_text(env, expr));
}

// Python raises for a zero divisor, in these words, so a compiled call must not meet such a divisor.
sym::ExprId divisor(sym::ShapeEnv& env, sym::ExprId by, const char* words) {
  if (env.known_nonzero(by)) return by;
  const sym::ExprId nonzero = env.pool().ne(by, env.pool().constant(0));
  const std::optional<bool> answer = env.evaluate(nonzero, [] { return current_reason(); });
  if (!answer.value_or(true)) throw DivisionByZero(words);
  if (!answer) env.assume(nonzero, "a size made by data divides: " + env.to_string(nonzero));
  return by;
}

}  // namespace

static thread_local bool making_text = false;

MakingString::MakingString() : before_(std::exchange(making_text, true)) {}
MakingString::~MakingString() { making_text = before_; }

sym::Reason current_reason() {
  sym::Reason why = reason_provider != nullptr ? reason_provider() : sym::Reason{};
  if (making_text) why.op = sym::kTextOfNumber;
  return why;
}
void set_reason_provider(sym::Reason (*provider)()) { reason_provider = provider; }

c10::SymInt SymNode::make_int(const Env& env, sym::ExprId expr) {
  if (env->pool().is_const(expr)) return c10::SymInt(env->pool().const_value(expr));
  return c10::SymInt(c10::SymNode(c10::make_intrusive<SymNode>(env, Type::Int, expr)));
}

c10::SymBool SymNode::make_bool(const Env& env, sym::ExprId expr) {
  if (env->pool().is_const(expr)) return c10::SymBool(env->pool().const_value(expr) != 0);
  return c10::SymBool(c10::SymNode(c10::make_intrusive<SymNode>(env, Type::Bool, expr)));
}

sym::ExprId SymNode::expr_of(const Env& env, const c10::SymInt& value) {
  if (!value.is_heap_allocated()) return env->pool().constant(value.as_int_unchecked());
  c10::SymNodeImpl* node = value.toSymNodeImplUnowned();
  if (SymNode* mine = ours(*node); mine != nullptr && mine->env_ == env) return mine->expr_;
  return env->pool().constant(node->guard_int(__FILE__, __LINE__));
}

c10::SymNode SymNode::make(Type type, sym::ExprId expr) const { return c10::make_intrusive<SymNode>(env_, type, expr); }
c10::SymNode SymNode::ratio(sym::ExprId numerator, sym::ExprId denominator) const {
  return c10::make_intrusive<SymNode>(env_, Type::Ratio, numerator, denominator);
}
c10::SymNode SymNode::number(double value) const {
  return c10::make_intrusive<SymNode>(env_, Type::Float, pool().constant(0), sym::ExprId{}, value);
}

sym::ExprId SymNode::operand(const c10::SymNode& other) const {
  if (SymNode* mine = ours(other); mine != nullptr && mine->env_ == env_) return mine->expr_;
  if (other->is_bool()) return pool().constant(other->guard_bool(__FILE__, __LINE__) ? 1 : 0);
  return pool().constant(other->guard_int(__FILE__, __LINE__));
}

// Checks the numbers of this call; later calls have guards (keep_in_int64).
void SymNode::require_room(sym::ExprId other, Overflows overflows) const {
  const std::optional<int64_t> a = env_->hint(expr_), b = env_->hint(other);
  if (a && b && overflows(*a, *b)) throw BeyondInt64("an integer beyond 64 bits");
}

namespace {

// Whether the expression is a sum of few sizes: no memory holds a tensor large enough for an overflow.
bool is_sum_of_sizes(sym::ShapeEnv& env, sym::ExprId expr) {
  constexpr int64_t kMany = 1 << 20;
  const sym::ExprPool& pool = env.pool();
  sym::TermList terms;
  pool.terms(expr, terms);
  return std::all_of(terms.begin(), terms.end(), [&](const sym::Term& t) {
    if (!t.monomial.valid()) return std::abs(t.coefficient) < (int64_t{1} << 62);
    return pool.is_var(t.monomial) && std::abs(t.coefficient) < kMany && env.range(t.monomial).lo >= 0;
  });
}

}  // namespace

void SymNode::keep_in_int64(sym::ShapeEnv& env, sym::ExprId expr) {
  sym::ExprPool& pool = env.pool();
  if (pool.is_const(expr) || pool.is_var(expr) || is_sum_of_sizes(env, expr)) return;
  const sym::ExprId most = pool.constant(int64_t{1} << 62), least = pool.constant(-(int64_t{1} << 62));
  const auto why = [] { return current_reason(); };
  env.evaluate(pool.le(expr, most), why);
  env.evaluate(pool.ge(expr, least), why);
}

bool SymNode::involves_float(const c10::SymNode& other) { return is_float() || other->is_float(); }

double SymNode::specialized(const c10::SymNode& node) const {
  if (node->is_float()) return node->guard_float(__FILE__, __LINE__);
  return static_cast<double>(node->guard_int(__FILE__, __LINE__));
}

// Arithmetic on floats specializes their sizes: the result is a number.
template <class F>
c10::SymNode SymNode::float_op(const c10::SymNode& other, F&& f) {
  const double mine = is_float() ? guard_float(__FILE__, __LINE__) : static_cast<double>(guard_int(__FILE__, __LINE__));
  return number(f(mine, specialized(other)));
}

c10::SymNode SymNode::add(const c10::SymNode& other) {
  if (c10::SymNode value = value_op(other, &add_tensors, float_ops::kAdd)) return value;
  if (involves_float(other)) return float_op(other, float_ops::kAdd.apply);
  const sym::ExprId theirs = operand(other);
  require_room(theirs, [](int64_t a, int64_t b) { return __builtin_add_overflow(a, b, &a); });
  return make(Type::Int, pool().add(expr_, theirs));
}
c10::SymNode SymNode::sub(const c10::SymNode& other) {
  if (c10::SymNode value = value_op(other, &subtract_tensors, float_ops::kSubtract)) return value;
  if (involves_float(other)) return float_op(other, float_ops::kSubtract.apply);
  const sym::ExprId theirs = operand(other);
  require_room(theirs, [](int64_t a, int64_t b) { return __builtin_sub_overflow(a, b, &a); });
  return make(Type::Int, pool().sub(expr_, theirs));
}
c10::SymNode SymNode::mul(const c10::SymNode& other) {
  const auto is_value = [](const SymNode* n) { return n != nullptr && n->type_ == Type::Value; };
  if (is_value(this) || is_value(ours(other)))
    if (c10::SymNode value = value_op(other, &multiply_tensors, float_ops::kMultiply)) return value;
  if (involves_float(other)) {
    // size * 2.0, size * 0.5 and ratio * 1.5 stay symbolic: interpolation by a simple scale factor. A factor with few
    // binary digits after the point is an exact fraction, so floor of the product is exact for any real size. For any
    // other factor, the product is kept as a product (sym/scale.h).
    SymNode* mine = ours(other);
    const bool other_plain = mine == nullptr || mine->type_ == Type::Float;
    if (type_ != Type::Float && type_ != Type::Scaled && other_plain && other->is_float()) {
      constexpr int64_t kDenominator = 1024;
      const double factor = specialized(other), product = factor * kDenominator;
      if (product == std::floor(product) && std::abs(product) < 1e9) {
        const int64_t numerator = static_cast<int64_t>(product), common = std::gcd(numerator, kDenominator);
        const sym::ExprId below = pool().constant(kDenominator / common);
        return ratio(pool().mul(expr_, pool().constant(numerator / common)),
                     type_ == Type::Ratio ? pool().mul(denominator_, below) : below);
      }
      if (type_ == Type::Int || pool().is_const(denominator_, 1)) return scaled(factor);
    }
    if (type_ == Type::Float && mine != nullptr && mine->type_ == Type::Ratio) return other->mul(clone());
    if (c10::SymNode value = value_op(other, &multiply_tensors, float_ops::kMultiply)) return value;
    return float_op(other, float_ops::kMultiply.apply);
  }
  const sym::ExprId theirs = operand(other);
  require_room(theirs, [](int64_t a, int64_t b) { return __builtin_mul_overflow(a, b, &a); });
  return make(Type::Int, pool().mul(expr_, theirs));
}
c10::SymNode SymNode::truediv(const c10::SymNode& other) {
  const SymNode* by = ours(other);
  const auto divided = [](double a, double b) {
    return b != 0 ? float_ops::kDivide.apply(a, b) : throw DivisionByZero("float division by zero");
  };
  if (by != nullptr && by->type_ == Type::Float && by->value_ == 0) divided(0, 0);  // for any dividend
  const bool made_of_sizes = by != nullptr && by->type_ != Type::Float && by->type_ != Type::Value;
  // A whole number divides as an int does.
  const bool whole_number = type_ == Type::Int || (type_ == Type::Ratio && pool().is_const(denominator_, 1));
  if (whole_number && by != nullptr && by->type_ == Type::Float && by->value_ > 0)
    if (const std::optional<Quotient> whole = by->quotient()) return ratio(expr_, whole->numerator);
  if (involves_float(other) && made_of_sizes) divisor(*env_, by->expr_, "float division by zero");
  if (by != nullptr && by->type_ == Type::Value && by->known_) {
    const std::optional<bool> is_zero = ours(other)->decided(number(0), FloatRelation::Equal);
    if (is_zero.value_or(false)) throw DivisionByZero("float division by zero");
    if (is_zero)
      if (c10::SymNode value = value_op(other, &divide_tensors, float_ops::kDivide)) return value;
  }
  if (made_of_sizes ? involves_float(other) : by != nullptr && by->type_ == Type::Float && by->value_ != 0)
    if (c10::SymNode value = value_op(other, &divide_tensors, float_ops::kDivide)) return value;
  if (involves_float(other)) return float_op(other, divided);
  return ratio(expr_, divisor(*env_, operand(other), "division by zero"));
}
c10::SymNode SymNode::floordiv(const c10::SymNode& other) {
  if (involves_float(other)) return float_op(other, float_ops::kFloorDivide.apply);
  return make(Type::Int, pool().floor_div(expr_, divisor(*env_, operand(other), "integer division or modulo by zero")));
}
c10::SymNode SymNode::mod(const c10::SymNode& other) {
  if (involves_float(other)) return float_op(other, float_ops::kRemainder.apply);
  return make(Type::Int, pool().mod(expr_, divisor(*env_, operand(other), "integer modulo by zero")));
}
// A positive size to a numeric power is a Value; a look at it specializes the size (look()).
c10::SymNode SymNode::pow(const c10::SymNode& other) {
  const SymNode* exponent = ours(other);
  const bool is_size = type_ == Type::Int || (type_ == Type::Ratio && pool().is_const(denominator_, 1));
  if (can_be_value() && is_size && exponent != nullptr && exponent->type_ == Type::Float && exponent->value_ != 0 &&
      env_->evaluate(pool().ge(expr_, pool().constant(1)), [] { return current_reason(); }).value_or(false)) {
    std::optional<Known> known = as_known();
    if (known) {
      known->made_by = FloatExpr::make(float_ops::kPower, known->made_by, FloatExpr::constant(exponent->value_));
      known->number = std::pow(known->number, exponent->value_);
    }
    return make_value(env_, at::pow(as_tensor(), exponent->value_), std::move(known));
  }
  if (c10::SymNode value = power_of_values(other)) return value;
  return float_op(other, [](double a, double b) {
    if (a == 0 && b < 0) throw DivisionByZero("0.0 cannot be raised to a negative power");
    const double power = std::pow(a, b);
    if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) throw BeyondInt64("a power beyond a double");
    return power;
  });
}
c10::SymNode SymNode::pow_by_natural(const c10::SymNode& other) {
  if (SymNode* exponent = ours(other); exponent != nullptr && !pool().is_const(env_->simplify(exponent->expr_)))
    if (c10::SymNode power = computed(float_ops::kIntPower, exponent)) return power;
  const int64_t exponent = other->guard_int(__FILE__, __LINE__);
  sym::ExprId result = pool().constant(1);
  for (int64_t i = 0; i < exponent; ++i) {
    require_room(result, [](int64_t a, int64_t b) { return __builtin_mul_overflow(a, b, &a); });
    result = pool().mul(result, expr_);
  }
  return make(Type::Int, result);
}

// this (relation) other <=> mine (relation) theirs, for quotients of positive sizes and whole numbers.
std::optional<SymNode::Compared> SymNode::cross_multiplied(const c10::SymNode& other) {
  if (!involves_float(other)) return std::nullopt;
  const SymNode* theirs = ours(other);
  if (theirs == nullptr || (type_ != Type::Ratio && theirs->type_ != Type::Ratio)) return std::nullopt;
  const std::optional<Quotient> a = quotient(), b = theirs->quotient();
  if (!a || !b) return std::nullopt;
  const sym::ExprId zero = pool().constant(0);
  for (const sym::ExprId divisor : {a->denominator, b->denominator})
    if (!env_->evaluate(pool().gt(divisor, zero), [] { return current_reason(); }).value_or(false)) return std::nullopt;
  return Compared{pool().mul(a->numerator, b->denominator), pool().mul(b->numerator, a->denominator)};
}

std::optional<SymNode::Quotient> SymNode::quotient() const {
  if (type_ == Type::Ratio) return Quotient{expr_, denominator_};
  if (type_ == Type::Scaled || type_ == Type::Value) return std::nullopt;
  if (type_ != Type::Float) return Quotient{expr_, pool().constant(1)};
  constexpr double kExact = 1 << 30;
  if (value_ != std::floor(value_) || std::abs(value_) > kExact) return std::nullopt;
  return Quotient{pool().constant(static_cast<int64_t>(value_)), pool().constant(1)};
}

// An int of the caller may be negative; if it is not, this becomes a guard.
bool SymNode::known_size() {
  if (env_->range(expr_).lo >= 0) return true;
  const std::optional<int64_t> hint = env_->hint(expr_);
  if (!hint || *hint < 0) return false;
  return env_->evaluate(pool().ge(expr_, pool().constant(0)), [] { return current_reason(); }).value_or(false);
}

// `holds` of (size or size * factor, number) changes only once as the size grows. The point of change becomes a bound
// on the size.
c10::SymNode SymNode::against_number(const c10::SymNode& other, const std::function<bool(double, double)>& holds) {
  const auto* theirs = dynamic_cast<SymNode*>(other.get());
  if (theirs == nullptr || theirs->type_ != Type::Float || type_ == Type::Float || type_ == Type::Bool ||
      type_ == Type::Value)
    return {};
  if (type_ == Type::Ratio && !pool().is_const(denominator_, 1)) return {};
  if (!known_size()) return {};
  const double factor = type_ == Type::Scaled ? value_ : 1.0;
  const bool at_zero = holds(0.0 * factor, theirs->value_);
  const std::optional<int64_t> turn =
      sym::first_size([&](double n) { return holds(n * factor, theirs->value_) != at_zero; });
  if (!turn) return wrap_bool(at_zero);
  const sym::ExprId bound = pool().constant(*turn);
  return make(Type::Bool, at_zero ? pool().lt(expr_, bound) : pool().ge(expr_, bound));
}

template <class Holds>
c10::SymNode SymNode::compare(const c10::SymNode& other, Relation relation, FloatRelation of_floats, Holds&& holds) {
  if (const std::optional<Compared> c = cross_multiplied(other))
    return make(Type::Bool, (pool().*relation)(c->mine, c->theirs));
  if (relation != &sym::ExprPool::eq && relation != &sym::ExprPool::ne) {
    if (c10::SymNode bound = against_number(other, holds)) return bound;
    SymNode* theirs = ours(other);
    const auto turned = [&](double a, double b) { return holds(b, a); };
    if (c10::SymNode bound = theirs != nullptr ? theirs->against_number(clone(), turned) : c10::SymNode()) return bound;
  }
  if (involves_float(other)) {
    if (const std::optional<bool> answer = decided(other, of_floats)) return wrap_bool(*answer);
    return wrap_bool(holds(specialized(clone()), specialized(other)));
  }
  return make(Type::Bool, (pool().*relation)(expr_, operand(other)));
}

c10::SymNode SymNode::eq(const c10::SymNode& other) {
  return compare(other, &sym::ExprPool::eq, FloatRelation::Equal, std::equal_to<double>());
}
c10::SymNode SymNode::ne(const c10::SymNode& other) {
  return compare(other, &sym::ExprPool::ne, FloatRelation::NotEqual, std::not_equal_to<double>());
}
c10::SymNode SymNode::gt(const c10::SymNode& other) {
  return compare(other, &sym::ExprPool::gt, FloatRelation::Greater, std::greater<double>());
}
c10::SymNode SymNode::lt(const c10::SymNode& other) {
  return compare(other, &sym::ExprPool::lt, FloatRelation::Less, std::less<double>());
}
c10::SymNode SymNode::le(const c10::SymNode& other) {
  return compare(other, &sym::ExprPool::le, FloatRelation::LessOrEqual, std::less_equal<double>());
}
c10::SymNode SymNode::ge(const c10::SymNode& other) {
  return compare(other, &sym::ExprPool::ge, FloatRelation::GreaterOrEqual, std::greater_equal<double>());
}
// Python's comparison order, which matters for NaN.
static at::Tensor least_of_tensors(const at::Tensor& a, const at::Tensor& b) { return at::where(b < a, b, a); }
static at::Tensor greatest_of_tensors(const at::Tensor& a, const at::Tensor& b) { return at::where(b > a, b, a); }

c10::SymNode SymNode::extremum(const c10::SymNode& other, Relation of_sizes, TensorOp of_tensors, const FloatOp& op) {
  SymNode* const theirs = ours(other);
  if (type_ == Type::Value || (theirs != nullptr && theirs->type_ == Type::Value))
    if (c10::SymNode value = value_op(other, of_tensors, op)) return value;
  if (involves_float(other)) return float_op(other, op.apply);
  return make(Type::Int, (pool().*of_sizes)(expr_, operand(other)));
}
c10::SymNode SymNode::sym_min(const c10::SymNode& other) {
  return extremum(other, &sym::ExprPool::min, &least_of_tensors, float_ops::kMin);
}
c10::SymNode SymNode::sym_max(const c10::SymNode& other) {
  return extremum(other, &sym::ExprPool::max, &greatest_of_tensors, float_ops::kMax);
}
c10::SymNode SymNode::sym_or(const c10::SymNode& other) {
  return make(Type::Bool, pool().logical_or(expr_, operand(other)));
}
c10::SymNode SymNode::sym_and(const c10::SymNode& other) {
  return make(Type::Bool, pool().logical_and(expr_, operand(other)));
}
c10::SymNode SymNode::sym_not() { return make(Type::Bool, pool().logical_not(expr_)); }
c10::SymNode SymNode::sym_ite(const c10::SymNode& then_value, const c10::SymNode& else_value) {
  return guard_bool(__FILE__, __LINE__) ? then_value : else_value;
}
c10::SymNode SymNode::neg() {
  if (type_ == Type::Value) return number(-1)->mul(clone());
  if (type_ == Type::Float) return number(-value_);
  if (type_ == Type::Ratio) return ratio(pool().neg(expr_), denominator_);
  if (type_ == Type::Scaled) return scaled(-value_);
  return make(Type::Int, pool().neg(expr_));
}
c10::SymNode SymNode::scaled(double factor) const {
  return c10::make_intrusive<SymNode>(env_, Type::Scaled, expr_, sym::ExprId{}, factor);
}

// floor or ceil of size * factor. Where no fraction gives the exact result for this size, the size is specialized.
c10::SymNode SymNode::rounded_product(bool up) {
  const std::optional<sym::Scale> scale = known_size() ? sym::scale_of(value_, up) : std::nullopt;
  const auto why = [] { return current_reason(); };
  if (scale && (scale->below == sym::kLargestScaled ||
                env_->evaluate(pool().lt(expr_, pool().constant(scale->below)), why).value_or(false))) {
    const sym::ExprId product = pool().mul(expr_, pool().constant(scale->numerator));
    const sym::ExprId denominator = pool().constant(scale->denominator);
    return make(Type::Int, up ? pool().ceil_div(product, denominator) : pool().floor_div(product, denominator));
  }
  if (c10::SymNode symbol = computed(up ? float_ops::kCeil : float_ops::kFloor, nullptr)) return symbol;
  const double product = guard_float(__FILE__, __LINE__);
  return make(Type::Int, pool().constant(as_int64(up ? std::ceil(product) : std::floor(product))));
}

c10::SymNode SymNode::ceil() {
  if (type_ == Type::Value) return whole(float_ops::kCeil);
  if (type_ == Type::Scaled) return rounded_product(true);
  if (type_ == Type::Ratio) return make(Type::Int, pool().ceil_div(expr_, denominator_));
  if (type_ == Type::Float) return make(Type::Int, pool().constant(as_int64(std::ceil(value_))));
  return clone();
}
c10::SymNode SymNode::floor() {
  if (type_ == Type::Value) return whole(float_ops::kFloor);
  if (type_ == Type::Scaled) return rounded_product(false);
  if (type_ == Type::Ratio) return make(Type::Int, pool().floor_div(expr_, denominator_));
  if (type_ == Type::Float) return make(Type::Int, pool().constant(as_int64(std::floor(value_))));
  return clone();
}
c10::SymNode SymNode::sym_float() {
  if (is_float()) return clone();
  return ratio(expr_, pool().constant(1));
}
c10::SymNode SymNode::clone() {
  auto copy = c10::make_intrusive<SymNode>(env_, type_, expr_, denominator_, value_);
  copy->tensor_ = tensor_;
  copy->known_ = known_;
  return copy;
}
c10::SymNode SymNode::wrap_int(int64_t value) { return make(Type::Int, pool().constant(value)); }
c10::SymNode SymNode::wrap_float(double value) { return number(value); }
c10::SymNode SymNode::wrap_bool(bool value) { return make(Type::Bool, pool().constant(value ? 1 : 0)); }

namespace {

std::vector<sym::ExprId> expressions(const SymNode::Env& env, c10::ArrayRef<c10::SymNode> nodes) {
  std::vector<sym::ExprId> out;
  for (const c10::SymNode& node : nodes) {
    SymNode* mine = ours(node);
    out.push_back(mine != nullptr ? mine->expr() : env->pool().constant(node->guard_int(__FILE__, __LINE__)));
  }
  return out;
}

}  // namespace

c10::SymNode SymNode::is_contiguous(c10::ArrayRef<c10::SymNode> sizes, c10::ArrayRef<c10::SymNode> strides) {
  return wrap_bool(geometry::is_contiguous(*env_, expressions(env_, sizes), expressions(env_, strides)));
}
c10::SymNode SymNode::is_channels_last_contiguous_2d(c10::ArrayRef<c10::SymNode> sizes,
                                                     c10::ArrayRef<c10::SymNode> strides) {
  return wrap_bool(geometry::is_channels_last(*env_, expressions(env_, sizes), expressions(env_, strides), 4));
}
c10::SymNode SymNode::is_channels_last_contiguous_3d(c10::ArrayRef<c10::SymNode> sizes,
                                                     c10::ArrayRef<c10::SymNode> strides) {
  return wrap_bool(geometry::is_channels_last(*env_, expressions(env_, sizes), expressions(env_, strides), 5));
}
c10::SymNode SymNode::is_channels_last_strides_2d(c10::ArrayRef<c10::SymNode> sizes,
                                                  c10::ArrayRef<c10::SymNode> strides) {
  return wrap_bool(geometry::is_channels_last_like(*env_, expressions(env_, sizes), expressions(env_, strides), 4));
}
c10::SymNode SymNode::is_channels_last_strides_3d(c10::ArrayRef<c10::SymNode> sizes,
                                                  c10::ArrayRef<c10::SymNode> strides) {
  return wrap_bool(geometry::is_channels_last_like(*env_, expressions(env_, sizes), expressions(env_, strides), 5));
}
c10::SymNode SymNode::is_non_overlapping_and_dense(c10::ArrayRef<c10::SymNode> sizes,
                                                   c10::ArrayRef<c10::SymNode> strides) {
  return wrap_bool(geometry::is_non_overlapping_and_dense(*env_, expressions(env_, sizes), expressions(env_, strides)));
}

// The value of `expr` in this call, guarded when a caller's sizes determine it.
int64_t SymNode::known(sym::ExprId expr) {
  if (const std::optional<int64_t> value = env_->specialize(expr, current_reason())) return *value;
  const std::optional<int64_t> value = made_known(env_, expr) ? env_->hint(expr) : std::nullopt;
  if (!value) data_dependent(*env_, expr);
  return *value;
}

int64_t SymNode::guard_int(const char*, int64_t) {
  if (type_ == Type::Float) return as_int64(std::trunc(value_));
  if (type_ == Type::Value) return rounded(float_ops::kTruncate);
  if (type_ == Type::Ratio || type_ == Type::Scaled) return truncated();
  return known(expr_);
}

// int() of a float made of sizes: specializes only the whole number, not the sizes, where int() rounds down.
int64_t SymNode::truncated() {
  const bool positive = known_size() && (type_ == Type::Scaled ? value_ > 0 : env_->range(denominator_).lo > 0);
  if (!positive) return as_int64(std::trunc(guard_float(__FILE__, __LINE__)));
  return floor()->guard_int(__FILE__, __LINE__);
}

// The derivative of a strided view tests each size for 0 or 1, to leave out dimensions, and compares strides, to find
// shared elements. Its behavior for general sizes is right for these sizes, too.
static bool differentiates_strided_view() {
  const auto node = torch::autograd::get_current_node();
  // 0, 1: the versions of the class, by the function which made it.
  return node != nullptr && node->name().starts_with("AsStridedBackward");
}

// The length of y[:n] with a data-dependent n has a formula which may be 0 or 1; this test is answered, too.
static std::optional<bool> answer_to_strided_view(sym::ShapeEnv& env, sym::ExprId condition) {
  if (const std::optional<bool> answer = sym::known_for_general_sizes(env, condition)) return answer;
  const sym::ExprPool& pool = env.pool();
  if (pool[condition].kind != sym::Kind::Eq || env.hint(condition)) return std::nullopt;
  const auto sides = pool.operands(condition);
  const auto is_short = [&](sym::ExprId e) { return pool.is_const(e, 0) || pool.is_const(e, 1); };
  return is_short(sides[0]) || is_short(sides[1]) ? std::optional(false) : std::nullopt;
}

bool SymNode::guard_bool(const char*, int64_t) {
  if (type_ == Type::Bool && !env_->statically_known(expr_) && differentiates_strided_view())
    if (const std::optional<bool> answer = answer_to_strided_view(*env_, expr_)) return *answer;
  if (type_ == Type::Value)
    if (const std::optional<bool> answer = decided(number(0), FloatRelation::NotEqual)) return *answer;
  if (is_float()) return guard_float(__FILE__, __LINE__) != 0;
  if (EitherWay::has(expr_) && !env_->statically_known(expr_)) return false;
  if (const std::optional<bool> value = env_->evaluate(expr_, [] { return current_reason(); })) return *value;
  if (const std::optional<bool> value = general_answer()) return *value;
  return known(expr_) != 0;
}

std::optional<bool> SymNode::general_answer() {
  if (!SizeOblivious::active()) return std::nullopt;
  std::vector<sym::VarId> vars;
  pool().collect_vars(expr_, vars);
  if (!std::all_of(vars.begin(), vars.end(), SizeOblivious::is_about)) return std::nullopt;
  const std::optional<bool> answer = sym::known_for_general_sizes(*env_, expr_);
  if (!answer) return std::nullopt;
  const sym::ExprId taken = *answer ? expr_ : pool().logical_not(expr_);
  return env_->assume(taken, "a size that data gives is no general one: " + env_->to_string(taken)) ? answer
                                                                                                    : std::nullopt;
}

double SymNode::guard_float(const char*, int64_t) {
  if (type_ == Type::Float) return value_;
  if (type_ == Type::Value) return look();
  if (type_ == Type::Ratio)
    if (const std::optional<double> whole = whole_ratio()) return *whole;
  if (type_ == Type::Ratio) ask(env_, denominator_);
  const double numerator = static_cast<double>(known(expr_));
  if (type_ == Type::Scaled) return numerator * value_;
  return type_ == Type::Ratio ? numerator / static_cast<double>(known(denominator_)) : numerator;
}

// A ratio which is whole by the hints is guarded as numerator == whole * denominator, so both sizes stay free.
std::optional<double> SymNode::whole_ratio() {
  const std::optional<int64_t> n = env_->hint(expr_), d = env_->hint(denominator_);
  if (!n || !d || *d == 0 || *n % *d != 0) return std::nullopt;
  const auto why = [] { return current_reason(); };
  const sym::ExprId zero = pool().constant(0), multiple = pool().mul(denominator_, pool().constant(*n / *d));
  if (!env_->evaluate(pool().ne(denominator_, zero), why).value_or(false)) return std::nullopt;
  if (!env_->evaluate(pool().eq(expr_, multiple), why).value_or(false)) return std::nullopt;
  return static_cast<double>(*n / *d);
}

// Whether the condition is ATen's broadcast test: "Is this size 1?" for a size which a guard distinguishes from another
// size. ATen reports an error if the size is not 1.
static bool is_broadcast(sym::ShapeEnv& env, sym::ExprId condition) {
  const sym::ExprPool& pool = env.pool();
  if (pool[condition].kind != sym::Kind::Eq) return false;
  const auto sides = pool.operands(condition);
  if (!pool.is_const(sides[0], 1) && !pool.is_const(sides[1], 1)) return false;
  const sym::ExprId size = pool.is_const(sides[0], 1) ? sides[1] : sides[0];
  std::vector<sym::VarId> own;  // n - 2 always differs from n, which proves nothing
  pool.collect_vars(size, own);
  const auto differs_from_symbol = [&](const sym::Symbol& symbol) {
    if (std::find(own.begin(), own.end(), symbol.var) != own.end()) return false;
    return env.known_not_equal(size, env.pool().var(symbol.var));
  };
  // A guard against 0 proves nothing.
  const auto is_size = [&](sym::ExprId e) { return pool.is_const(e) && pool.const_value(e) >= 2; };
  const auto differs_from_number = [&](const sym::SizeGuard& guard) {
    if (pool[guard.condition].kind != sym::Kind::Ne) return false;
    const auto differ = pool.operands(guard.condition);
    return (differ[0] == size && is_size(differ[1])) || (differ[1] == size && is_size(differ[0]));
  };
  return std::any_of(env.guards().begin(), env.guards().end(), differs_from_number) ||
         std::any_of(env.symbols().begin(), env.symbols().end(), differs_from_symbol);
}

// Whether the condition tests a computed size for 1 (n - 2 == 1 is written n == 3) to see whether a gradient was
// broadcast. If the forward program broadcast the tensor, it has guarded this size against another size. Otherwise the
// gradient has the size of its tensor.
static bool asks_gradient(sym::ShapeEnv& env, sym::ExprId condition) {
  sym::ExprPool& pool = env.pool();
  if (!SizeOblivious::differentiates() || pool[condition].kind != sym::Kind::Eq) return false;
  const auto sides = pool.operands(condition);
  if (!pool.is_const(sides[0]) && !pool.is_const(sides[1])) return false;
  const sym::ExprId size = pool.is_const(sides[0]) ? sides[1] : sides[0];
  std::vector<sym::VarId> own, left;
  pool.collect_vars(size, own);
  const auto is_own = [&](sym::VarId var) { return std::find(own.begin(), own.end(), var) != own.end(); };
  const auto is_without = [&](sym::ExprId difference) {
    left.clear();
    pool.collect_vars(difference, left);
    return std::none_of(left.begin(), left.end(), is_own);
  };
  for (const sym::SizeGuard& guard : env.guards()) {
    if (pool[guard.condition].kind != sym::Kind::Ne) continue;
    const auto differ = pool.operands(guard.condition);
    const sym::ExprId apart = pool.sub(differ[0], differ[1]);
    if (is_without(pool.sub(apart, size)) || is_without(pool.add(apart, size))) return false;
  }
  return true;
}

// The next four may answer without a guard, since the caller is right with either answer. If only sizes 0 and 1 could
// change the answer, they answer for general sizes, which keeps a first call at batch 1 general. Any other answer comes
// from the hint, with a guard: a write to the result shows whether a reshape made a view.
bool SymNode::guard_size_oblivious(const char* file, int64_t line) {
  if (const std::optional<bool> known = env_->statically_known(expr_)) return *known;
  if (const std::optional<bool> known = sym::known_for_general_sizes(*env_, expr_))
    return ViewOrCopy::answered(expr_, *known), *known;
  return guard_bool(file, line);
}
bool SymNode::guard_or_false(const char* file, int64_t line) {
  if (const std::optional<bool> known = env_->statically_known(expr_)) return *known;
  const std::optional<int64_t> hint = env_->hint(expr_);
  if (!hint || *hint == 0) return ViewOrCopy::answered(expr_, false), false;
  const bool possible = sym::known_for_general_sizes(*env_, expr_).value_or(!asks_gradient(*env_, expr_));
  if (!possible && !is_broadcast(*env_, expr_)) return ViewOrCopy::answered(expr_, false), false;
  return guard_bool(file, line);
}
bool SymNode::guard_or_true(const char* file, int64_t line) {
  if (const std::optional<bool> known = env_->statically_known(expr_)) return *known;
  if (!env_->hint(expr_) || sym::known_for_general_sizes(*env_, expr_).value_or(false))
    return ViewOrCopy::answered(expr_, true), true;
  return guard_bool(file, line);
}
bool SymNode::statically_known_true(const char*, int64_t) { return env_->known_true(expr_); }

// A condition which must hold: an assertion at run time. When it fails, eager mode runs the call and raises its own
// error.
bool SymNode::expect_true(const char* file, int64_t line) { return expect(file, line, nullptr); }

bool SymNode::expect(const char* file, int64_t line, const std::function<std::string()>& message) {
  if (const std::optional<bool> known = env_->statically_known(expr_)) return *known;
  const std::optional<int64_t> hint = env_->hint(expr_);
  if (hint == 0) return guard_bool(file, line);  // raises; code after the error must not become the general case
  std::string text = "a condition does not hold: " + env_->to_string(expr_);
  Capture* capture = Capture::current();
  if (hint || capture == nullptr || capture->closed() || capture->env_ptr() != env_) {
    env_->assume(expr_, std::move(text));
  } else {
    capture->recorder().state(expr_, message != nullptr ? message() : std::move(text));
  }
  return true;
}

std::optional<int64_t> SymNode::maybe_as_int() {
  if (type_ != Type::Int) return std::nullopt;
  const sym::ExprId e = env_->simplify(expr_);
  if (pool().is_const(e)) return pool().const_value(e);
  return std::nullopt;
}

// In Python's format.
static std::string text_of(double value, bool truth) {
  if (truth) return value != 0 ? "True" : "False";
  std::string text = fmt::format("{}", value);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

// A program may depend on the string of a number, and messages of eager mode contain numbers.
std::string SymNode::str() {
  if (type_ == Type::Int && (env_->hint(expr_) || made_known(env_, expr_))) {
    const MakingString text;
    return std::to_string(guard_int(__FILE__, __LINE__));
  }
  if (type_ == Type::Bool && (env_->hint(expr_) || made_known(env_, expr_))) {
    const MakingString text;
    return guard_bool(__FILE__, __LINE__) ? "True" : "False";
  }
  if (type_ == Type::Float) return text_of(value_, false);
  if (type_ == Type::Value) return text_of(look(), tensor_.scalar_type() == at::kBool);
  if (type_ == Type::Ratio) return env_->to_string(expr_) + " / " + env_->to_string(denominator_);
  if (type_ == Type::Scaled) return env_->to_string(expr_) + " * " + std::to_string(value_);
  return env_->to_string(expr_);
}

}  // namespace cresset::bridge
