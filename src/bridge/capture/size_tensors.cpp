#include "bridge/capture/size_tensors.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "bridge/capture/sym_node.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::ValueId;
using sym::ExprId;
using Elements = std::vector<ExprId>;
using Maybe = std::optional<Elements>;

constexpr size_t kMostElements = 64;
constexpr int kMostOfNode = 256;  // limit on operators visited for a value

class SizeWalk {
 public:
  SizeWalk(graph::Graph& graph, const ConstantOf& constant) : graph_(graph), constant_(constant) {}

  Maybe of(ValueId value);
  Maybe of(const Arg& arg) {
    if (const auto* number = std::get_if<ExprId>(&arg)) return Elements{*number};
    const auto* value = std::get_if<ValueId>(&arg);
    return value != nullptr ? of(*value) : std::nullopt;
  }

  const Arg& argument(size_t i) const { return node_->args[i]; }
  // An argument which is a plain number.
  std::optional<int64_t> plain(size_t i) const {
    const auto* number = std::get_if<ExprId>(&argument(i));
    return number != nullptr && pool().is_const(*number) ? std::optional(pool().const_value(*number)) : std::nullopt;
  }
  bool is_none(size_t i) const { return std::holds_alternative<graph::None>(argument(i)); }
  std::string_view text(size_t i) const {
    const auto* text = std::get_if<std::string>(&argument(i));
    return text != nullptr ? std::string_view(*text) : std::string_view();
  }
  const graph::TensorType& type() const { return graph_.type(node_->results[0]); }
  sym::ExprPool& pool() const { return graph_.pool(); }
  sym::ShapeEnv& env() const { return graph_.env(); }
  graph::Graph& graph() const { return graph_; }
  // Requires the condition from now on, if it holds at present.
  bool holds(ExprId condition) const {
    return env().evaluate(condition, [] { return current_reason(); }).value_or(false);
  }
  // a op b, which tensors compute modulo 2^64: only without an overflow, now (by the hints) and later.
  using Operation = ExprId (sym::ExprPool::*)(ExprId, ExprId);
  std::optional<ExprId> exactly(Operation op, bool (*overflows)(int64_t, int64_t), ExprId a, ExprId b) const {
    const std::optional<int64_t> x = env().hint(a), y = env().hint(b);
    if (!x || !y || overflows(*x, *y)) return std::nullopt;
    const ExprId out = (pool().*op)(a, b);
    SymNode::keep_in_int64(env(), out);
    return out;
  }
  std::optional<ExprId> sum(ExprId a, ExprId b) const {
    return exactly(&sym::ExprPool::add, [](int64_t x, int64_t y) { return __builtin_add_overflow(x, y, &x); }, a, b);
  }
  std::optional<ExprId> product(ExprId a, ExprId b) const {
    return exactly(&sym::ExprPool::mul, [](int64_t x, int64_t y) { return __builtin_mul_overflow(x, y, &x); }, a, b);
  }

  // An operand may be a single number.
  template <class F>
  Maybe pairwise(size_t a, size_t b, F&& f) {
    const graph::Node* const node = node_;
    Maybe left = of(node->args[a]), right = left ? of(node->args[b]) : std::nullopt;
    node_ = node;
    if (!left || !right || left->empty() || right->empty()) return std::nullopt;
    const size_t count = std::max(left->size(), right->size());
    if (type().rank() > 1 || std::min(left->size(), right->size()) % count > 1) return std::nullopt;
    Elements out;
    for (size_t i = 0; i < count; ++i) {
      const std::optional<ExprId> e = f(left->at(left->size() == 1 ? 0 : i), right->at(right->size() == 1 ? 0 : i));
      if (!e) return std::nullopt;
      out.push_back(*e);
    }
    return out;
  }

 private:
  Maybe literal(const graph::Value& value) const;

  graph::Graph& graph_;
  const ConstantOf& constant_;
  const graph::Node* node_ = nullptr;
  int steps_ = 0;
};

// ---- Rules, with a function for each operator

using SizeRule = Maybe (*)(SizeWalk&);

Maybe same(SizeWalk& w) { return w.of(w.argument(0)); }

