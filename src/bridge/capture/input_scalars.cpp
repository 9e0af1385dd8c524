#include "bridge/capture/input_scalars.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "bridge/aten/dtypes.h"
#include "bridge/capture/input_proxy.h"
#include "bridge/symbolic/derived_integers.h"
#include "ops/op_traits.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::ValueId;
using Ref = FloatExpr::Ref;

constexpr int kMostSteps = 64;  // limit on operators visited for a number

class Walk {
 public:
  Walk(const graph::Graph& graph, const NumbersOfValues& known, c10::ArrayRef<at::Tensor> inputs,
       c10::ArrayRef<at::Tensor> constants)
      : graph_(graph), known_(known), inputs_(inputs), constants_(constants) {}

  Ref of(ValueId id);

 private:
  Ref leaf(const graph::Value& value) const;
  Ref operand(const Arg& arg, DType in);
  std::optional<DType> compared_in(const graph::Node& node) const;
  bool holds_one(const graph::TensorType& type) const;
  bool is_one(const Arg& arg) const;
  static Ref rounded(Ref number, DType from, DType to);

  const graph::Graph& graph_;
  const NumbersOfValues& known_;
  c10::ArrayRef<at::Tensor> inputs_, constants_;
  int steps_ = 0;
};

// Tensor arithmetic on whole numbers and bools within the range of exact doubles. A number outside this range becomes
// NaN, and so do all results computed from it.
namespace whole {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

template <class F>
double unless_unknown(double a, double b, F&& f) {
  return std::isnan(a) || std::isnan(b) ? kUnknown : static_cast<double>(f(a, b));
}
template <class T>
double fitting(double a, double) {
  using Limits = std::numeric_limits<T>;
  const bool fits = a >= static_cast<double>(Limits::min()) && a <= static_cast<double>(Limits::max());
  return fits && DerivedInteger::is_whole(a) ? a : kUnknown;
}

#define CRESSET_WHOLE(name, text, expression)                                                                    \
  const FloatOp name {                                                                                           \
    [](double x, double y) { return unless_unknown(x, y, [](double a, double b) { return expression; }); }, text \
  }
CRESSET_WHOLE(kQuotient, "div", b == 0 ? kUnknown : std::trunc(a / b));
CRESSET_WHOLE(kFloorQuotient, "//", b == 0 ? kUnknown : float_ops::kFloorDivide.apply(a, b));
CRESSET_WHOLE(kRemainder, "%", b == 0 ? kUnknown : float_ops::kRemainder.apply(a, b));
CRESSET_WHOLE(kMinimum, "minimum", std::min(a, b));
CRESSET_WHOLE(kMaximum, "maximum", std::max(a, b));
CRESSET_WHOLE(kNegative, "neg", (static_cast<void>(b), 0 - a));
CRESSET_WHOLE(kAbsolute, "abs", (static_cast<void>(b), std::abs(a)));
CRESSET_WHOLE(kEqual, "==", a == b);
CRESSET_WHOLE(kNotEqual, "!=", a != b);
CRESSET_WHOLE(kLess, "<", a < b);
CRESSET_WHOLE(kLessOrEqual, "<=", a <= b);
CRESSET_WHOLE(kGreater, ">", a > b);
CRESSET_WHOLE(kGreaterOrEqual, ">=", a >= b);
CRESSET_WHOLE(kNot, "not", (static_cast<void>(b), a == 0));
CRESSET_WHOLE(kAnd, "and", a != 0 && b != 0);
CRESSET_WHOLE(kOr, "or", a != 0 || b != 0);
CRESSET_WHOLE(kTruth, "bool", (static_cast<void>(b), a != 0));
#undef CRESSET_WHOLE
const FloatOp kInt64{&fitting<int64_t>, "int64"}, kInt32{&fitting<int32_t>, "int32"},
    kInt16{&fitting<int16_t>, "int16"}, kInt8{&fitting<int8_t>, "int8"}, kUint8{&fitting<uint8_t>, "uint8"};

const FloatOp* fits(DType dtype) {
  switch (dtype) {
    case DType::I64:
      return &kInt64;
    case DType::I32:
      return &kInt32;
    case DType::I16:
      return &kInt16;
    case DType::I8:
      return &kInt8;
    case DType::U8:
      return &kUint8;
    default:
      return nullptr;
  }
}

}  // namespace whole

const FloatOp kSubtractFrom{[](double a, double b) { return b - a; }, "rsub"};

struct Rule {
  enum class In : uint8_t {
    Result,   // both operands are converted to the result's dtype first
    Whole,    // the same, for an integer result dtype
    Operands  // compared in the dtype of the operands
  };
  const FloatOp* op = nullptr;            // of two operands, or of a single operand; nullptr: the operand itself
  bool is_unary = false, scales = false;  // scales: by a third argument
  In in = In::Result;
  std::string_view mode{};  // required value of the third argument
};

