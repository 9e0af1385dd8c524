#include "bridge/stages.h"

#include <ATen/core/stack.h>

#include <algorithm>
#include <unordered_set>

#include "bridge/arguments.h"
#include "bridge/control_flow.h"
#include "bridge/data_read.h"
#include "bridge/dtypes.h"
#include "bridge/entry.h"
#include "bridge/sym_node.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::OpId;
using graph::TensorType;
using graph::ValueId;

struct Producers {
  OpId nonzero = graph::op_id("aten::nonzero"), masked_select = graph::op_id("aten::masked_select"),
       unique2 = graph::op_id("aten::_unique2"), unique_dim = graph::op_id("aten::unique_dim"),
       unique_consecutive = graph::op_id("aten::unique_consecutive"),
       repeat_interleave = graph::op_id("aten::repeat_interleave.Tensor"), bincount = graph::op_id("aten::bincount"),
       item = graph::op_id("aten::_local_scalar_dense");
};
const Producers& producers() {
  static const Producers all;
  return all;
}

// Makes the result types of one call.
class ResultTypes {
 public:
  ResultTypes(graph::Graph& graph, const std::vector<Arg>& args, std::vector<std::pair<uint32_t, uint32_t>>& fresh)
      : graph_(graph), pool_(graph.pool()), args_(args), fresh_(fresh) {}

  std::vector<TensorType> of(OpId op) {
    const Producers& p = producers();
    const TensorType& self = graph_.type(std::get<ValueId>(args_[0]));
    device_ = self.device;
    if (op == p.nonzero) {
      const sym::ExprId found = count(0, 0);
      at_most(found, graph::numel(pool_, self.sizes));
      add(DType::I64, {found, pool_.constant(static_cast<int64_t>(self.rank()))});
      types_.back().strides = {pool_.constant(1), found};  // one dimension's indices after the other
    } else if (op == p.masked_select) {
      add(self.dtype, {count(0, 0)});
    } else if (op == p.repeat_interleave) {
      const auto* given = std::get_if<sym::ExprId>(&args_[1]);
      add(self.dtype, {given != nullptr ? *given : count(0, 0)});
    } else if (op == p.bincount) {
      counts_of_numbers();
    } else if (op == p.unique_dim) {
      unique_along(self, args_[1]);
    } else if (op == p.unique_consecutive && !std::holds_alternative<graph::None>(args_[3])) {
      unique_along(self, args_[3]);
    } else {
      unique_values(self, op == p.unique2);
    }
    return std::move(types_);
  }

 private:
  // bincount(self, weights, minlength)
  void counts_of_numbers() {
    if (graph_.type(std::get<ValueId>(args_[0])).rank() != 1) abort_capture("bincount of what is no vector");
    const auto* weights = std::get_if<ValueId>(&args_[1]);
    if (weights != nullptr) not_empty();  // else ATen counts in integers all the same
    const sym::ExprId found = count(0, 0);
    graph_.env().facts().learn(pool_.ge(found, std::get<sym::ExprId>(args_[2])));
    const DType counts = weights == nullptr ? DType::I64 : graph_.type(*weights).dtype;
    add(weights == nullptr || counts == DType::F32 ? counts : DType::F64, {found});
  }
  void not_empty() {
    const sym::ExprId any =
        pool_.ge(graph::numel(pool_, graph_.type(std::get<ValueId>(args_[0])).sizes), pool_.constant(1));
    if (!graph_.env().evaluate(any, [] { return current_reason(); }).value_or(false))
      abort_capture("weights of numbers of which there are none");
  }
  void unique_values(const TensorType& self, bool sorted_variant) {
    const size_t flags = sorted_variant ? 2 : 1;
    const sym::ExprId found = distinct(0, 0, graph::numel(pool_, self.sizes));
    const sym::ExprId none = pool_.constant(0);
    add(self.dtype, {found});
    add(DType::I64, std::get<bool>(args_[flags]) ? self.sizes : std::vector{none});
    add(DType::I64, {std::get<bool>(args_[flags + 1]) ? found : none});
  }
  // ATen makes it with the dimension in front, which is moved to its place; the others are given in any case.
  void unique_along(const TensorType& self, const Arg& along) {
    const sym::ExprId which = graph_.env().simplify(std::get<sym::ExprId>(along));
    if (!pool_.is_const(which)) abort_capture("unique along a dimension that is not known");
    const int64_t wrapped = pool_.const_value(which);
    const auto dim = static_cast<std::ptrdiff_t>(wrapped < 0 ? wrapped + static_cast<int64_t>(self.rank()) : wrapped);
    std::vector<sym::ExprId> sizes = self.sizes;
    const sym::ExprId whole = sizes.at(static_cast<size_t>(dim));
    const sym::ExprId found = distinct(0, static_cast<uint32_t>(dim), whole);
    sizes[static_cast<size_t>(dim)] = found;
    add(self.dtype, sizes);
    std::rotate(sizes.begin(), sizes.begin() + dim, sizes.begin() + dim + 1);
    std::vector<sym::ExprId> strides = graph::contiguous_strides(pool_, sizes);
    std::rotate(strides.begin(), strides.begin() + 1, strides.begin() + dim + 1);
    types_.back().strides = std::move(strides);
    add(DType::I64, {whole});
    add(DType::I64, {found});
  }

