#include "bridge/executor/staged_program.h"

#include <ATen/core/stack.h>

#include <algorithm>
#include <unordered_set>

#include "bridge/aten/dtypes.h"
#include "bridge/capture/arguments.h"
#include "bridge/capture/control_flow.h"
#include "bridge/capture/data_dependent_ops.h"
#include "bridge/capture/sym_node.h"
#include "bridge/executor/assumption_failed.h"
#include "ops/effects.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::OpId;
using graph::TensorType;
using graph::ValueId;

}  // namespace

// Cuts the graph. The inputs of each part are the graph's inputs and values of earlier parts; its outputs are needed by
// later parts.
class StagedProgram::Cutter {
 public:
  Cutter(StagedProgram& out, const graph::Graph& graph, const std::vector<DataDependentCall>& calls)
      : out_(out), graph_(graph), calls_(calls) {
    for (uint32_t i = 0; i < graph.inputs.size(); ++i) out_.places_[graph.inputs[i]] = {false, i};
    for (uint32_t i = 0; i < graph.constants.size(); ++i) out_.places_[graph.constants[i]] = {true, i};
    out_.table_size_ = graph.inputs.size();
    for (size_t part = 0; part <= calls.size(); ++part) {
      for (size_t i = begin(part); i < end(part); ++i)
        for (const ValueId v : graph.node(graph.order[i]).results) part_of_[v] = part;
    }
    find_kept();
  }

  // Part `part` as a separate graph; null when it computes nothing.
  std::unique_ptr<graph::Graph> cut(size_t part, Stage& stage) {
    auto copy = std::make_unique<graph::Graph>(graph_);
    const bool last = part == calls_.size();
    copy->order.clear();
    std::vector<ValueId> outputs = last ? graph_.outputs : needed_later(part);
    if (!last) copy->mutations.clear();
    // Random numbers are drawn as often as eager draws them, and what may raise is done though nobody uses it.
    const auto is_done = [&](const graph::Node& node) { return ops::draws(node) || node.caught; };
    if (!last && outputs.empty() && !any_node(part, is_done)) return nullptr;
    std::unordered_set<ValueId> wanted(outputs.begin(), outputs.end());
    for (const graph::Mutation& m : copy->mutations) wanted.insert(m.value);
    std::vector<graph::NodeId> kept;
    for (size_t i = end(part); i-- > begin(part);) {
      const graph::Node& node = graph_.node(graph_.order[i]);
      const auto is_wanted = [&](ValueId r) { return wanted.contains(r); };
      if (!is_done(node) && std::none_of(node.results.begin(), node.results.end(), is_wanted)) continue;
      graph::Graph::for_each_value(node.args, [&](const ValueId& v) { wanted.insert(v); });
      kept.push_back(graph_.order[i]);
    }
    copy->order.assign(kept.rbegin(), kept.rend());
    for (uint32_t i = 0; i < graph_.inputs.size(); ++i) stage.inputs.push_back(i);
    for (const ValueId v : kept_) {
      if (part_of_.at(v) < part && wanted.contains(v)) become_input(*copy, v, stage);
    }
    if (!last) {
      for (const ValueId v : outputs) stage.outputs.push_back(out_.places_.at(v).index);
    }
    copy->outputs = std::move(outputs);
    return copy;
  }

 private:
  size_t begin(size_t part) const { return part == 0 ? 0 : calls_[part - 1].position; }
  size_t end(size_t part) const { return part == calls_.size() ? graph_.order.size() : calls_[part].position; }

  template <class F>
  bool any_node(size_t part, F&& f) const {
    for (size_t i = begin(part); i < end(part); ++i)
      if (f(graph_.node(graph_.order[i]))) return true;
    return false;
  }