Maybe filled(SizeWalk& w, size_t number) {
  const auto* value = std::get_if<ExprId>(&w.argument(number));
  const ExprId count = graph::numel(w.pool(), w.type().sizes);
  if (value == nullptr || !w.pool().is_const(count) || w.type().dtype != DType::I64) return std::nullopt;
  const auto elements = static_cast<size_t>(w.pool().const_value(count));
  return elements <= kMostElements ? Maybe(Elements(elements, *value)) : std::nullopt;
}

// A sequence whose length is constant.
Maybe counted(SizeWalk& w, std::optional<size_t> start, std::optional<size_t> step) {
  const auto number = [&](std::optional<size_t> i, int64_t otherwise) {
    const auto* given = i ? std::get_if<ExprId>(&w.argument(*i)) : nullptr;
    return given != nullptr ? std::optional(*given) : i ? std::nullopt : std::optional(w.pool().constant(otherwise));
  };
  const std::optional<ExprId> first = number(start, 0), by = number(step, 1);
  const ExprId count = w.type().sizes[0];
  if (!first || !by || !w.pool().is_const(count) || w.pool().const_value(count) > int64_t{kMostElements})
    return std::nullopt;
  Elements out;
  for (int64_t i = 0; i < w.pool().const_value(count); ++i) {
    const std::optional<ExprId> passed = w.product(w.pool().constant(i), *by);
    const std::optional<ExprId> e = passed ? w.sum(*first, *passed) : std::nullopt;
    if (!e) return std::nullopt;
    out.push_back(*e);
  }
  return out;
}
Maybe counted_to(SizeWalk& w) { return counted(w, std::nullopt, std::nullopt); }
Maybe counted_from(SizeWalk& w) { return counted(w, 0, std::nullopt); }
Maybe counted_by(SizeWalk& w) { return counted(w, 0, 2); }

Maybe joined(SizeWalk& w) {
  const auto* parts = std::get_if<std::vector<graph::OptionalValue>>(&w.argument(0));
  if (parts == nullptr || w.plain(1) != 0) return std::nullopt;
  Elements out;
  const std::vector<graph::OptionalValue> given = *parts;
  for (const graph::OptionalValue& part : given) {
    const Maybe elements = part ? w.of(*part) : std::nullopt;
    if (!elements || out.size() + elements->size() > kMostElements) return std::nullopt;
    out.insert(out.end(), elements->begin(), elements->end());
  }
  return out;
}

Maybe selected(SizeWalk& w) {
  const std::optional<int64_t> index = w.plain(2);
  if (w.type().rank() != 0 || !index) return std::nullopt;
  const Maybe elements = w.of(w.argument(0));
  if (!elements) return std::nullopt;
  const int64_t at = *index < 0 ? *index + static_cast<int64_t>(elements->size()) : *index;
  if (at < 0 || at >= static_cast<int64_t>(elements->size())) return std::nullopt;
  return Elements{elements->at(static_cast<size_t>(at))};
}

// A part of a list. The slice rule has already turned start and end into the result's size.
Maybe sliced(SizeWalk& w) {
  const std::optional<int64_t> start = w.is_none(2) ? 0 : w.plain(2), step = w.plain(4);
  if (w.type().rank() != 1 || !start || step != 1 || !w.pool().is_const(w.type().sizes[0])) return std::nullopt;
  const int64_t count = w.pool().const_value(w.type().sizes[0]);
  const Maybe all = w.of(w.argument(0));
  if (!all) return std::nullopt;
  const auto length = static_cast<int64_t>(all->size());
  const int64_t first = std::clamp<int64_t>(*start < 0 ? *start + length : *start, 0, length);
  if (first + count > length) return std::nullopt;
  return Elements(all->begin() + first, all->begin() + first + count);
}

Maybe sum_of_scaled(SizeWalk& w, bool minus) {
  const std::optional<int64_t> alpha = w.plain(2);
  if (!alpha) return std::nullopt;
  const ExprId factor = w.pool().constant(minus ? -*alpha : *alpha);
  return w.pairwise(0, 1, [&](ExprId a, ExprId b) {
    const std::optional<ExprId> scaled = w.product(factor, b);
    return scaled ? w.sum(a, *scaled) : std::nullopt;
  });
}

