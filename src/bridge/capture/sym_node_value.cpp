// Floats from a caller or from data: float64 tensors with a single element in the graph, whose arithmetic is Python's.
#include <ATen/ops/acos.h>
#include <ATen/ops/add.h>
#include <ATen/ops/asin.h>
#include <ATen/ops/asinh.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cosh.h>
#include <ATen/ops/div.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/erfc.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/full.h>
#include <ATen/ops/lgamma.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sinh.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tan.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <cmath>

#include "bridge/capture/capture.h"
#include "bridge/capture/input_proxy.h"
#include "bridge/capture/sym_node.h"
#include "bridge/capture/symbolic_float.h"

namespace cresset::bridge {
namespace {

SymNode* ours_of(const c10::SymNode& node) { return dynamic_cast<SymNode*>(node.get()); }

c10::SymNode (*unwrap)(const c10::SymNode&) = nullptr;

}  // namespace

void set_unwrapper(c10::SymNode (*function)(const c10::SymNode&)) { unwrap = function; }
c10::SymNode unwrapped(const c10::SymNode& node) {
  return ours_of(node) == nullptr && unwrap != nullptr ? unwrap(node) : node;
}

c10::SymNode float_in(Capture& capture, const at::Tensor& tensor, bool only_given) {
  if (capture.closed() || !at::isFloatingType(tensor.scalar_type()) || !tensor.is_cpu()) return {};
  TraceTensor* const trace = TraceTensor::from(tensor);
  if (trace == nullptr && !InputProxy::possible(tensor)) return {};
  if (!tensor.sym_numel().sym_eq(1).guard_bool(__FILE__, __LINE__)) return {};
  const auto given = [&](TraceTensor* of) {
    return of != nullptr && capture.decides_on_input_scalars ? capture.recorder().input_scalar(capture.value_of(*of))
                                                             : nullptr;
  };
  FloatExpr::Ref made = given(trace);
  if (made == nullptr && trace != nullptr && only_given) return {};
  const at::NoGradGuard no_grad;
  // A copy, so the number keeps its value when the tensor is written.
  const at::Tensor number = tensor.detach().reshape({}).to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  if (trace == nullptr) made = given(TraceTensor::from(number));
  if (made == nullptr)
    return only_given ? c10::SymNode() : SymNode::make_value(capture.env_ptr(), number, std::nullopt);
  return SymNode::make_value(capture.env_ptr(), number, SymNode::Known{made->number, 0, {}, made, /*of_data=*/true});
}

at::Tensor add_tensors(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
at::Tensor subtract_tensors(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }
at::Tensor multiply_tensors(const at::Tensor& a, const at::Tensor& b) { return at::mul(a, b); }
at::Tensor divide_tensors(const at::Tensor& a, const at::Tensor& b) { return at::div(a, b); }
at::Tensor power_tensors(const at::Tensor& a, const at::Tensor& b) { return at::pow(a, b); }
at::Tensor floor_divide_tensors(const at::Tensor& a, const at::Tensor& b) { return at::floor_divide(a, b); }
// Python's zero result has the divisor's sign.
at::Tensor remainder_tensors(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor out = at::remainder(a, b);
  return at::where(at::eq(out, 0), at::copysign(at::zeros_like(out), b), out);
}

c10::SymNode SymNode::make_value(const Env& env, at::Tensor tensor, std::optional<Known> known) {
  auto node = c10::make_intrusive<SymNode>(env, Type::Value, env->pool().constant(0));
  node->tensor_ = std::move(tensor);
  node->known_ = std::move(known);
  return node;
}

// Notes the number, so that values derived from it through a tensor are known, too. Numbers with sizes are excluded,
// because look() specializes the sizes.
void SymNode::tell_number() const {
  if (!known_ || known_->made_by == nullptr || !known_->sizes.empty()) return;
  Capture* const capture = Capture::current();
  TraceTensor* const trace = TraceTensor::from(tensor_);
  if (capture == nullptr || trace == nullptr || !capture->decides_on_input_scalars || capture->closed() ||
      capture->env_ptr() != env_)
    return;
  capture->note_number(*trace, known_->made_by);
}

at::Tensor SymNode::tensor_of(const c10::SymNode& given) {
  const c10::SymNode node = unwrapped(given);
  const SymNode* mine = ours_of(node);
  if (mine == nullptr || mine->type_ != Type::Value) return {};
  const TraceTensor* trace = TraceTensor::from(mine->tensor_);
  return trace != nullptr && !trace->settled() ? mine->tensor_ : at::Tensor();
}

at::Tensor SymNode::operand_of(const c10::SymNode& given) {
  const c10::SymNode node = unwrapped(given);
  SymNode* mine = ours_of(node);
  // A number may outlive its capture, for instance in the closure of a hook; then it is a plain number.
  if (mine != nullptr && mine->known_ && (Capture::current() == nullptr || Capture::current()->env_ptr() != mine->env_))
    return {};
  if (at::Tensor tensor = tensor_of(given); tensor.defined()) return tensor;
  if (mine == nullptr || !mine->of_sizes() || !mine->can_be_value()) return {};
  const auto is_known = [&](sym::ExprId e) { return !e.valid() || mine->pool().is_const(mine->env_->simplify(e)); };
  if (is_known(mine->expr_) && is_known(mine->denominator_)) return {};
  return mine->as_tensor();
}

// Whether the number may become a part of the graph. A later look at the number must be able to end the segment, or to
// fail the enclosing subgraph (such as the backward subgraph).
bool SymNode::can_be_value() const {
  const Capture* capture = Capture::current();
  if (capture == nullptr || capture->closed() || capture->env_ptr() != env_) return false;
  return capture->ends_in_order() || capture->subgraphs().in_subgraph();
}

at::Tensor SymNode::as_tensor() {
  const auto f64 = at::TensorOptions().dtype(at::kDouble);
  if (type_ == Type::Value) return tensor_;
  if (type_ == Type::Float) return at::scalar_tensor(value_, f64);
  const auto whole = [&](sym::ExprId e) { return at::full({}, at::Scalar(make_int(env_, e)), f64); };
  const at::Tensor number = whole(expr_);
  if (type_ == Type::Scaled) return at::mul(number, value_);
  return type_ == Type::Int || pool().is_const(denominator_, 1) ? number : at::div(number, whole(denominator_));
}

std::optional<SymNode::Known> SymNode::as_known() {
  if (type_ == Type::Value) return known_;
  if (type_ == Type::Float) return Known{value_, 0, {}, FloatExpr::constant(value_)};
  const std::optional<int64_t> above = env_->hint(expr_);
  const std::optional<int64_t> below = denominator_.valid() ? env_->hint(denominator_) : 1;
  if (!above || !below) return std::nullopt;
  Known known{static_cast<double>(*above) / static_cast<double>(*below), 0, {expr_}, nullptr};
  if (type_ == Type::Scaled) known.number *= value_;
  known.made_by = FloatExpr::of_sizes(known.number, expr_, denominator_, type_ == Type::Scaled ? value_ : 1.0);
  if (denominator_.valid()) known.sizes.push_back(denominator_);
  return known;
}

c10::SymNode SymNode::value_op(const c10::SymNode& other, TensorOp op, const FloatOp& float_op) {
  SymNode* theirs = ours_of(other);
  if (theirs == nullptr || theirs->env_ != env_ || !can_be_value()) return {};
  if (!is_float() && !theirs->is_float()) return {};
  if (type_ == Type::Float && theirs->type_ == Type::Float) return {};
  if (is_bool() || theirs->is_bool()) return {};
  std::optional<Known> known;
  if (const std::optional<Known> a = as_known(), b = theirs->as_known(); a && b) {
    known = Known{float_op.apply(a->number, b->number), a->arguments | b->arguments, a->sizes,
                  FloatExpr::make(float_op, a->made_by, b->made_by)};
    known->sizes.insert(known->sizes.end(), b->sizes.begin(), b->sizes.end());
    known->of_data = a->of_data || b->of_data;
  }
  c10::SymNode value = make_value(env_, op(as_tensor(), theirs->as_tensor()), std::move(known));
  ours_of(value)->tell_number();
  return value;
}

namespace {

struct Function {
  FloatOp op;
  at::Tensor (*of_tensor)(const at::Tensor&);
};

const Function* function_named(std::string_view name) {
#define CRESSET_FUNCTION(name) \
  {{[](double a, double) { return std::name(a); }, #name}, [](const at::Tensor& t) { return at::name(t); }}
  static const Function table[] = {CRESSET_FUNCTION(sqrt),  CRESSET_FUNCTION(exp),  CRESSET_FUNCTION(expm1),
                                   CRESSET_FUNCTION(log),   CRESSET_FUNCTION(log2), CRESSET_FUNCTION(log10),
                                   CRESSET_FUNCTION(log1p), CRESSET_FUNCTION(cos),  CRESSET_FUNCTION(sin),
                                   CRESSET_FUNCTION(tan),   CRESSET_FUNCTION(tanh), CRESSET_FUNCTION(atan),
                                   CRESSET_FUNCTION(sinh),  CRESSET_FUNCTION(cosh), CRESSET_FUNCTION(asinh),
                                   CRESSET_FUNCTION(acos),  CRESSET_FUNCTION(asin), CRESSET_FUNCTION(erf),
                                   CRESSET_FUNCTION(erfc),  CRESSET_FUNCTION(exp2), CRESSET_FUNCTION(lgamma)};
#undef CRESSET_FUNCTION
  for (const Function& function : table)
    if (name == function.op.name) return &function;
  return nullptr;
}

}  // namespace

std::optional<bool> SymNode::is_finite() {
  std::optional<Known> gap = as_known();
  if (!gap || gap->made_by == nullptr || !std::isfinite(gap->number)) return std::nullopt;
  gap->made_by = FloatExpr::make(float_ops::kSubtract, gap->made_by, gap->made_by);
  gap->number = 0;
  const c10::SymNode node = make_value(env_, as_tensor(), std::move(gap));
  return ours_of(node)->decided(number(0), FloatRelation::Equal);
}

c10::SymNode SymNode::root_of_size() {
  // Python raises for a negative operand, so it must be proved not negative.
  const bool positive_scale = type_ == Type::Int || (type_ == Type::Scaled && value_ > 0) ||
                              (type_ == Type::Ratio && env_->range(denominator_).lo > 0);
  if (!positive_scale || !known_size()) return {};
  std::optional<Known> known = as_known();
  if (known) {
    known->number = std::sqrt(known->number);
    known->made_by = FloatExpr::make(float_ops::kSqrt, known->made_by, known->made_by);
  }
  return make_value(env_, at::sqrt(as_tensor()), std::move(known));
}

// A finite result proves that Python does not raise.
c10::SymNode SymNode::function_of(std::string_view name, const c10::SymNode& given) {
  const c10::SymNode node = unwrapped(given);
  SymNode* mine = ours_of(node);
  const Function* const function = function_named(name);
  if (function == nullptr || mine == nullptr || mine->is_bool() || !mine->can_be_value()) return {};
  if (name == "sqrt" && mine->type_ != Type::Value) return mine->root_of_size();
  std::optional<Known> known = mine->as_known();
  if (!known || known->made_by == nullptr) return {};
  known->number = function->op.apply(known->number, 0);
  known->made_by = FloatExpr::make(function->op, known->made_by, known->made_by);
  c10::SymNode value = make_value(mine->env_, function->of_tensor(mine->as_tensor()), std::move(known));
  ours_of(value)->tell_number();
  return ours_of(value)->is_finite().value_or(false) ? value : c10::SymNode();
}

std::optional<bool> SymNode::kind_of(std::string_view name, const c10::SymNode& given) {
  const c10::SymNode node = unwrapped(given);
  SymNode* mine = ours_of(node);
  if (mine == nullptr || mine->type_ != Type::Value || !mine->is_finite().value_or(false)) return std::nullopt;
  return name == "isfinite";
}

// Requires a positive base; for any other base Python may raise, or return a complex number.
c10::SymNode SymNode::power_of_values(const c10::SymNode& exponent) {
  if (!can_be_value()) return {};
  const bool positive = type_ == Type::Float ? value_ > 0 : decided(number(0), FloatRelation::Greater).value_or(false);
  if (!positive || (type_ == Type::Float && !std::isfinite(value_))) return {};
  c10::SymNode value = value_op(exponent, &power_tensors, float_ops::kPower);
  return value && ours_of(value)->is_finite().value_or(false) ? value : c10::SymNode();
}

std::optional<bool> SymNode::decided(const c10::SymNode& other, FloatRelation relation, bool specializes) {
  Capture* capture = Capture::current();
  SymNode* theirs = ours_of(other);
  if (capture == nullptr || capture->closed() || capture->env_ptr() != env_) return std::nullopt;
  if (theirs == nullptr || theirs->env_ != env_ || is_bool() || theirs->is_bool()) return std::nullopt;
  const std::optional<Known> a = as_known(), b = theirs->as_known();
  if (!a || !b || a->made_by == nullptr || b->made_by == nullptr) return std::nullopt;
  for (const Known* side : {&*a, &*b})
    CRESSET_CHECK(side->made_by->number == side->number || std::isnan(side->number), "a float is not what made it");
  const bool of_sizes = !a->sizes.empty() || !b->sizes.empty();
  const bool of_data = a->of_data || b->of_data;
  if ((a->arguments | b->arguments) == 0 && !of_data && !(of_sizes && capture->sizes_stay_free)) return std::nullopt;
  for (const std::vector<sym::ExprId>* sizes : {&a->sizes, &b->sizes})
    for (const sym::ExprId size : *sizes)
      if (!capture->sizes_stay_free) known(size);
  return capture->recorder().decide(a->made_by, relation, b->made_by,
                                    !of_data      ? OfData::No
                                    : specializes ? OfData::Specialization
                                                  : OfData::Decision);
}

int64_t SymNode::as_int64(double whole) {
  constexpr double kBeyond = 9223372036854775808.0;  // 2 to the 63rd
  if (!(whole >= -kBeyond && whole < kBeyond)) throw BeyondInt64("an integer beyond 64 bits");
  return static_cast<int64_t>(whole);
}

int64_t SymNode::rounded(const FloatOp& rounding) {
  constexpr double kWhole = 1LL << 53;
  if (known_ && known_->made_by != nullptr && std::abs(known_->number) < kWhole) {
    const double whole = rounding.apply(known_->number, known_->number);
    Known now = *known_;
    now.number = whole;
    now.made_by = FloatExpr::make(rounding, known_->made_by, known_->made_by);
    const c10::SymNode node = make_value(env_, tensor_, std::move(now));
    if (ours_of(node)->decided(number(whole), FloatRelation::Equal)) return static_cast<int64_t>(whole);
  }
  return as_int64(rounding.apply(look(), 0));
}

c10::SymNode SymNode::computed(const FloatOp& op, SymNode* other) {
  Capture* capture = Capture::current();
  if (capture == nullptr || capture->closed() || capture->env_ptr() != env_ || !capture->sizes_stay_free) return {};
  if (is_bool() || (other != nullptr && (other->env_ != env_ || other->is_bool()))) return {};
  const std::optional<Known> a = as_known(), b = other != nullptr ? other->as_known() : a;
  if (!a || !b || a->made_by == nullptr || b->made_by == nullptr) return {};
  const auto varies = [&](const Known& known) {
    return known.arguments != 0 || known.of_data ||
           std::any_of(known.sizes.begin(), known.sizes.end(),
                       [&](sym::ExprId size) { return !pool().is_const(env_->simplify(size)); });
  };
  if (!varies(*a) && !varies(*b)) return {};
  const FloatExpr::Ref made = FloatExpr::make(op, a->made_by, b->made_by);
  const std::optional<sym::ExprId> symbol = made != nullptr ? capture->recorder().derived_integer(made) : std::nullopt;
  return symbol ? make(Type::Int, *symbol) : c10::SymNode();
}

c10::SymNode SymNode::whole(const FloatOp& rounding) {
  if (c10::SymNode symbol = computed(rounding, nullptr)) return symbol;
  return make(Type::Int, pool().constant(rounded(rounding)));
}

c10::SymNode SymNode::whole_of(std::string_view name, const c10::SymNode& first, const c10::SymNode& second) {
  const c10::SymNode a = unwrapped(first), b = second ? unwrapped(second) : c10::SymNode();
  SymNode *const mine = ours_of(a), *const theirs = b ? ours_of(b) : nullptr;
  const FloatOp* const op = float_ops::whole_op(name);
  if (op == nullptr || mine == nullptr || (b && theirs == nullptr)) return {};
  if (name != "round" && (mine->is_float() || (theirs != nullptr && theirs->is_float()))) return {};
  return mine->computed(*op, theirs);
}

c10::SymNode SymNode::with_remainder(bool quotient, const c10::SymNode& first, const c10::SymNode& second) {
  const c10::SymNode a = unwrapped(first), b = unwrapped(second);
  SymNode *const mine = ours_of(a), *const theirs = ours_of(b);
  if (mine == nullptr || theirs == nullptr || mine->env_ != theirs->env_) return {};
  const std::optional<bool> zero = theirs->type_ == Type::Float
                                       ? std::optional(theirs->value_ == 0)
                                       : theirs->decided(theirs->number(0), FloatRelation::Equal);
  if (zero.value_or(true)) return {};
  return quotient ? mine->value_op(b, &floor_divide_tensors, float_ops::kFloorDivide)
                  : mine->value_op(b, &remainder_tensors, float_ops::kRemainder);
}

bool SymNode::is_open_float(const c10::SymNode& node) {
  const SymNode* const mine = ours_of(node);
  const Capture* const capture = Capture::current();
  if (mine == nullptr || capture == nullptr || capture->env_ptr() != mine->env_) return false;
  const auto is_open = [&](sym::ExprId size) { return !mine->pool().is_const(mine->env_->simplify(size)); };
  if (mine->type_ == Type::Ratio) return is_open(mine->expr_) || is_open(mine->denominator_);
  if (mine->type_ == Type::Scaled) return is_open(mine->expr_);
  if (mine->type_ != Type::Value || !mine->known_) return false;
  if (mine->known_->of_data) return capture->specializes_input_scalars;
  return (mine->known_->arguments & ~capture->specialized_floats) != 0 ||
         std::any_of(mine->known_->sizes.begin(), mine->known_->sizes.end(), is_open);
}

// Guards the number, and the sign of a zero.
bool SymNode::is_just_this() {
  if (!decided(number(known_->number), FloatRelation::Equal, /*pins=*/true).value_or(false)) return false;
  if (known_->number != 0) return true;
  const Known signs{
      1 / known_->number, 0, {}, FloatExpr::make(float_ops::kDivide, FloatExpr::constant(1), known_->made_by), true};
  const c10::SymNode inverse = make_value(env_, tensor_, signs);
  return ours_of(inverse)->decided(number(0), FloatRelation::Greater, /*pins=*/true).has_value();
}

double SymNode::look() {
  Capture* capture = Capture::current();
  const bool open = capture != nullptr && !capture->closed() && capture->env_ptr() == env_;
  if (known_ && !known_->of_data) {
    if (open) capture->specialized_floats |= known_->arguments;
    for (const sym::ExprId size : known_->sizes) known(size);
    return known_->number;
  }
  const bool is_given = open && known_ && capture->specializes_input_scalars;
  if (is_given && is_just_this()) {
    type_ = Type::Float;
    tensor_ = at::Tensor();
    return value_ = known_->number;
  }
  const TraceTensor* trace = TraceTensor::from(tensor_);
  if (trace != nullptr && !trace->settled() &&
      !breaks_graph(env_, [] { return std::string("a decision on a float that tensor data gives"); })) {
    if (open && known_ && is_just_this()) return known_->number;
    throw DataDependentError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                             "cresset: a decision on a float that tensor data gives");
  }
  const Capture::StepAside aside;
  return tensor_.item<double>();
}

}  // namespace cresset::bridge
