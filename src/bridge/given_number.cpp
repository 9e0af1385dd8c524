#include "bridge/given_number.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "bridge/guest.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::ValueId;
using Ref = FloatExpr::Ref;

constexpr int kMostSteps = 64;  // operators looked through for one number

class Walk {
 public:
  Walk(const graph::Graph& graph, const NumbersOfValues& known, c10::ArrayRef<at::Tensor> inputs,
       c10::ArrayRef<at::Tensor> constants)
      : graph_(graph), known_(known), inputs_(inputs), constants_(constants) {}

  Ref of(ValueId id);

 private:
  Ref leaf(const graph::Value& value) const;
  Ref operand(const Arg& arg, DType result);
  bool holds_one(const graph::TensorType& type) const;
  bool is_one(const Arg& arg) const;
  static Ref rounded(Ref number, DType from, DType to);

  const graph::Graph& graph_;
  const NumbersOfValues& known_;
  c10::ArrayRef<at::Tensor> inputs_, constants_;
  int steps_ = 0;
};

struct Rule {
  const FloatOp* op = nullptr;            // of both operands, or of one; nullptr: the operand itself
  bool is_unary = false, scales = false;  // scales: by a third argument
};

const Rule* rule_of(graph::OpId op) {
  static const std::unordered_map<uint32_t, Rule> table = [] {
    const Rule same{nullptr, true}, sum{&float_ops::kAdd, false, true}, difference{&float_ops::kSubtract, false, true},
        product{&float_ops::kMultiply}, quotient{&float_ops::kDivide}, root{&float_ops::kSqrt, true};
    const std::initializer_list<std::pair<const char*, Rule>> named = {{"aten::clone", same},
                                                                       {"aten::alias", same},
                                                                       {"aten::detach", same},
                                                                       {"aten::lift_fresh", same},
                                                                       {"aten::lift_fresh_copy", same},
                                                                       {"aten::_to_copy", same},
                                                                       {"aten::view", same},
                                                                       {"aten::_unsafe_view", same},
                                                                       {"aten::_reshape_alias", same},
                                                                       {"aten::reshape", same},
                                                                       {"aten::squeeze", same},
                                                                       {"aten::squeeze.dim", same},
                                                                       {"aten::squeeze.dims", same},
                                                                       {"aten::unsqueeze", same},
                                                                       {"aten::scalar_tensor", same},
                                                                       {"aten::add.Tensor", sum},
                                                                       {"aten::add.Scalar", sum},
                                                                       {"aten::sub.Tensor", difference},
                                                                       {"aten::sub.Scalar", difference},
                                                                       {"aten::mul.Tensor", product},
                                                                       {"aten::mul.Scalar", product},
                                                                       {"aten::div.Tensor", quotient},
                                                                       {"aten::div.Scalar", quotient},
                                                                       {"aten::sqrt", root}};
    std::unordered_map<uint32_t, Rule> out;
    for (const auto& [name, rule] : named) out.emplace(graph::op_id(name).index, rule);
    return out;
  }();
  const auto found = table.find(op.index);
  return found != table.end() ? &found->second : nullptr;
}

bool Walk::holds_one(const graph::TensorType& type) const {
  if ((type.dtype != DType::F32 && type.dtype != DType::F64) || type.device.kind != graph::DeviceKind::Cpu)
    return false;
  sym::ExprPool& pool = graph_.pool();
  return std::all_of(type.sizes.begin(), type.sizes.end(),
                     [&](graph::ExprId size) { return graph_.env().simplify(size) == pool.constant(1); });
}

bool Walk::is_one(const Arg& arg) const {
  if (const auto* number = std::get_if<double>(&arg)) return *number == 1;
  const auto* number = std::get_if<graph::ExprId>(&arg);
  return number != nullptr && graph_.pool().is_const(*number, 1);
}

// Sums, products, quotients and roots of f32 that f64 computes round to what f32 computes (Figueroa, "When is double
// rounding innocuous?", 1995).
Ref Walk::rounded(Ref number, DType from, DType to) {
  return from == to || to == DType::F64 ? number : FloatExpr::make(float_ops::kSingle, number, number);
}

Ref Walk::leaf(const graph::Value& value) const {
  const bool is_input = value.kind == graph::Value::Kind::Input;
  const c10::ArrayRef<at::Tensor> among = is_input ? inputs_ : constants_;
  if (value.result >= among.size()) return nullptr;  // made by data
  const at::Tensor alias = Guest::alias_of(among[value.result]);
  const at::Tensor& real = alias.defined() ? alias : among[value.result];
  const bool is_float = real.scalar_type() == at::kFloat || real.scalar_type() == at::kDouble;
  if (!is_float || !real.is_cpu() || !real.has_storage() || real.numel() != 1) return nullptr;
  const double number = number_in(real);
  return is_input ? FloatExpr::argument(number, value.result) : FloatExpr::held_tensor(number, value.result);
}

Ref Walk::operand(const Arg& arg, DType result) {
  if (const auto* value = std::get_if<ValueId>(&arg)) {
    const Ref number = of(*value);
    return number != nullptr ? rounded(number, graph_.type(*value).dtype, result) : nullptr;
  }
  Ref number;
  if (const auto* plain = std::get_if<double>(&arg)) number = FloatExpr::constant(*plain);
  if (const auto* whole = std::get_if<graph::ExprId>(&arg); whole != nullptr && graph_.pool().is_const(*whole))
    number = FloatExpr::constant(static_cast<double>(graph_.pool().const_value(*whole)));
  return number != nullptr ? rounded(number, DType::F64, result) : nullptr;
}

Ref Walk::of(ValueId id) {
  const graph::Value& value = graph_.value(id);
  if (!holds_one(value.type) || ++steps_ > kMostSteps) return nullptr;
  if (const auto known = known_.find(id.index); known != known_.end()) return known->second;
  if (value.kind != graph::Value::Kind::Result) return leaf(value);
  const graph::Node& node = graph_.node(value.node);
  const Rule* const rule = rule_of(node.op);
  if (rule == nullptr || (rule->scales && !is_one(node.args[2]))) return nullptr;
  const DType type = value.type.dtype;
  const Ref first = operand(node.args[0], type);
  if (first == nullptr || rule->op == nullptr) return first;
  const Ref second = rule->is_unary ? first : operand(node.args[1], type);
  const Ref made = second != nullptr ? FloatExpr::make(*rule->op, first, second) : nullptr;
  return made != nullptr ? rounded(made, DType::F64, type) : nullptr;
}

}  // namespace

FloatExpr::Ref given_number(const graph::Graph& graph, ValueId value, const NumbersOfValues& known,
                            c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<at::Tensor> constants) {
  const Ref number = Walk(graph, known, inputs, constants).of(value);
  return number != nullptr && std::isfinite(number->number) ? number : nullptr;
}

}  // namespace cresset::bridge