Maybe floored(SizeWalk& w) {
  return w.pairwise(0, 1, [&](ExprId a, ExprId b) -> std::optional<ExprId> {
    if (!w.holds(w.pool().ne(b, w.pool().constant(0)))) return std::nullopt;
    return w.env().simplify(w.pool().floor_div(a, b));
  });
}

// Division toward zero equals floor division for numbers which are not negative.
Maybe truncated(SizeWalk& w) {
  return w.pairwise(0, 1, [&](ExprId a, ExprId b) -> std::optional<ExprId> {
    const ExprId zero = w.pool().constant(0);
    if (!w.holds(w.pool().ge(a, zero)) || !w.holds(w.pool().gt(b, zero))) return std::nullopt;
    return w.env().simplify(w.pool().floor_div(a, b));
  });
}

Maybe divided(SizeWalk& w) {
  if (w.text(2) == "floor") return floored(w);
  return w.text(2) == "trunc" ? truncated(w) : std::nullopt;
}

Maybe remainder(SizeWalk& w) {
  return w.pairwise(0, 1, [&](ExprId a, ExprId b) -> std::optional<ExprId> {
    if (!w.holds(w.pool().ne(b, w.pool().constant(0)))) return std::nullopt;
    return w.env().simplify(w.pool().mod(a, b));
  });
}

template <ExprId (sym::ExprPool::*f)(ExprId, ExprId)>
Maybe binary(SizeWalk& w) {
  return w.pairwise(0, 1, [&](ExprId a, ExprId b) { return std::optional((w.pool().*f)(a, b)); });
}

Maybe product(SizeWalk& w) {
  return w.pairwise(0, 1, [&](ExprId a, ExprId b) { return w.product(a, b); });
}

Maybe negated(SizeWalk& w) {
  Maybe elements = w.of(w.argument(0));
  if (!elements) return std::nullopt;
  for (ExprId& e : *elements) {
    const std::optional<ExprId> negative = w.product(w.pool().constant(-1), e);
    if (!negative) return std::nullopt;
    e = *negative;
  }
  return elements;
}

template <class F>
Maybe folded(SizeWalk& w, F&& f) {
  const Maybe elements = w.of(w.argument(0));
  if (!elements || elements->empty()) return std::nullopt;
  std::optional<ExprId> out = elements->front();
  for (size_t i = 1; i < elements->size() && out; ++i) out = f(*out, elements->at(i));
  return out ? Maybe(Elements{*out}) : std::nullopt;
}
Maybe sum_of_all(SizeWalk& w) {
  return folded(w, [&](ExprId a, ExprId b) { return w.sum(a, b); });
}
Maybe product_of_all(SizeWalk& w) {
  return folded(w, [&](ExprId a, ExprId b) { return w.product(a, b); });
}
Maybe greatest(SizeWalk& w) {
  return folded(w, [&](ExprId a, ExprId b) { return std::optional(w.pool().max(a, b)); });
}
Maybe least(SizeWalk& w) {
  return folded(w, [&](ExprId a, ExprId b) { return std::optional(w.pool().min(a, b)); });
}

Maybe filling_argument_1(SizeWalk& w) { return filled(w, 1); }
Maybe filling_argument_0(SizeWalk& w) { return filled(w, 0); }
Maybe sum(SizeWalk& w) { return sum_of_scaled(w, false); }
Maybe difference(SizeWalk& w) { return sum_of_scaled(w, true); }