  // Values read by a later part, or by the operator which ends their own part.
  void find_kept() {
    std::unordered_set<ValueId> seen;
    const auto use = [&](ValueId v, size_t part) {
      const auto made = part_of_.find(v);
      if (made == part_of_.end() || made->second >= part || !seen.insert(v).second) return;
      kept_.push_back(v);
      out_.places_[v] = {false, static_cast<uint32_t>(out_.table_size_++)};
    };
    for (size_t part = 0; part <= calls_.size(); ++part) {
      for (size_t i = begin(part); i < end(part); ++i)
        graph::Graph::for_each_value(graph_.node(graph_.order[i]).args, [&](const ValueId& v) { use(v, part); });
      if (part < calls_.size())
        graph::Graph::for_each_value(calls_[part].args, [&](const ValueId& v) { use(v, part + 1); });
    }
    for (const ValueId v : graph_.outputs) use(v, calls_.size());
    for (const graph::Mutation& m : graph_.mutations) use(m.value, calls_.size());
  }
  std::vector<ValueId> needed_later(size_t part) const {
    std::vector<ValueId> out;
    for (const ValueId v : kept_)
      if (part_of_.at(v) == part) out.push_back(v);
    return out;
  }
  void become_input(graph::Graph& copy, ValueId v, Stage& stage) const {
    graph::Value& value = copy.value(v);
    value.node = graph::NodeId{};
    value.kind = graph::Value::Kind::Input;
    value.result = static_cast<uint32_t>(copy.inputs.size());
    copy.inputs.push_back(v);
    stage.inputs.push_back(out_.places_.at(v).index);
  }

  StagedProgram& out_;
  const graph::Graph& graph_;
  const std::vector<DataDependentCall>& calls_;
  std::unordered_map<ValueId, size_t> part_of_;
  std::vector<ValueId> kept_;
};

StagedProgram::StagedProgram(std::unique_ptr<graph::Graph> graph, std::vector<DataDependentCall> calls,
                             const std::vector<SymbolBinding>& symbols, size_t real_inputs,
                             const std::vector<at::Tensor>& constants, const driver::Options& options,
                             const StagedProgram* around)
    : env_(graph->env_ptr()), around_(around), constants_(constants), graph_inputs_(graph->inputs.size()) {
  std::unordered_map<sym::VarId, uint32_t> slots;
  for (uint32_t i = 0; i < symbols.size(); ++i) slots.emplace(symbols[i].var, i);
  Cutter cutter(*this, *graph, calls);
  for (size_t part = 0; part <= calls.size(); ++part) {
    Stage stage;
    if (std::unique_ptr<graph::Graph> cut = cutter.cut(part, stage)) {
      Result<driver::Compiled> compiled = driver::compile(std::move(cut), options);
      CRESSET_CHECK(compiled.ok(), describe(compiled.fallback()));
      stats_.add(compiled->stats);
      for (const sym::VarId var : compiled->program.symbols) stage.symbols.push_back(slots.at(var));
      stage.executor = std::make_unique<Executor>(std::move(*compiled), constants_);
    }
    std::vector<Subgraph> parts;
    if (part < calls.size()) {
      parts = std::move(calls[part].parts);
      end_with(stage, std::move(calls[part]), symbols, real_inputs);
    }
    stages_.push_back(std::move(stage));
    add_parts(stages_.back(), *graph, std::move(parts), symbols, real_inputs, options);
    for (const auto& made : stages_.back().parts) stats_.add(made->stats());
  }
  make_assertions(symbols, slots, real_inputs);
  around_ = nullptr;
}

bool StagedProgram::binds(uint32_t slot) const {
  return std::any_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
    return std::any_of(stage.bindings.begin(), stage.bindings.end(), [&](const Binding& b) { return b.slot == slot; });
  });
}

// Whether the slot is bound by this program, or by an outer program before this one begins.
bool StagedProgram::is_bound(uint32_t slot) const {
  return binds(slot) || (around_ != nullptr && around_->is_bound(slot));
}

void StagedProgram::end_with(Stage& stage, DataDependentCall call, const std::vector<SymbolBinding>& symbols,
                             size_t real_inputs) const {
  stage.loops = is_while_loop(call);
  stage.carried = std::move(call.carried);
  stage.op = find_operator(call.op);
  stage.reads_elements = reads_elements(call);
  stage.args = std::move(call.args);
  stage.made = std::move(call.made);
  std::unordered_map<sym::VarId, uint32_t> slots;
  for (uint32_t i = 0; i < symbols.size(); ++i) slots.emplace(symbols[i].var, i);
  for (const Arg& arg : stage.args)
    if (const auto* number = std::get_if<sym::ExprId>(&arg)) stage.numbers.push_back(*number);
  stage.values = sym::SizeProgram::compile(env_->pool(), stage.numbers, slots);
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    const runtime::SymbolSource& s = symbols[i].source;
    const bool element = s.kind == runtime::SymbolSource::Kind::Element;
    const bool made = element || (s.kind == runtime::SymbolSource::Kind::InputSize && s.position >= real_inputs);
    if (made && std::find(stage.made.begin(), stage.made.end(), s.position) != stage.made.end())
      stage.bindings.push_back({i, s.position, s.dim, element});
  }
}