  sym::ExprId count(uint32_t result, uint32_t dim) {
    fresh_.emplace_back(result, dim);
    return graph_.env().new_unbacked("a size made by data");
  }
  sym::ExprId distinct(uint32_t result, uint32_t dim, sym::ExprId of) {
    const sym::ExprId found = count(result, dim);
    at_most(found, of);
    return found;
  }
  // What the operator promises, whatever the data.
  void at_most(sym::ExprId found, sym::ExprId limit) { graph_.env().facts().learn(pool_.le(found, limit)); }

  void add(DType dtype, std::vector<sym::ExprId> sizes) {
    TensorType type;
    type.dtype = dtype;
    type.device = device_;
    type.strides = graph::contiguous_strides(pool_, sizes);
    type.sizes = std::move(sizes);
    types_.push_back(std::move(type));
  }

  graph::Graph& graph_;
  sym::ExprPool& pool_;
  const std::vector<Arg>& args_;
  std::vector<std::pair<uint32_t, uint32_t>>& fresh_;
  graph::Device device_;
  std::vector<TensorType> types_;
};

}  // namespace

bool makes_data_dependent_sizes(OpId op) {
  const Producers& p = producers();
  return op == p.nonzero || op == p.masked_select || op == p.unique2 || op == p.unique_dim ||
         op == p.unique_consecutive || op == p.repeat_interleave || op == p.bincount;
}

std::vector<TensorType> data_dependent_types(graph::Graph& graph, OpId op, const std::vector<Arg>& args,
                                             std::vector<std::pair<uint32_t, uint32_t>>& fresh) {
  return ResultTypes(graph, args, fresh).of(op);
}

bool reads_elements(const DataDependentCall& call) { return call.op == producers().item; }

int64_t element(const at::Tensor& tensor, uint32_t which) {
  return tensor.reshape({-1})[static_cast<int64_t>(which)].item<int64_t>();
}

// Cuts the graph: each part's inputs are the graph's and what earlier parts left, its outputs what later parts need.
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

  // Part `part` as a graph of its own; null when nothing is computed in it.
  std::unique_ptr<graph::Graph> cut(size_t part, Stage& stage) {
    auto copy = std::make_unique<graph::Graph>(graph_);
    const bool last = part == calls_.size();
    copy->order.clear();
    std::vector<ValueId> outputs = last ? graph_.outputs : needed_later(part);
    if (!last) copy->mutations.clear();
    // Random numbers are drawn as often as eager draws them, and what may raise is done though nobody uses it.
    const auto is_done = [&](const graph::Node& node) { return is_random(node.op) || node.caught; };
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

  // Values that a later part, or the operator that ends their own, reads.
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
    std::vector<GraphPart> parts;
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

// Here, or before the program around begins with this one.
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

// Lowering may have asked for more: all assertions are in by now. Each is checked once all that it mentions is bound:
// what only a part, or the backward program, makes is checked there.
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

// The dimension whose size data gives, if there are others, too: it lies in front in memory
// (ResultTypes::unique_along).
static std::optional<int64_t> made_along(const c10::FunctionSchema& schema, const torch::jit::Stack& args) {
  const std::optional<int> position = schema.argumentIndexWithName("dim");
  if (!position || args[static_cast<size_t>(*position)].isNone()) return std::nullopt;
  return args[static_cast<size_t>(*position)].toInt();
}

std::vector<at::Tensor> call_data_dependent(const c10::OperatorHandle& op, const std::vector<Arg>& args,
                                            const std::function<at::Tensor(ValueId)>& tensor,
                                            const std::function<int64_t(sym::ExprId)>& integer) {
  torch::jit::Stack stack;
  for (size_t i = 0; i < args.size(); ++i)
    stack.push_back(to_torch(args[i], arg_type(op.schema().arguments()[i]), tensor, integer));
  const std::optional<int64_t> front = made_along(op.schema(), stack);
  op.callBoxed(stack);
  const bool by_column = op.schema().name() == "aten::nonzero";
  std::vector<at::Tensor> out;
  for (const c10::IValue& result : stack) {
    const at::Tensor made = result.toTensor();
    if (by_column)
      out.push_back(made.t().contiguous().t());
    else if (front && out.empty())
      out.push_back(made.movedim(*front, 0).contiguous().movedim(0, *front));
    else
      out.push_back(made.contiguous());
  }
  return out;
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