const std::unordered_map<uint32_t, SizeRule>& rules_of_sizes() {
  using Pool = sym::ExprPool;
  static const std::unordered_map<uint32_t, SizeRule> table = [] {
    const std::initializer_list<std::pair<std::string_view, SizeRule>> named = {
        {"aten::full", &filling_argument_1},
        {"aten::scalar_tensor", &filling_argument_0},
        {"aten::arange", &counted_to},
        {"aten::arange.start", &counted_from},
        {"aten::arange.start_step", &counted_by},
        {"aten::stack", &joined},
        {"aten::cat", &joined},
        {"aten::select.int", &selected},
        {"aten::slice.Tensor", &sliced},
        {"aten::add.Tensor", &sum},
        {"aten::add.Scalar", &sum},
        {"aten::sub.Tensor", &difference},
        {"aten::sub.Scalar", &difference},
        {"aten::mul.Tensor", &product},
        {"aten::mul.Scalar", &product},
        {"aten::floor_divide", &floored},
        {"aten::floor_divide.Scalar", &floored},
        {"aten::div.Tensor_mode", &divided},
        {"aten::div.Scalar_mode", &divided},
        {"aten::remainder.Tensor", &remainder},
        {"aten::remainder.Scalar", &remainder},
        {"aten::minimum", &binary<&Pool::min>},
        {"aten::maximum", &binary<&Pool::max>},
        {"aten::neg", &negated},
        {"aten::eq.Tensor", &binary<&Pool::eq>},
        {"aten::eq.Scalar", &binary<&Pool::eq>},
        {"aten::ne.Tensor", &binary<&Pool::ne>},
        {"aten::ne.Scalar", &binary<&Pool::ne>},
        {"aten::lt.Tensor", &binary<&Pool::lt>},
        {"aten::lt.Scalar", &binary<&Pool::lt>},
        {"aten::le.Tensor", &binary<&Pool::le>},
        {"aten::le.Scalar", &binary<&Pool::le>},
        {"aten::gt.Tensor", &binary<&Pool::gt>},
        {"aten::gt.Scalar", &binary<&Pool::gt>},
        {"aten::ge.Tensor", &binary<&Pool::ge>},
        {"aten::ge.Scalar", &binary<&Pool::ge>},
        {"aten::sum", &sum_of_all},
        {"aten::prod", &product_of_all},
        {"aten::max", &greatest},
        {"aten::min", &least},
    };
    std::unordered_map<uint32_t, SizeRule> out;
    for (const auto& [name, rule] : named) out.emplace(graph::op_id(name).index, rule);
    return out;
  }();
  return table;
}

// nullptr: no rule.
SizeRule rule_of(graph::OpId op) {
  if (ops::hands_on(op)) return &same;
  const auto rule = rules_of_sizes().find(op.index);
  return rule == rules_of_sizes().end() ? nullptr : rule->second;
}

bool is_integer(const graph::TensorType& type) {
  return (type.dtype == DType::I64 || type.dtype == DType::Bool) && type.device.kind == graph::DeviceKind::Cpu;
}

// A constant which no code can write: a wrapped Python number, or a torch.tensor() result owned by the graph alone.
Maybe SizeWalk::literal(const graph::Value& value) const {
  const at::Tensor& tensor = constant_(value);
  const bool own = tensor.use_count() == 1 && tensor.storage().use_count() == 1 && tensor.is_contiguous();
  if (!own && !tensor.unsafeGetTensorImpl()->is_wrapped_number()) return std::nullopt;
  if (tensor.numel() > int64_t{kMostElements}) return std::nullopt;
  Elements out;
  for (int64_t i = 0; i < tensor.numel(); ++i)
    out.push_back(pool().constant(tensor.scalar_type() == at::kBool ? int64_t{tensor.const_data_ptr<bool>()[i]}
                                                                    : tensor.const_data_ptr<int64_t>()[i]));
  return out;
}

Maybe SizeWalk::of(ValueId id) {
  const graph::Value& value = graph_.value(id);
  if (value.kind == graph::Value::Kind::Constant && is_integer(value.type)) return literal(value);
  if (value.kind != graph::Value::Kind::Result || !is_integer(value.type) || value.result != 0) return std::nullopt;
  const graph::Node& node = graph_.node(value.node);
  const SizeRule rule = rule_of(node.op);
  if (rule == nullptr || ++steps_ > kMostOfNode) return std::nullopt;
  bool taken = true;  // a bool is no number here, and vice versa
  graph::Graph::for_each_value(node.args, [&](const ValueId& v) {
    taken &= graph_.type(v).dtype == (rule == &same ? value.type.dtype : DType::I64);
  });
  if (!taken) return std::nullopt;
  const graph::Node* const before = std::exchange(node_, &node);
  Maybe out = rule(*this);
  node_ = before;
  return out && out->size() <= kMostElements ? out : std::nullopt;
}

}  // namespace

Maybe size_values(graph::Graph& graph, ValueId value, const ConstantOf& constant) {
  return SizeWalk(graph, constant).of(value);
}

}  // namespace cresset::bridge