const Rule* rule_of(const graph::Node& node) {
  using In = Rule::In;
  static const Rule same{nullptr, true};
  if (ops::hands_on(node.op)) return &same;
  static const std::unordered_map<uint32_t, std::vector<Rule>> table = [] {
    const Rule sum{&float_ops::kAdd, false, true}, difference{&float_ops::kSubtract, false, true},
        product{&float_ops::kMultiply}, quotient{&float_ops::kDivide}, root{&float_ops::kSqrt, true};
    const Rule floored{&whole::kFloorQuotient, false, false, In::Whole},
        remainder{&whole::kRemainder, false, false, In::Whole};
    const Rule floor_mode{&whole::kFloorQuotient, false, false, In::Whole, "floor"},
        trunc_mode{&whole::kQuotient, false, false, In::Whole, "trunc"};
    const auto comparison = [](const FloatOp& op) { return Rule{&op, false, false, In::Operands}; };
    const std::initializer_list<std::pair<const char*, Rule>> named = {
        {"aten::scalar_tensor", same},
        {"aten::add.Tensor", sum},
        {"aten::add.Scalar", sum},
        {"aten::sub.Tensor", difference},
        {"aten::sub.Scalar", difference},
        {"aten::rsub.Tensor", {&kSubtractFrom, false, true}},
        {"aten::rsub.Scalar", {&kSubtractFrom, false, true}},
        {"aten::mul.Tensor", product},
        {"aten::mul.Scalar", product},
        {"aten::div.Tensor", quotient},
        {"aten::div.Scalar", quotient},
        {"aten::sqrt", root},
        {"aten::ceil", {&float_ops::kCeil, true}},
        {"aten::floor", {&float_ops::kFloor, true}},
        {"aten::trunc", {&float_ops::kTruncate, true}},
        {"aten::round", {float_ops::whole_op("round"), true}},
        {"aten::neg", {&whole::kNegative, true, false, In::Whole}},
        {"aten::abs", {&whole::kAbsolute, true, false, In::Whole}},
        {"aten::minimum", {&whole::kMinimum, false, false, In::Whole}},
        {"aten::maximum", {&whole::kMaximum, false, false, In::Whole}},
        {"aten::floor_divide", floored},
        {"aten::floor_divide.Scalar", floored},
        {"aten::div.Tensor_mode", floor_mode},
        {"aten::div.Tensor_mode", trunc_mode},
        {"aten::div.Scalar_mode", floor_mode},
        {"aten::div.Scalar_mode", trunc_mode},
        {"aten::remainder.Tensor", remainder},
        {"aten::remainder.Scalar", remainder},
        {"aten::eq.Tensor", comparison(whole::kEqual)},
        {"aten::eq.Scalar", comparison(whole::kEqual)},
        {"aten::ne.Tensor", comparison(whole::kNotEqual)},
        {"aten::ne.Scalar", comparison(whole::kNotEqual)},
        {"aten::lt.Tensor", comparison(whole::kLess)},
        {"aten::lt.Scalar", comparison(whole::kLess)},
        {"aten::le.Tensor", comparison(whole::kLessOrEqual)},
        {"aten::le.Scalar", comparison(whole::kLessOrEqual)},
        {"aten::gt.Tensor", comparison(whole::kGreater)},
        {"aten::gt.Scalar", comparison(whole::kGreater)},
        {"aten::ge.Tensor", comparison(whole::kGreaterOrEqual)},
        {"aten::ge.Scalar", comparison(whole::kGreaterOrEqual)},
        {"aten::logical_and", comparison(whole::kAnd)},
        {"aten::logical_or", comparison(whole::kOr)},
        {"aten::logical_not", {&whole::kNot, true, false, In::Operands}}};
    std::unordered_map<uint32_t, std::vector<Rule>> out;
    for (const auto& [name, rule] : named) out[graph::op_id(name).index].push_back(rule);
    return out;
  }();
  const auto found = table.find(node.op.index);
  if (found == table.end()) return nullptr;
  for (const Rule& rule : found->second) {
    const auto* mode = node.args.size() > 2 ? std::get_if<std::string>(&node.args[2]) : nullptr;
    if (rule.mode.empty() || (mode != nullptr && *mode == rule.mode)) return &rule;
  }
  return nullptr;
}

bool is_held(DType dtype) { return dtype == DType::F32 || dtype == DType::F64 || is_integral(dtype); }

bool Walk::holds_one(const graph::TensorType& type) const {
  if (!is_held(type.dtype) || type.device.kind != graph::DeviceKind::Cpu) return false;
  sym::ExprPool& pool = graph_.pool();
  return std::all_of(type.sizes.begin(), type.sizes.end(),
                     [&](graph::ExprId size) { return graph_.env().simplify(size) == pool.constant(1); });
}

bool Walk::is_one(const Arg& arg) const {
  if (const auto* number = std::get_if<double>(&arg)) return *number == 1;
  const auto* number = std::get_if<graph::ExprId>(&arg);
  return number != nullptr && graph_.pool().is_const(*number, 1);
}

