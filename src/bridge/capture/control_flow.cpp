#include "bridge/capture/control_flow.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "bridge/capture/autograd_state.h"
#include "bridge/capture/sym_node.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::OpId;
using graph::ValueId;

OpId cond_id() {
  static const OpId id = graph::op_id("cresset::cond");
  return id;
}
OpId while_id() {
  static const OpId id = graph::op_id("cresset::while_loop");
  return id;
}

class Uses {
 public:
  explicit Uses(const graph::Graph& graph) : graph_(graph) {}

  void of(const Subgraph& part) {
    for (const graph::NodeId id : part.order)
      for (const ValueId v : graph_.node(id).results) own_.insert(v);
    for (const DataDependentCall& call : part.calls) {
      for (const uint32_t position : call.made) own_.insert(graph_.inputs[position]);
      for (const uint32_t position : call.carried) own_.insert(graph_.inputs[position]);
    }
    for (const graph::NodeId id : part.order)
      graph::Graph::for_each_value(graph_.node(id).args, [&](const ValueId& v) { use(v); });
    for (const DataDependentCall& call : part.calls)
      graph::Graph::for_each_value(call.args, [&](const ValueId& v) { use(v); });
    for (const ValueId v : part.outputs) use(v);
  }
  std::vector<ValueId> found;

 private:
  void use(ValueId v) {
    if (!own_.contains(v) && seen_.insert(v).second) found.push_back(v);
  }
  const graph::Graph& graph_;
  std::unordered_set<ValueId> own_, seen_;
};

bool is_computed_in(const graph::Graph& graph, const Subgraph& part, ValueId v) {
  const graph::Value& value = graph.value(v);
  return value.kind == graph::Value::Kind::Result &&
         std::find(part.order.begin(), part.order.end(), value.node) != part.order.end();
}

bool gives_fresh_memory(const graph::Graph& graph, ValueId v) {
  const ops::OpDef* def = ops::find(graph.node(graph.value(v).node).op);
  return def != nullptr && def->op_class != ops::OpClass::View;
}

// The operands of the call: its arguments, then all outer values which its subgraphs use, each once.
std::vector<Arg> operands(const graph::Graph& graph, const DataDependentCall& call) {
  std::vector<Arg> out = call.args;
  std::unordered_set<ValueId> seen;
  for (const uint32_t position : call.carried) seen.insert(graph.inputs[position]);
  for (const Subgraph& part : call.parts)
    for (const ValueId v : used_from_outside(graph, part))
      if (seen.insert(v).second) out.emplace_back(v);
  return out;
}

// The tensor itself, or the proxy tensor of an outer tensor.
at::Tensor traced(Capture& capture, const at::Tensor& tensor) {
  return TraceTensor::from(tensor) != nullptr ? tensor : capture.lift(tensor);
}

}  // namespace

bool is_cond(const DataDependentCall& call) { return call.op == cond_id(); }
bool is_while_loop(const DataDependentCall& call) { return call.op == while_id(); }

std::vector<ValueId> used_from_outside(const graph::Graph& graph, const Subgraph& part) {
  Uses uses(graph);
  uses.of(part);
  return std::move(uses.found);
}

std::unique_ptr<graph::Graph> graph_of(const graph::Graph& graph, const Subgraph& part,
                                       const std::vector<ValueId>& given) {
  auto out = std::make_unique<graph::Graph>(graph);
  out->order = part.order;
  out->outputs = part.outputs;
  out->mutations.clear();
  for (const ValueId v : given) {
    graph::Value& value = out->value(v);
    value.node = graph::NodeId{};
    value.kind = graph::Value::Kind::Input;
    value.result = static_cast<uint32_t>(out->inputs.size());
    out->inputs.push_back(v);
  }
  return out;
}

std::string print_with_calls(const graph::Graph& graph, const std::vector<DataDependentCall>& calls) {
  static constexpr const char* kNames[2][2] = {{"if true", "if false"}, {"while", "do"}};
  std::vector<graph::CallBetween> between;
  for (const DataDependentCall& call : calls) {
    between.push_back({call.position, call.op, &call.args, {}});
    for (const uint32_t position : call.made) between.back().made.push_back(graph.inputs[position]);
  }
  std::string out = graph::print(graph, between);
  for (const DataDependentCall& call : calls) {
    if (!is_control_flow(call)) continue;
    out += "\n" + std::string(graph::op_name(call.op)) + " before node " + std::to_string(call.position);
    for (size_t i = 0; i < call.parts.size(); ++i) {
      out += std::string("\n") + kNames[is_cond(call) ? 0 : 1][i] + ":\n";
      out += print_with_calls(*graph_of(graph, call.parts[i], {}), call.parts[i].calls);
    }
  }
  return out;
}

