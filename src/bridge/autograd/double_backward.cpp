#include "bridge/autograd/double_backward.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/op_schema.h"
#include "bridge/autograd/recorded_forward.h"
#include "bridge/capture/control_flow.h"
#include "bridge/capture/graph_cut.h"
#include "bridge/capture/graph_interpreter.h"
#include "passes/rewriter.h"
#include "sym/eval.h"

namespace cresset::bridge {
namespace {

using torch::autograd::Edge;

// The same memory, with a history.
at::Tensor with_history(const at::Tensor& plain, const Edge& edge) {
  at::Tensor out = plain.detach();
  if (!edge.is_valid()) return out;
  if (dynamic_cast<torch::autograd::AccumulateGrad*>(edge.function.get()) != nullptr) {
    out.set_requires_grad(true);
    torch::autograd::impl::set_grad_accumulator(
        out, decltype(torch::autograd::AutogradMeta::grad_accumulator_)(edge.function));
  } else {
    torch::autograd::impl::set_gradient_edge(out, edge);
  }
  return out;
}

}  // namespace

std::atomic<int64_t>& double_backward_fallbacks() {
  static std::atomic<int64_t> count = 0;
  return count;
}

DoubleBackward::DoubleBackward(const graph::Graph& graph, std::shared_ptr<const Backward> backward,
                               const std::vector<at::Tensor>& constants,
                               const std::unordered_map<sym::VarId, uint32_t>& slots)
    : whole_(std::make_shared<const graph::Graph>(graph)),
      graph_(*whole_),
      backward_(std::move(backward)),
      constants_(constants),
      slots_(slots) {
  for (const graph::NodeId id : backward_->part.order)
    if (!backward_->in_own_casts.contains(id)) note_castable(id);
  needs_copies_.resize(graph_.mutations.size());
  if (backward_->record == nullptr || graph_.mutations.empty()) return;
  const std::vector<bool> read = RecordedForward::reads(graph_, *backward_);
  for (size_t i = 0; i < graph_.mutations.size(); ++i) {
    const graph::Mutation& m = graph_.mutations[i];
    needs_copies_[i] = read[(m.is_constant ? graph_.constants : graph_.inputs)[m.input].index];
  }
}

// Operators that autocast gives operands of its own dtype, whatever they are, by autocast's table. Those that are not
// in it may be.
static bool is_lowered(graph::OpId op) {
#define CRESSET_NAMED(name, ...) graph::op_id("aten::" #name __VA_OPT__("." #__VA_ARGS__)),
  static const std::unordered_set<graph::OpId> lowered{AT_FORALL_LOWER_PRECISION_FP(CRESSET_NAMED)};
#undef CRESSET_NAMED
  return lowered.contains(op);
}

void DoubleBackward::note_castable(graph::NodeId id) {
  const graph::Node& node = graph_.node(id);
  const std::optional<c10::OperatorHandle> handle = find_operator(node.op);
  if (!handle) return;
  const auto note = [&](Castable& on, c10::DispatchKey key, bool is_cuda) {
    if (!handle->hasKernelForDispatchKey(key)) return;
    graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) {
      const c10::ScalarType dtype = to_torch(graph_.type(v).dtype);
      if ((graph_.type(v).device.kind == graph::DeviceKind::Cuda) != is_cuda || !c10::isFloatingType(dtype) ||
          dtype == c10::kDouble)
        return;
      if (is_lowered(node.op))
        on.lowered.push_back(dtype);
      else
        on.others = true;
    });
  };
  note(on_cpu_, c10::DispatchKey::AutocastCPU, false);
  note(on_cuda_, c10::DispatchKey::AutocastCUDA, true);
}

bool DoubleBackward::casts_apart() const {
  const auto differ = [](const Castable& on, c10::DeviceType device) {
    if ((!on.others && on.lowered.empty()) || !at::autocast::is_autocast_enabled(device)) return false;
    const c10::ScalarType dtype = at::autocast::get_autocast_dtype(device);
    return on.others ||
           std::any_of(on.lowered.begin(), on.lowered.end(), [&](c10::ScalarType d) { return d != dtype; });
  };
  return differ(on_cpu_, at::kCPU) || differ(on_cuda_, at::kCUDA);
}

