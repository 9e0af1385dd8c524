#include "bridge/capture/concrete_eval.h"

#include <algorithm>
#include <unordered_set>

#include "bridge/capture/graph_interpreter.h"
#include "bridge/capture/input_proxy.h"
#include "ops/effects.h"
#include "sym/eval.h"

namespace cresset::bridge {

static constexpr c10::DispatchKeySet kOfTransforms({c10::DispatchKey::FuncTorchBatched,
                                                    c10::DispatchKey::FuncTorchGradWrapper,
                                                    c10::DispatchKey::Functionalize});

std::optional<int64_t> ConcreteEval::integer(sym::ExprId e) const { return graph_.env().hint(e); }

std::optional<std::vector<graph::ValueId>> ConcreteEval::elements_in(sym::ExprId e) const {
  std::vector<graph::ValueId> read;
  if (integer(e)) return read;
  std::vector<sym::VarId> vars;
  graph_.pool().collect_vars(e, vars);
  for (const sym::VarId var : vars) {
    if (integer(graph_.pool().var(var))) continue;
    const std::optional<Element> element = element_(var);
    if (!element) return std::nullopt;
    read.push_back(element->of);
  }
  return read;
}

std::optional<int64_t> ConcreteEval::number(sym::ExprId e) {
  if (const std::optional<int64_t> known = integer(e)) return known;
  return sym::eval(graph_.pool(), e, [&](sym::VarId var) -> std::optional<int64_t> {
    const std::optional<Element> element = element_(var);
    if (!element) return integer(graph_.pool().var(var));
    return of(element->of).to(at::kLong).flatten()[element->index].item<int64_t>();
  });
}

int64_t ConcreteEval::elements(graph::ValueId value) const {
  int64_t count = 1;
  for (const sym::ExprId e : graph_.type(value).sizes) count *= integer(e).value_or(1);
  return count;
}

bool ConcreteEval::is_known(graph::ValueId id) const {
  const graph::Value& value = graph_.value(id);
  if (value.kind == graph::Value::Kind::Result) return made_.contains(id.index);
  if (value.kind == graph::Value::Kind::Input && value.result >= inputs_.size()) return false;
  const at::Tensor real = known(id);  // excludes classes and transforms whose code would observe the evaluation
  return real.defined() && real.is_cpu() && real.layout() == at::kStrided && !real.key_set().has_any(c10::python_ks) &&
         !real.key_set().has_any(kOfTransforms);
}

at::Tensor ConcreteEval::known(graph::ValueId id) const {
  const graph::Value& value = graph_.value(id);
  if (value.kind == graph::Value::Kind::Result) return made_.at(id.index);
  const at::Tensor& real =
      value.kind == graph::Value::Kind::Constant ? constants_[value.result] : inputs_[value.result];
  const at::Tensor alias = InputProxy::alias_of(real);
  return alias.defined() ? alias : real;
}

// Adds the values from which the numbers among an operator's arguments are read; false where a number is unavailable.
bool ConcreteEval::add_numbers(const std::vector<graph::Arg>& args, std::vector<graph::ValueId>& values) const {
  const auto add = [&](sym::ExprId e) {
    const std::optional<std::vector<graph::ValueId>> read = elements_in(e);
    if (read) values.insert(values.end(), read->begin(), read->end());
    return read.has_value();
  };
  return std::all_of(args.begin(), args.end(), [&](const graph::Arg& arg) {
    if (const auto* e = std::get_if<sym::ExprId>(&arg)) return add(*e);
    const auto* list = std::get_if<std::vector<sym::ExprId>>(&arg);
    return list == nullptr || std::all_of(list->begin(), list->end(), add);
  });
}

std::optional<std::vector<graph::NodeId>> ConcreteEval::needed(std::vector<graph::ValueId> values) const {
  std::unordered_set<uint32_t> seen;
  std::vector<graph::NodeId> nodes;
  while (!values.empty()) {
    const graph::ValueId id = values.back();
    values.pop_back();
    const graph::TensorType& type = graph_.type(id);
    if (type.device.kind != graph::DeviceKind::Cpu) return std::nullopt;
    for (const sym::ExprId e : type.sizes)
      if (!integer(e)) return std::nullopt;
    if (is_known(id)) continue;
    const graph::Value& value = graph_.value(id);
    if (value.kind != graph::Value::Kind::Result) return std::nullopt;  // supplied later, by data or a backward pass
    if (!seen.insert(value.node.index).second) continue;
    const graph::Node& node = graph_.node(value.node);
    if (ops::draws(node) || !graph::op_name(node.op).starts_with("aten::")) return std::nullopt;
    if (!add_numbers(node.args, values)) return std::nullopt;
    nodes.push_back(value.node);
    graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) { values.push_back(v); });
  }
  std::sort(nodes.begin(), nodes.end(), [](graph::NodeId a, graph::NodeId b) { return a.index < b.index; });
  return nodes;
}

std::optional<int64_t> ConcreteEval::work(const std::vector<graph::ValueId>& values) {
  const std::optional<std::vector<graph::NodeId>> nodes = needed(values);
  if (!nodes) return std::nullopt;
  int64_t total = 0;
  for (const graph::NodeId id : *nodes) {
    const graph::Node& node = graph_.node(id);
    int64_t most = 0, operands = 0;
    graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) {
      most = std::max(most, elements(v));
      operands += graph_.type(v).sizes.size() >= 2 && elements(v) > 1;
    });
    for (const graph::ValueId v : node.results) most = std::max(most, elements(v));
    constexpr int64_t kOfProducts = 64;  // a result of two matrices may be their product
    total += operands >= 2 ? most * kOfProducts : most;
  }
  return total;
}

at::Tensor ConcreteEval::of(graph::ValueId value) {
  const std::vector<graph::NodeId> nodes = needed({value}).value();
  for (const graph::NodeId id : nodes) {
    const graph::Node& node = graph_.node(id);
    std::vector<at::Tensor> results = run_by_aten(
        graph_, node, [&](graph::ValueId v) { return known(v); }, [&](sym::ExprId e) { return number(e).value(); });
    for (size_t i = 0; i < results.size(); ++i) made_[node.results[i].index] = std::move(results[i]);
  }
  return known(value);
}

void ConcreteEval::forget_large() {
  constexpr int64_t kKept = 4096;  // elements
  std::erase_if(made_, [&](const auto& entry) { return !entry.second.defined() || entry.second.numel() > kKept; });
}

}  // namespace cresset::bridge