// Sums, products, quotients and roots of f32, computed in f64 and rounded, equal the results computed in f32 (Figueroa,
// "When is double rounding innocuous?", 1995).
Ref Walk::rounded(Ref number, DType from, DType to) {
  if (number == nullptr || from == to || to == DType::F64) return number;
  if (to == DType::F32) return FloatExpr::make(float_ops::kSingle, number, number);
  if (to == DType::Bool) return FloatExpr::make(whole::kTruth, number, number);
  if (is_float(from)) number = FloatExpr::make(float_ops::kTruncate, number, number);
  return from == DType::Bool || number == nullptr ? number : FloatExpr::make(*whole::fits(to), number, number);
}

Ref Walk::leaf(const graph::Value& value) const {
  const bool is_input = value.kind == graph::Value::Kind::Input;
  const c10::ArrayRef<at::Tensor> among = is_input ? inputs_ : constants_;
  if (value.result >= among.size()) return nullptr;  // made by data
  const at::Tensor alias = InputProxy::alias_of(among[value.result]);
  const at::Tensor& real = alias.defined() ? alias : among[value.result];
  const std::optional<DType> dtype = from_torch(real.scalar_type());
  if (!dtype || !is_held(*dtype) || !real.is_cpu() || !real.has_storage() || real.numel() != 1) return nullptr;
  const double number = number_in(real);
  return is_input ? FloatExpr::argument(number, value.result) : FloatExpr::held_tensor(number, value.result);
}

Ref Walk::operand(const Arg& arg, DType in) {
  if (const auto* value = std::get_if<ValueId>(&arg)) {
    const Ref number = of(*value);
    return number != nullptr ? rounded(number, graph_.type(*value).dtype, in) : nullptr;
  }
  if (const auto* plain = std::get_if<double>(&arg)) return rounded(FloatExpr::constant(*plain), DType::F64, in);
  const auto* whole = std::get_if<graph::ExprId>(&arg);
  if (whole == nullptr) return nullptr;
  if (graph_.pool().is_const(*whole))
    return rounded(FloatExpr::constant(static_cast<double>(graph_.pool().const_value(*whole))), DType::I64, in);
  const std::optional<int64_t> hint = graph_.env().hint(*whole);
  return hint ? rounded(FloatExpr::of_sizes(static_cast<double>(*hint), *whole, {}, 1), DType::I64, in) : nullptr;
}

// The dtype in which two tensors, or a tensor and a number, are compared: floats win over whole numbers. nullopt: more
// difficult cases.
std::optional<DType> Walk::compared_in(const graph::Node& node) const {
  std::optional<DType> floats, wholes;
  bool is_mixed = false, by_float = false;
  for (size_t i = 0; i < std::min<size_t>(node.args.size(), 2); ++i) {
    const auto* value = std::get_if<ValueId>(&node.args[i]);
    if (value == nullptr) {
      by_float |= !std::holds_alternative<graph::ExprId>(node.args[i]);
      continue;
    }
    const DType dtype = graph_.type(*value).dtype;
    if (!is_integral(dtype) && !is_float(dtype)) return std::nullopt;
    std::optional<DType>& common = is_integral(dtype) ? wholes : floats;
    is_mixed |= common && *common != dtype;
    common = dtype;
  }
  if (floats) return is_mixed ? std::nullopt : floats;
  if (by_float) return from_torch(c10::get_default_dtype_as_scalartype());
  return is_mixed || wholes == DType::Bool ? DType::I64 : wholes;
}

Ref Walk::of(ValueId id) {
  const graph::Value& value = graph_.value(id);
  if (!holds_one(value.type) || ++steps_ > kMostSteps) return nullptr;
  if (const auto known = known_.find(id.index); known != known_.end()) return known->second;
  if (value.kind != graph::Value::Kind::Result) return leaf(value);
  const graph::Node& node = graph_.node(value.node);
  const Rule* const rule = rule_of(node);
  if (rule == nullptr || (rule->scales && !is_one(node.args[2]))) return nullptr;
  const DType type = value.type.dtype;
  if (rule->in == Rule::In::Whole && !is_integral(type)) return nullptr;
  const std::optional<DType> in = rule->in == Rule::In::Operands ? compared_in(node) : type;
  const Ref first = in && is_held(*in) ? operand(node.args[0], *in) : nullptr;
  if (first == nullptr || rule->op == nullptr) return first;
  const Ref second = rule->is_unary ? first : operand(node.args[1], *in);
  const Ref made = second != nullptr ? FloatExpr::make(*rule->op, first, second) : nullptr;
  if (made == nullptr) return nullptr;
  return is_integral(type, false) ? FloatExpr::make(*whole::fits(type), made, made) : rounded(made, DType::F64, type);
}

}  // namespace

FloatExpr::Ref input_scalar(const graph::Graph& graph, ValueId value, const NumbersOfValues& known,
                            c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<at::Tensor> constants) {
  const Ref number = Walk(graph, known, inputs, constants).of(value);
  return number != nullptr && std::isfinite(number->number) ? number : nullptr;
}

}  // namespace cresset::bridge