std::vector<at::Tensor> DoubleBackward::before_writes(c10::ArrayRef<at::Tensor> inputs) const {
  std::vector<at::Tensor> out(graph_.mutations.size());
  const at::NoGradGuard no_history;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!needs_copies_[i]) continue;
    const graph::Mutation& m = graph_.mutations[i];
    const at::Tensor& t = m.is_constant ? constants_[m.input] : inputs[m.input];
    out[i] = at::empty_strided(t.sizes(), t.strides(), t.options()).copy_(t);
  }
  return out;
}

DoubleBackward::Call DoubleBackward::note(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& before,
                                          const int64_t* symbols, size_t count) const {
  const auto edge_of = [](const at::Tensor& t) {
    return t.requires_grad() ? torch::autograd::impl::gradient_edge(t) : Edge();
  };
  Call out;
  std::vector<at::Tensor> held(inputs.begin(), inputs.end());
  for (size_t i = 0; i < graph_.mutations.size(); ++i) {
    const graph::Mutation& m = graph_.mutations[i];
    out.has_copies.push_back(before[i].defined());
    if (!before[i].defined()) continue;
    if (m.is_constant)
      out.overwritten_constants[m.input] = with_history(before[i], edge_of(constants_[m.input]));
    else
      held[m.input] = before[i];
  }
  for (const at::Tensor& t : held) out.inputs.add(t);
  for (const at::Tensor& t : inputs) out.edges.push_back(edge_of(t));
  for (const at::Tensor& t : constants_) out.constants.push_back(version_of(t));
  out.symbols.assign(symbols, symbols + count);
  return out;
}

std::vector<at::Tensor> DoubleBackward::constants_of(const Call& call) const {
  std::vector<at::Tensor> out = constants_;
  for (const auto& [position, copy] : call.overwritten_constants) out[position] = copy;
  return out;
}

// Flags by value: whether a value depends on leaves with gradients.
std::vector<bool> DoubleBackward::depends_on_leaves(const Call& call) const {
  static const graph::OpId detach = graph::op_id("aten::detach");
  const auto may_depend = [&](graph::ValueId v) { return is_differentiable(graph_.type(v).dtype); };
  std::vector<bool> out(graph_.value_count());
  // A tensor written as integers (`x.view(torch.int32)`) keeps its history, and its elements depend on integers.
  const auto by_history = [&](graph::NodeId node, graph::ValueId v) {
    const RecordedCall* const found = backward_->record != nullptr ? backward_->record->call_of(node) : nullptr;
    const RecordedCall::Given* const given = found != nullptr ? found->find(v) : nullptr;
    return given != nullptr && given->history.valid() && out[given->history.index];
  };
  for (size_t i = 0; i < call.edges.size(); ++i) out[graph_.inputs[i].index] = call.edges[i].is_valid();
  for (size_t i = 0; i < constants_.size(); ++i) out[graph_.constants[i].index] = constants_[i].requires_grad();
  for (const graph::NodeId id : graph_.order) {
    const graph::Node& node = graph_.node(id);
    const ops::OpTraits traits = ops::traits(node.op);
    std::vector<graph::Arg> read = node.args;
    if (traits.of_layout) read.erase(read.begin());
    bool depends = false;
    graph::Graph::for_each_value(read, [&](const graph::ValueId& v) { depends |= out[v.index] || by_history(id, v); });
    // Random numbers drawn into a tensor have no derivative.
    depends = depends && node.op != detach && !(traits.of_layout && traits.draws);
    for (const graph::ValueId v : node.results) out[v.index] = (depends || by_history(id, v)) && may_depend(v);
  }
  return out;
}