// ---- Recording

struct SubgraphRecorder::Recording {
  size_t nodes, calls, storages;
  std::vector<std::pair<ValueId, uint32_t>> contents;  // of storages: value, version
  std::vector<uint32_t> counters;                      // of storages: version_of the caller's tensor
  struct Known {
    at::Tensor tensor;
    ValueId value;
    uint32_t version;
    ViewChainPtr chain;
  };
  std::vector<Known> tensors;
};

void SubgraphRecorder::fail_subgraph(BreakReason why) {
  if (subgraph_failure_.empty()) subgraph_failure_ = std::move(why);
}

void SubgraphRecorder::begin_subgraph() {
  for (Storage& storage : capture_.storages()) capture_.storages().settle_watched(storage);
  auto recording = std::make_shared<Recording>();
  for (at::Tensor& tensor : capture_.live().all()) {
    auto* trace = static_cast<TraceTensor*>(tensor.unsafeGetTensorImpl());
    recording->tensors.push_back({tensor, trace->value, trace->version, trace->chain()});
  }
  recording->nodes = capture_.graph().order.size();
  recording->calls = capture_.recorder().data_calls().size();
  recording->storages = capture_.storages().size();
  for (const Storage& storage : capture_.storages()) {
    recording->contents.emplace_back(storage.value, storage.version);
    recording->counters.push_back(storage.real.defined() ? version_of(storage.real) : 0);
  }
  recordings_.push_back(std::move(recording));
}

// Removes nodes, calls and writes of the subgraph. Outer tensors and storages get their previous contents back.
void SubgraphRecorder::restore(Recording& recording) {
  capture_.graph().order.resize(recording.nodes);
  capture_.recorder().data_calls().erase(capture_.recorder().data_calls().begin() + static_cast<long>(recording.calls),
                                         capture_.recorder().data_calls().end());
  for (size_t i = 0; i < capture_.storages().size(); ++i) {
    Storage& storage = capture_.storages()[i];
    if (storage.real.defined() && !storage.real.is_inference()) {
      c10::VariableVersion counter = storage.real.unsafeGetTensorImpl()->version_counter();
      counter.set_version(i < recording.storages ? recording.counters[i] : storage.first_version);
    }
    if (i < recording.storages) {
      std::tie(storage.value, storage.version) = recording.contents[i];
    } else if (storage.home == OutputSpec::Kind::Constant && storage.version != 0) {  // met in the subgraph
      storage.value = capture_.graph().constants[storage.position];
      storage.version = 0;
    }
  }
  for (Recording::Known& known : recording.tensors) {
    auto* trace = static_cast<TraceTensor*>(known.tensor.unsafeGetTensorImpl());
    trace->value = known.value;
    trace->version = known.version;
  }
  for (at::Tensor& tensor :
       capture_.live().all()) {  // proxies of constants which were met in the subgraph, and written
    auto* trace = static_cast<TraceTensor*>(tensor.unsafeGetTensorImpl());
    const Storage& storage = capture_.storages()[trace->storage_id().index];
    if (storage.home == OutputSpec::Kind::Constant && storage.version == 0 && trace->version != 0 &&
        trace->chain() == nullptr) {
      trace->value = storage.value;
      trace->version = 0;
    }
  }
  recordings_.pop_back();
}

void SubgraphRecorder::abandon_subgraph() { restore(*recordings_.back()); }