// By now lowering is finished and all assertions are present. Each assertion is checked once all its symbols are bound.
// Symbols made only in a subgraph, or in the backward program, are checked there.
void StagedProgram::make_assertions(const std::vector<SymbolBinding>& symbols,
                                    const std::unordered_map<sym::VarId, uint32_t>& slots, size_t real_inputs) {
  std::vector<std::vector<sym::ExprId>> conditions(stages_.size());
  const auto is_made = [&](const runtime::SymbolSource& s) {
    return s.kind == runtime::SymbolSource::Kind::Element ||
           (s.kind == runtime::SymbolSource::Kind::InputSize && s.position >= real_inputs);
  };
  for (const sym::RuntimeAssertion& assertion : env_->assertions()) {
    std::vector<sym::VarId> vars;
    env_->pool().collect_vars(assertion.condition, vars);
    std::optional<size_t> when;
    for (size_t i = 0; i < stages_.size(); ++i)
      for (const Binding& b : stages_[i].bindings)
        if (std::find(vars.begin(), vars.end(), symbols[b.slot].var) != vars.end()) when = i;
    if (!when) continue;  // on the caller's sizes: checked before all stages
    const bool elsewhere = std::any_of(vars.begin(), vars.end(), [&](sym::VarId var) {
      const auto slot = slots.find(var);
      return slot != slots.end() && is_made(symbols[slot->second].source) && !is_bound(slot->second);
    });
    if (elsewhere) continue;
    conditions[*when].push_back(assertion.condition);
    stages_[*when].messages.push_back(assertion.message);
  }
  for (size_t i = 0; i < stages_.size(); ++i)
    stages_[i].assertions = sym::SizeProgram::compile(env_->pool(), conditions[i], slots);
}

at::Tensor StagedProgram::at(ValueId value, const std::vector<at::Tensor>& table) const {
  const Place place = places_.at(value);
  return place.is_constant ? constants_[place.index] : table[place.index];
}

void StagedProgram::call(const Stage& stage, std::vector<at::Tensor>& table, int64_t* symbols) const {
  if (!stage.parts.empty()) return run_parts(stage, table, symbols);
  const auto tensor = [&](ValueId v) { return at(v, table); };
  if (stage.reads_elements) {
    table[stage.made[0]] = tensor(std::get<ValueId>(stage.args[0]));
    return bind(stage, table, symbols);
  }
  std::vector<int64_t> values(stage.numbers.size());
  stage.values.run(symbols, values.data());
  const auto integer = [&](sym::ExprId e) {
    const auto place = std::find(stage.numbers.begin(), stage.numbers.end(), e);
    return values[static_cast<size_t>(place - stage.numbers.begin())];
  };
  std::vector<at::Tensor> made = call_data_dependent(*stage.op, stage.args, tensor, integer);
  for (size_t i = 0; i < stage.made.size(); ++i) table[stage.made[i]] = std::move(made.at(i));
  bind(stage, table, symbols);
}

void StagedProgram::bind(const Stage& stage, const std::vector<at::Tensor>& table, int64_t* symbols) {
  for (const Binding& b : stage.bindings)
    symbols[b.slot] = b.element ? element(table[b.place], b.dim) : table[b.place].size(b.dim);
}

void StagedProgram::check(const Stage& stage, const int64_t* symbols) const {
  const int64_t failed = stage.assertions.first_zero(symbols);
  if (failed < 0) return;
  throw AssumptionFailed({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                         "cresset: " + stage.messages[static_cast<size_t>(failed)]);
}

std::vector<at::Tensor> StagedProgram::run(c10::ArrayRef<at::Tensor> inputs, int64_t* symbols) {
  std::vector<at::Tensor> table(table_size_);
  std::copy(inputs.begin(), inputs.end(), table.begin());
  std::vector<at::Tensor> results;
  for (const Stage& stage : stages_) {
    if (stage.executor != nullptr) {
      std::vector<at::Tensor> given;
      std::vector<int64_t> values;
      for (const uint32_t place : stage.inputs) given.push_back(table[place]);
      for (const uint32_t slot : stage.symbols) values.push_back(symbols[slot]);
      results = stage.executor->run(given, values);
      for (size_t i = 0; i < stage.outputs.size(); ++i) table[stage.outputs[i]] = std::move(results[i]);
    }
    if (stage.op || !stage.parts.empty()) call(stage, table, symbols);
    check(stage, symbols);
  }
  return results;
}

}  // namespace cresset::bridge