// Checks that no value which is read was written meanwhile. read: flags by value.
void DoubleBackward::check(const Call& call, const std::vector<bool>& read) const {
  std::vector<bool> inputs;
  for (size_t i = 0; i < call.edges.size(); ++i) inputs.push_back(read[graph_.inputs[i].index]);
  if (!inputs.empty()) call.inputs.check(inputs);
  for (size_t i = 0; i < constants_.size(); ++i)
    TORCH_CHECK(!read[graph_.constants[i].index] || call.overwritten_constants.contains(static_cast<uint32_t>(i)) ||
                    version_of(constants_[i]) == call.constants[i],
                "one of the variables needed for gradient computation has been modified by an inplace operation: [",
                constants_[i].toString(), " ", constants_[i].sizes(), "] is at version ", version_of(constants_[i]),
                "; expected version ", call.constants[i], " instead, in gradients of gradients of a compiled call.");
  for (size_t i = 0; i < graph_.mutations.size(); ++i) {
    const graph::Mutation& m = graph_.mutations[i];
    TORCH_CHECK(
        call.has_copies[i] || !read[(m.is_constant ? graph_.constants : graph_.inputs)[m.input].index],
        "cresset: gradients of gradients (create_graph=True) need what a compiled call has overwritten in place. "
        "Call the function without cresset.compile.");
  }
}

// The values of the forward part that the backward subgraph reads.
std::vector<graph::ValueId> DoubleBackward::needed() const {
  std::vector<graph::ValueId> out;
  for (const graph::ValueId v : used_from_outside(graph_, backward_->part))
    if (!backward_->is_of_pass(v)) out.push_back(v);
  return out;
}

// Calls give(interpreter) once the wanted values are present.
template <class Give>
std::vector<at::Tensor> DoubleBackward::interpreted(const Call& call, const std::vector<at::Tensor>& saved,
                                                    const std::vector<graph::ValueId>& wanted, Give&& give) const {
  const AboveAutograd recording;
  const c10::DispatchKeySet excluded =
      c10::impl::tls_local_dispatch_key_set().excluded_ & c10::autocast_dispatch_keyset;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  Captured joint;
  joint.graph = std::make_unique<graph::Graph>(graph_);
  joint.constants = constants_of(call);
  joint.backward = backward_;
  std::vector<at::Tensor> given;
  const bool on_record = c10::GradMode::is_enabled();
  for (size_t i = 0; i < call.edges.size(); ++i)
    given.push_back(with_history(call.inputs.tensors[i], on_record ? call.edges[i] : Edge()));
  Interpreter interpreter(joint, given, [&](sym::ExprId e) {
    return sym::eval(graph_.env().pool(), e, [&](sym::VarId var) -> std::optional<int64_t> {
      const auto slot = slots_.find(var);
      return slot != slots_.end() ? std::optional(call.symbols[slot->second]) : std::nullopt;
    });
  });
  const std::vector<bool> depends = depends_on_leaves(call);
  const auto is_given = [&](graph::ValueId v) { return !depends[v.index] || !on_record; };
  for (size_t i = 0; i < saved_.size(); ++i)
    if (is_given(saved_[i])) interpreter.know(saved_[i], saved[i]);
  std::vector<bool> read = interpreter.compute(wanted);
  for (const graph::ValueId v : saved_)  // the copy of an input, say
    if (is_given(v)) read[v.index] = false;
  check(call, read);
  interpreter.cast_in_subgraph(excluded);
  return give(interpreter);
}

// Whether the backward subgraph's operators have the derivatives of eager mode's pass. Each operand then has the
// history which its operator in the graph gives it, and autograd calls no Python functions.
bool DoubleBackward::is_plain(const std::vector<bool>& depends) const {
  const AutogradRecord& record = *backward_->record;
  if (!record.functions.empty() || record.reads_copies) return false;
  for (const RecordedCall& call : record.calls) {
    if (call.is_backward) continue;
    for (const RecordedCall::Given& given : call.given)
      if (given.history != given.value && (given.history.valid() || depends[given.value.index])) return false;
    for (uint32_t i = call.begin; i < call.end && !call.recorded; ++i)
      for (const graph::ValueId v : graph_.node(graph::NodeId{i}).results)
        if (depends[v.index]) return false;
  }
  return true;
}