Subgraph SubgraphRecorder::end_subgraph(const std::vector<at::Tensor>& outputs) {
  Recording& recording = *recordings_.back();
  Subgraph part;
  for (const at::Tensor& output : outputs) {
    const at::Tensor proxy = traced(capture_, output);
    part.outputs.push_back(capture_.value_of(*TraceTensor::from(proxy)));
  }
  for (const Recording::Known& known : recording.tensors)
    if (static_cast<TraceTensor*>(known.tensor.unsafeGetTensorImpl())->chain() != known.chain)
      abort_capture(BreakKind::SideEffect, "it changes the geometry of a tensor from outside in place");
  for (uint32_t i = 0; i < capture_.storages().size(); ++i) {
    Storage& storage = capture_.storages()[i];
    const uint32_t before = i < recording.storages ? recording.contents[i].second : 0;
    const bool outer = i < recording.storages || storage.home != OutputSpec::Kind::GraphOutput;
    if (outer && storage.version != before) part.writes.emplace_back(i, storage.value);
  }
  part.order.assign(capture_.graph().order.begin() + static_cast<long>(recording.nodes), capture_.graph().order.end());
  for (size_t i = recording.calls; i < capture_.recorder().data_calls().size(); ++i) {
    part.calls.push_back(std::move(capture_.recorder().data_calls()[i]));
    part.calls.back().position -= recording.nodes;
  }
  restore(recording);
  return part;
}

// ---- Operators

graph::ValueId SubgraphRecorder::append_to(Subgraph& part, OpId op, std::vector<Arg> args) {
  const size_t before = capture_.graph().order.size();
  const ValueId out = capture_.recorder().call(op, std::move(args))[0];
  part.order.insert(part.order.end(), capture_.graph().order.begin() + static_cast<long>(before),
                    capture_.graph().order.end());
  capture_.graph().order.resize(before);
  return out;
}

// Makes the operator's results separate tensors: neither operands nor views, nor the same tensor twice.
void SubgraphRecorder::own_outputs(Subgraph& part) {
  static const OpId clone = graph::op_id("aten::clone");
  std::unordered_set<ValueId> given;
  for (ValueId& v : part.outputs) {
    const bool own = is_computed_in(capture_.graph(), part, v) && gives_fresh_memory(capture_.graph(), v);
    if (!own || !given.insert(v).second) v = append_to(part, clone, {v, graph::None{}});
  }
}

// Gives both branches the same result types. Sizes with equal hints are guarded to be equal.
void SubgraphRecorder::unify_outputs(Subgraph& a, Subgraph& b) {
  static const OpId clone = graph::op_id("aten::clone");
  if (a.outputs.size() != b.outputs.size())
    abort_capture(BreakKind::ControlFlow, "the branches give different numbers of tensors");
  sym::ExprPool& pool = capture_.env().pool();
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const graph::TensorType &x = capture_.graph().type(a.outputs[i]), &y = capture_.graph().type(b.outputs[i]);
    if (x.dtype != y.dtype || !(x.device == y.device) || x.rank() != y.rank())
      abort_capture(BreakKind::ControlFlow, "the branches give tensors of different dtype, device or rank");
    bool same_strides = true;
    for (size_t d = 0; d < x.rank(); ++d) {
      const auto reason = [] { return current_reason(); };
      if (!capture_.env().evaluate(pool.eq(x.sizes[d], y.sizes[d]), reason).value_or(false))
        abort_capture(BreakKind::ControlFlow, "the branches give tensors of different sizes");
      same_strides = same_strides && capture_.env().known_equal(x.strides[d], y.strides[d]);
    }
    if (same_strides) continue;
    a.outputs[i] = append_to(a, clone, {a.outputs[i], graph::MemoryFormat::Contiguous});
    b.outputs[i] = append_to(b, clone, {b.outputs[i], graph::MemoryFormat::Contiguous});
  }
}

// A write in only one branch becomes a copy of the old contents in the other.
void SubgraphRecorder::include_writes(Subgraph& a, Subgraph& b) {
  std::vector<uint32_t> written;
  for (const Subgraph* part : {&a, &b})
    for (const auto& [storage, _] : part->writes)
      if (std::find(written.begin(), written.end(), storage) == written.end()) written.push_back(storage);
  for (Subgraph* part : {&a, &b}) {
    const auto writes = std::exchange(part->writes, {});
    for (const uint32_t storage : written) {
      const auto own = std::find_if(writes.begin(), writes.end(), [&](const auto& w) { return w.first == storage; });
      const ValueId value = own != writes.end() ? own->second : capture_.storages()[storage].value;
      part->outputs.push_back(value);
      part->writes.emplace_back(storage, value);
    }
  }
}

std::vector<at::Tensor> SubgraphRecorder::add_control_flow(DataDependentCall call, size_t results) {
  call.args = operands(capture_.graph(), call);
  call.position = capture_.graph().order.size();
  std::vector<at::Tensor> out;
  const Subgraph& gives = call.parts.back();
  for (size_t i = 0; i < gives.outputs.size(); ++i) {
    call.made.push_back(static_cast<uint32_t>(capture_.graph().inputs.size()));
    const ValueId made =
        capture_.graph().add_input(capture_.graph().type(gives.outputs[i]), std::string(graph::op_name(call.op)));
    if (i < results) {
      out.push_back(capture_.make_result(made));
      continue;
    }
    Storage& storage = capture_.storages()[gives.writes[i - results].first];
    storage.value = made;
    ++storage.version;
    if (storage.real.defined() && !storage.real.is_inference()) storage.real.unsafeGetTensorImpl()->bump_version();
    capture_.storages().note_write(gives.writes[i - results].first);
  }
  for (Subgraph& part : call.parts) part.writes.clear();
  capture_.recorder().data_calls().push_back(std::move(call));
  return out;
}

std::vector<at::Tensor> SubgraphRecorder::add_cond(const at::Tensor& predicate, Subgraph if_true, Subgraph if_false) {
  const size_t results = if_true.outputs.size();
  if (if_false.outputs.size() != results)
    abort_capture(BreakKind::ControlFlow, "the branches give different numbers of tensors");
  const at::Tensor proxy = traced(capture_, predicate);
  const ValueId decides = capture_.value_of(*TraceTensor::from(proxy));
  include_writes(if_true, if_false);
  own_outputs(if_true);
  own_outputs(if_false);
  unify_outputs(if_true, if_false);
  DataDependentCall call{cond_id(), {decides}, 0, {}, {}, {}};
  call.parts.push_back(std::move(if_true));
  call.parts.push_back(std::move(if_false));
  return add_control_flow(std::move(call), results);
}

std::vector<at::Tensor> SubgraphRecorder::add_carried(const std::vector<at::Tensor>& initial,
                                                      std::vector<uint32_t>& positions) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : initial) {
    const at::Tensor proxy = traced(capture_, tensor);
    graph::TensorType type = capture_.graph().type(capture_.value_of(*TraceTensor::from(proxy)));
    type.strides = graph::contiguous_strides(capture_.env().pool(), type.sizes);
    positions.push_back(static_cast<uint32_t>(capture_.graph().inputs.size()));
    out.push_back(capture_.make_result(capture_.graph().add_input(std::move(type), "carried")));
  }
  return out;
}

std::vector<at::Tensor> SubgraphRecorder::add_while(const std::vector<at::Tensor>& initial,
                                                    std::vector<uint32_t> carried, Subgraph condition, Subgraph body) {
  static const OpId clone = graph::op_id("aten::clone");
  if (!condition.writes.empty() || !body.writes.empty())
    abort_capture(BreakKind::SideEffect, "a loop writes to a tensor from outside");
  if (condition.outputs.size() != 1) abort_capture(BreakKind::ControlFlow, "the condition of a loop is not one tensor");
  if (body.outputs.size() != carried.size())
    abort_capture(BreakKind::ControlFlow, "the body of a loop gives another number of tensors");
  DataDependentCall call{while_id(), {}, 0, {}, {}, std::move(carried)};
  for (const at::Tensor& tensor : initial) {
    const at::Tensor proxy = traced(capture_, tensor);
    const ValueId value = capture_.value_of(*TraceTensor::from(proxy));
    call.args.emplace_back(capture_.recorder().call(clone, {value, graph::MemoryFormat::Contiguous})[0]);
  }
  Subgraph start;  // the first iteration receives tensors of the types which each iteration returns
  for (const uint32_t position : call.carried) start.outputs.push_back(capture_.graph().inputs[position]);
  own_outputs(condition);
  own_outputs(body);
  unify_outputs(body, start);
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const bool same = capture_.graph().type(body.outputs[i]).strides ==
                      capture_.graph().type(capture_.graph().inputs[call.carried[i]]).strides;
    if (!same) body.outputs[i] = append_to(body, clone, {body.outputs[i], graph::MemoryFormat::Contiguous});
  }
  const size_t results = body.outputs.size();
  call.parts.push_back(std::move(condition));
  call.parts.push_back(std::move(body));
  return add_control_flow(std::move(call), results);
}

}  // namespace cresset::bridge