// Flags by value: inputs and constants which the caller may have written since the call, because no formula of the
// backward subgraph reads their memory.
std::vector<bool> DoubleBackward::free_to_change(const Call& call) const {
  std::unordered_set<graph::ValueId> fixed;
  for (const graph::ValueId v : needed()) fixed.insert(passes::memory_of(graph_, v));
  for (const graph::Mutation& m : graph_.mutations)
    fixed.insert((m.is_constant ? graph_.constants : graph_.inputs)[m.input]);
  std::vector<bool> out(graph_.value_count());
  for (size_t i = 0; i < call.edges.size(); ++i) out[graph_.inputs[i].index] = !fixed.contains(graph_.inputs[i]);
  for (const graph::ValueId v : graph_.constants) out[v.index] = !fixed.contains(v);
  return out;
}

// The contents of unseen writes to the memory that has its history from this value.
static std::vector<graph::ValueId> unseen_contents(const graph::Graph& graph, const AutogradRecord& record,
                                                   graph::ValueId history) {
  std::vector<graph::ValueId> out;
  for (const RecordedCall& call : record.calls)
    for (const RecordedCall::Given& given : call.given)
      if (given.history == history && given.value != history && !call.is_backward &&
          graph.value(given.value).kind == graph::Value::Kind::Result &&
          record.call_of(graph.value(given.value).node) == &call)
        out.push_back(given.value);
  return out;
}

// Values that formulas read from memory which autograd saved and the call then wrote unseen (y.data.add_(1) behind
// y = x.relu()): the formula of relu reads the new contents.
std::vector<DoubleBackward::Rewritten> DoubleBackward::rewritten() const {
  std::vector<Rewritten> out;
  for (const graph::ValueId v : needed()) {
    if (graph_.value(v).kind != graph::Value::Kind::Result) continue;
    const RecordedCall* const call = backward_->record->call_of(graph_.value(v).node);
    const RecordedCall::Given* const given = call != nullptr && !call->is_backward ? call->find(v) : nullptr;
    if (given == nullptr || !given->history.valid() || given->history == v) continue;
    const graph::TensorType &had = graph_.type(given->history), &has = graph_.type(v);
    if (had.dtype != has.dtype || had.sizes != has.sizes) continue;
    out.push_back({given->history, v});
    for (const graph::ValueId earlier : unseen_contents(graph_, *backward_->record, given->history))
      if (earlier.index < v.index) out.push_back({earlier, v});
  }
  return out;
}

// Flags by value: the values computed from these values, and the values themselves.
static std::vector<bool> depending_on(const graph::Graph& graph, std::vector<bool> values) {
  for (const graph::NodeId id : graph.order) {
    bool any = false;
    graph::Graph::for_each_value(graph.node(id).args, [&](const graph::ValueId& v) { any |= values[v.index]; });
    for (const graph::ValueId v : graph.node(id).results) values[v.index] = any || values[v.index];
  }
  return values;
}

// Gives the run the contents at the call of each value that a formula reads and that depends on changed tensors.
void DoubleBackward::keep_contents(RecordedForward& forward, const Call& call, const std::vector<at::Tensor>& saved,
                                   const std::vector<bool>& changed) const {
  std::vector<bool> depends = changed;
  const std::vector<Rewritten> rewritten = this->rewritten();
  for (const Rewritten& r : rewritten) depends[r.saved.index] = true;
  depends = depending_on(graph_, std::move(depends));
  std::vector<graph::ValueId> wanted = needed();
  std::erase_if(wanted, [&](graph::ValueId v) { return !depends[v.index]; });
  if (wanted.empty()) return;
  const at::NoGradGuard no_history;
  interpreted(call, saved, wanted, [&](Interpreter& interpreter) {
    for (const graph::ValueId v : wanted) forward.keep(v, interpreter.known(v));
    for (const Rewritten& r : rewritten) forward.keep(r.saved, interpreter.known(r.contents));
    return std::vector<at::Tensor>();
  });
}

// nullopt: this way is impossible, and the backward subgraph may run instead.
std::optional<std::vector<at::Tensor>> DoubleBackward::through_autograd(const Call& call,
                                                                        const std::vector<at::Tensor>& tangents,
                                                                        const std::vector<at::Tensor>& saved) const {
  const std::vector<bool> depends = depends_on_leaves(call);
  const bool may_fail = is_plain(depends);
  if (!backward_->record->complete && may_fail) return std::nullopt;
  TORCH_CHECK(backward_->record->complete,
              "cresset: gradients of gradients (create_graph=True) cannot pass through this compiled call: a function "
              "of Python's in autograd's record is of a tensor that the program does not read. Call the function "
              "without cresset.compile.");
  const AboveAutograd recording;
  std::optional<c10::impl::ExcludeDispatchKeyGuard> no_autocast(c10::autocast_dispatch_keyset);
  std::vector<at::Tensor> given;
  for (size_t i = 0; i < call.edges.size(); ++i) given.push_back(with_history(call.inputs.tensors[i], call.edges[i]));
  try {
    RecordedForward forward(whole_, *backward_, given, constants_of(call), depends,
                            [graph = whole_, slots = slots_, symbols = call.symbols](sym::ExprId e) {
                              return sym::eval(graph->env().pool(), e,
                                               [&](sym::VarId var) -> std::optional<int64_t> {
                                                 const auto slot = slots.find(var);
                                                 return slot != slots.end() ? std::optional(symbols[slot->second])
                                                                            : std::nullopt;
                                               })
                                  .value();
                            });
    for (size_t i = 0; i < saved_.size(); ++i)
      if (!depends[saved_[i].index]) forward.know(saved_[i], saved[i]);
    for (const Backward::Write& w : backward_->writes)
      forward.know(w.live, tensor_at(w.place, given, constants_, {}).detach());
    std::vector<bool> changed(graph_.value_count());
    const std::vector<bool> free = free_to_change(call);
    const std::vector<graph::ValueId> known = needed();
    if (forward.follows_formulas(depending_on(graph_, free), {known.begin(), known.end()})) changed = free;
    keep_contents(forward, call, saved, changed);
    std::vector<bool> read = forward.run();
    for (size_t i = 0; i < read.size(); ++i) read[i] = read[i] && !changed[i];
    check(call, read);
    no_autocast.reset();  // formulas follow autocast at the call of the pass
    return forward.gradients(tangents);
  } catch (const c10::Error&) {
    if (!may_fail) throw;
    return std::nullopt;
  }
}

std::vector<at::Tensor> DoubleBackward::run(const Call& call, std::vector<at::Tensor> tangents,
                                            const std::vector<TangentLayout>& layouts,
                                            const std::vector<at::Tensor>& saved) const {
  ++double_backward_fallbacks();
  const auto of_part = [&](std::vector<at::Tensor> given) {
    if (!backward_->linear) fill_with_zeros(given, layouts);
    return interpreted(call, saved, needed(),
                       [&](Interpreter& interpreter) { return interpreter.gradients(*backward_, given); });
  };
  if (!c10::GradMode::is_enabled()) return of_part(std::move(tangents));
  if (auto found = through_autograd(call, tangents, saved)) {
    const at::NoGradGuard for_what_it_writes;
    if (!backward_->writes.empty()) of_part(std::move(tangents));
    return *std::move(found);
  }
  return of_part(std::move(tangents));
}

std::vector<at::Tensor> DoubleBackward::arriving(const Call& call, std::vector<at::Tensor> tangents,
                                                 const std::vector<TangentLayout>& layouts,
                                                 const std::vector<at::Tensor>& saved) const {
  fill_with_zeros(tangents, layouts);
  return interpreted(call, saved, needed(),
                     [&](Interpreter& interpreter) { return interpreter.arriving(*backward_, tangents); });
}

}  // namespace cresset::bridge
