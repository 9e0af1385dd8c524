// The end of a graph segment: deferred operators run, and trace tensors become real in place.
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include "base/log.h"
#include "bridge/aten/autograd_history.h"
#include "bridge/autograd/double_backward.h"
#include "bridge/autograd/escaped_gradients.h"
#include "bridge/autograd/gradients.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/control_flow.h"
#include "bridge/capture/graph_interpreter.h"
#include "bridge/executor/visible_strides.h"
#include "ops/op_traits.h"
#include "passes/rewriter.h"

namespace cresset::bridge {
namespace {

// RAII: operators were captured below autograd, autocast and Python's modes, and run there.
class BelowEverything {
 public:
  BelowEverything() : saved_(c10::impl::tls_local_dispatch_key_set()) {
    c10::impl::LocalDispatchKeySet keys = saved_;
    keys.included_ = c10::default_included_set;
    keys.excluded_ =
        (keys.excluded_ | c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset)
            .remove(c10::DispatchKey::BackendSelect);
    c10::impl::_force_tls_local_dispatch_key_set(keys);
  }
  ~BelowEverything() { c10::impl::_force_tls_local_dispatch_key_set(saved_); }

 private:
  c10::impl::LocalDispatchKeySet saved_;
};

}  // namespace

std::vector<at::Tensor> Capture::close() {
  if (!std::exchange(closed_, true)) client().on_close();
  input_proxies_.clear();
  wrappers_.clear();
  std::vector<at::Tensor> out = held();
  storages_.proxies().clear();
  return out;
}

bool Capture::says_history() const {
  for (const InputProxy& input_proxy : input_proxies_)
    if (input_proxy.real().defined() && is_asked_for_history(input_proxy.real())) return true;
  // A view of an argument, made by the program, has the argument's base as its own base, which is no input proxy.
  const std::vector<at::Tensor> live = live_.all();
  return std::any_of(live.begin(), live.end(), is_asked_for_history);
}

void Capture::forget_inputs() {
  recorder_.inputs().clear();
  for (Storage& storage : storages_) storage.real.reset();
}

std::vector<at::Tensor> Capture::held() {
  std::unordered_map<TraceTensor*, int64_t> own;  // references held by the capture, by proxy tensor
  for (const auto& [impl, proxy] : storages_.proxies()) ++own[static_cast<TraceTensor*>(proxy.unsafeGetTensorImpl())];
  for (const InputProxy& input_proxy : input_proxies_) ++own[input_proxy.proxy()];
  for (const InputProxy& wrapper : wrappers_) ++own[wrapper.proxy()];
  return live_.held(own);
}

Captured Captured::for_one_run() const {
  Captured out;
  out.graph = std::make_unique<graph::Graph>(*graph);
  out.constants = constants;
  out.symbols = symbols;
  out.outputs = outputs;
  out.data_calls = data_calls;
  out.facts = facts;
  out.backward = backward;
  return out;
}

namespace {

// The state for a backward pass of an interpreted capture.
struct Once {
  Once(Captured taken, std::vector<at::Tensor> real)
      : captured(std::move(taken)), inputs(std::move(real)), interpreter(captured, inputs) {}
  Captured captured;
  std::vector<at::Tensor> inputs;
  Interpreter interpreter;
  std::vector<at::Tensor> originals;     // of the inputs, with their history
  std::shared_ptr<DoubleBackward> pass;  // nullptr: none can be recorded
  std::vector<at::Tensor> before;        // DoubleBackward::before_writes
  std::vector<int64_t> symbols;
};

using Slots = std::unordered_map<sym::VarId, uint32_t>;

// The numbers of this call's symbols, and where each is. nullopt: data gives one of them.
std::optional<std::vector<int64_t>> numbers_of_call(const Captured& captured, Slots& slots) {
  std::vector<int64_t> out;
  for (const SymbolBinding& s : captured.symbols) {
    const std::optional<int64_t> number = captured.graph->env().hint(captured.graph->pool().var(s.var));
    if (!number) return std::nullopt;
    slots.emplace(s.var, static_cast<uint32_t>(out.size()));
    out.push_back(*number);
  }
  return out;
}

// Before the piece runs: it may overwrite what passes that are recorded themselves need.
void prepare_recorded(Once& once) {
  const Captured& captured = once.captured;
  if (captured.backward == nullptr || !captured.data_calls.empty() || !captured.backward->part.calls.empty()) return;
  Slots slots;
  const auto numbers = numbers_of_call(captured, slots);
  if (!numbers) return;
  once.symbols = *numbers;
  once.pass = std::make_shared<DoubleBackward>(*captured.graph, captured.backward, captured.constants, slots);
  once.before = once.pass->before_writes(once.inputs);
}

// Strides of dimensions of one element as eager mode gives them; empty: as the formulas say.
VisibleStrides::Answer strides_of_results(const Once& once) {
  Slots slots;
  const auto numbers = numbers_of_call(once.captured, slots);
  const auto visible = numbers ? VisibleStrides::of(once.captured, once.inputs.size(), slots) : nullptr;
  const auto found = visible != nullptr ? visible->find(once.inputs, numbers->data()) : nullptr;
  return found != nullptr ? *found : VisibleStrides::Answer(once.captured.outputs.size());
}

// Double-backward passes, at the sizes of this call.
BackwardRun recorded_of(const std::shared_ptr<Once>& once, const std::vector<TangentLayout>& layouts) {
  const Captured& captured = once->captured;
  if (once->pass == nullptr) return nullptr;
  std::vector<graph::ValueId> saved;
  for (const graph::ValueId v : used_from_outside(*captured.graph, captured.backward->part))
    if (!captured.backward->is_of_pass(v) && once->interpreter.known(v).defined()) saved.push_back(v);
  once->pass->set_saved(saved);
  std::vector<at::Tensor> given = once->originals;
  for (size_t i = 0; i < given.size(); ++i)
    if (!given[i].defined()) given[i] = once->inputs[i];
  const auto call = std::make_shared<const DoubleBackward::Call>(
      once->pass->note(given, once->before, once->symbols.data(), once->symbols.size()));
  return [=](std::vector<at::Tensor> tangents, const auto&) {
    std::vector<at::Tensor> kept;
    for (const graph::ValueId v : saved) kept.push_back(once->interpreter.known(v));
    return once->pass->run(*call, std::move(tangents), layouts, kept);
  };
}

// Tensors of the caller whose memory the backward subgraph reads: a later write makes a pass raise.
SavedTensors read_in_pass(const Once& once) {
  const graph::Graph& graph = *once.captured.graph;
  const Backward& backward = *once.captured.backward;
  std::unordered_set<uint32_t> read;
  for (const graph::ValueId v : used_from_outside(graph, backward.part)) {
    const graph::Value& memory = graph.value(passes::memory_of(graph, v));
    if (!backward.is_of_pass(v) && memory.kind == graph::Value::Kind::Input) read.insert(memory.result);
  }
  for (const graph::Mutation& m : graph.mutations)
    if (!m.is_constant) read.erase(m.input);
  SavedTensors out;
  for (uint32_t i = 0; i < once.inputs.size(); ++i)
    if (read.contains(i) && once.inputs[i].defined()) out.add(once.inputs[i]);
  return out;
}

void set_gradients(const std::shared_ptr<Once>& once, std::vector<at::Tensor>& results) {
  const Backward& backward = *once->captured.backward;
  const auto shared = shared_roots(backward, once->captured.outputs);
  std::vector<at::Tensor> roots, leaves;
  std::vector<TangentLayout> layouts;
  const auto at = [&](const Backward::Place& place) {
    return tensor_at(place, once->originals, once->captured.constants, results);
  };
  for (size_t i = 0; i < backward.roots.size(); ++i) {
    OutputSpec whole;
    whole.kind = OutputSpec::Kind::GraphOutput;
    whole.position = shared[i].value_or(0);
    const at::Tensor& t = roots.emplace_back(shared[i] ? once->interpreter.output(whole) : at(backward.roots[i]));
    layouts.push_back({t.sizes().vec(), t.strides().vec(), t.scalar_type(), t.device()});
  }
  for (const Backward::Place& leaf : backward.leaves) leaves.push_back(at(leaf));
  const std::vector<Backward::Place> written = written_roots(backward);
  BackwardRuns runs;
  runs.takes_any = true;
  runs.compiled = [once, layouts](std::vector<at::Tensor> tangents, const auto&) {
    const c10::DispatchKeySet keys = c10::impl::tls_local_dispatch_key_set().excluded_;
    const BelowEverything below;
    once->interpreter.cast_in_subgraph(keys & c10::autocast_dispatch_keyset);
    const Backward& computes = *once->captured.backward;
    const bool may_lack = computes.linear && computes.part.calls.empty();
    if (!may_lack) fill_with_zeros(tangents, layouts);
    return once->interpreter.gradients(*once->captured.backward, tangents);
  };
  runs.recorded = recorded_of(once, layouts);
  runs.arriving = [once, layouts](std::vector<at::Tensor> tangents, const auto&) {
    const BelowEverything below;
    fill_with_zeros(tangents, layouts);
    return once->interpreter.arriving(*once->captured.backward, tangents);
  };
  set_gradients(roots, roots.size() - written.size(), leaves, backward, layouts, read_in_pass(*once), nullptr,
                std::move(runs));
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = once->captured.outputs[i];
    if (spec.kind != OutputSpec::Kind::GraphOutput ||
        std::find(shared.begin(), shared.end(), spec.position) == shared.end())
      continue;
    const AboveAutograd recording;  // the segment may have ended inside an operator, where autograd records no views
    const at::AutoGradMode mode(!spec.unrecorded);
    results[i] = once->interpreter.output(spec);
  }
  for (const Backward::Place& place : written)
    for (size_t i = 0; i < results.size(); ++i)
      if (const OutputSpec& spec = once->captured.outputs[i];
          spec.is_view && !spec.detached && place == Backward::Place{spec.kind, spec.position}) {
        const AboveAutograd recording;
        const at::AutoGradMode mode(!spec.unrecorded);
        results[i] = once->interpreter.view(spec, at(place));
      }
}

// The value whose memory the views show, also as elements of another dtype.
graph::ValueId shown_memory(const graph::Graph& graph, graph::ValueId value) {
  graph::ValueId v = passes::memory_of(graph, value);
  while (graph.value(v).node.valid()) {
    const graph::Node& node = graph.node(graph.value(v).node);
    if (ops::traits(node.op).elements != ops::Elements::Reinterpreted) break;
    v = passes::memory_of(graph, std::get<graph::ValueId>(node.args[0]));
  }
  return v;
}

// Whether the result is a copy which eager mode makes as a view of a caller's tensor (possible_views.cpp).
bool is_copied_view(const Captured& captured, const OutputSpec& spec) {
  if (spec.kind != OutputSpec::Kind::Input || !spec.is_view || spec.detached || !spec.value.valid()) return false;
  const graph::Graph& graph = *captured.graph;
  const bool written = std::any_of(graph.mutations.begin(), graph.mutations.end(), [&](const graph::Mutation& m) {
    return !m.is_constant && m.input == spec.position;
  });
  return !written && shown_memory(graph, spec.value) != graph.inputs[spec.position];
}

// Copies which eager mode makes as views get the history of views. Autograd has recorded all other views itself.
void view_originals(const Once& once, std::vector<at::Tensor>& results) {
  if (c10::InferenceMode::is_enabled()) return;
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = once.captured.outputs[i];
    if (!results[i].defined() || !is_copied_view(once.captured, spec)) continue;
    const AboveAutograd recording;
    const at::AutoGradMode mode(!spec.unrecorded);
    const at::Tensor base = tensor_at({spec.kind, spec.position}, once.originals, once.captured.constants, {});
    if (base.defined() && base.requires_grad()) results[i] = once.interpreter.view(spec, base);
  }
}

}  // namespace

std::vector<at::Tensor> Capture::interpret(Captured& captured) {
  std::optional<BelowEverything> below(std::in_place);
  for (const SymbolBinding& s : captured.symbols)  // of dimensions marked unbacked
    if (s.source.kind == runtime::SymbolSource::Kind::InputSize && s.source.position < recorder_.inputs().size())
      captured.graph->env().learn(s.var, recorder_.inputs()[s.source.position].size(s.source.dim));
  const auto once = std::make_shared<Once>(std::move(captured), recorder_.inputs());
  prepare_recorded(*once);
  once->interpreter.run();
  std::vector<at::Tensor> out;
  const VisibleStrides::Answer strides = strides_of_results(*once);
  for (size_t i = 0; i < once->captured.outputs.size(); ++i) {
    const OutputSpec& spec = once->captured.outputs[i];
    at::Tensor& result = out.emplace_back(once->interpreter.output(spec));
    const bool is_callers_own = spec.kind != OutputSpec::Kind::GraphOutput && !spec.is_view;
    if (result.defined() && !is_callers_own && !strides[i].empty() &&
        same_addresses(result.sizes(), result.strides(), strides[i]))
      result = with_strides(result, strides[i]);
    if (spec.leaf && result.defined()) result.set_requires_grad(true);
  }
  deferred_error_ = once->interpreter.error();
  failed_ = deferred_error_ != nullptr;
  once->originals.resize(recorder_.inputs().size());
  for (const Storage& storage : storages_)
    if (storage.home == OutputSpec::Kind::Input) once->originals.at(storage.position) = storage.real;
  below.reset();
  view_originals(*once, out);
  if (once->captured.backward != nullptr && !deferred_error_) set_gradients(once, out);
  return out;
}

void Capture::settle(const std::vector<at::Tensor>& trace, const std::vector<at::Tensor>& real) {
  std::vector<at::Tensor> own_history;
  std::unordered_map<const c10::TensorImpl*, size_t> bases;
  for (size_t i = 0; i < trace.size(); ++i) {
    auto* tensor = static_cast<TraceTensor*>(trace[i].unsafeGetTensorImpl());
    if (!real[i].defined() || tensor->settled()) continue;
    const std::vector<at::Tensor>& leaves = tensor->capture().gradients().own_leaves();
    const bool is_leaf =
        std::any_of(leaves.begin(), leaves.end(), [&](const at::Tensor& t) { return t.is_same(trace[i]); });
    const bool is_callers =
        tensor->capture().storages().is_callers(*tensor);  // a proxy tensor: views refer to the tensor itself
    tensor->settle(real[i]);
    if (is_asked_for_history(trace[i])) {  // autograd is at work on the tensor's present history
      own_history.push_back(trace[i]);
    } else if (real[i].requires_grad() &&
               (gradient_node(real[i]) != nullptr || (!is_leaf && is_unrecorded_view(real[i])))) {  // of compiled code
      tensor->take_history(real[i]);
      if (!is_callers && !real[i].is_view()) bases.emplace(real[i].unsafeGetTensorImpl(), i);
    } else if (is_leaf && real[i].requires_grad() && !is_unrecorded_view(trace[i])) {
      take_place_of(real[i], trace[i]);
    } else {
      own_history.push_back(trace[i]);
    }
  }
  // Results which are views of each other remain so.
  for (const at::Tensor& t : trace)
    if (auto* view = torch::autograd::impl::get_view_autograd_meta(t);
        view != nullptr && view->has_bw_view() && !is_asked_for_history(t)) {
      auto& base = const_cast<torch::autograd::ViewInfo&>(view->get_backward_view()).base_;
      if (const auto found = bases.find(base.unsafeGetTensorImpl()); found != bases.end()) base = trace[found->second];
    }
  settle_gradients(own_history);
}

void GradientRecorder::settle_native_results(const std::vector<at::Tensor>& results) const {
  settle_gradients(results, first_node_);
}

BreakReason Capture::located(BreakReason why) const {
  if (!why.location.empty()) return why;
  why.location = graph().locations[graph().current_location];
  if (!remark.empty()) why.remark += "; " + remark;
  return why;
}

void Capture::flush(const BreakReason& why) {
  if (closed_) return;
  set_location();
  if (subgraphs_.in_subgraph()) {
    subgraphs_.fail_subgraph(located(why));
    TORCH_CHECK(false, "cresset: ", subgraphs_.subgraph_failure().text());
  }
  if (std::exchange(ends_in_order_, false) && client().end_in_order(why)) return;
  why_closed_ = located(why);
  CRESSET_LOG(Graph, "capture ends early: " + why_closed_.text());
  const std::vector<at::Tensor> live = close();
  Captured captured = finish(live, /*runs_once=*/true);
  settle(live, interpret(captured));
  gradients_.settle_written();
}

// The autograd graph of this run stays in the histories of the caller's written tensors.
void GradientRecorder::settle_written() const {
  std::vector<at::Tensor> written;
  for (const Storage& storage : capture_.storages()) {
    if (storage.home == OutputSpec::Kind::GraphOutput || !storage.real.defined()) continue;
    if (storage.version != 0 || storage.first_version != 0) refresh_history(storage.real);  // counted_writes()
    if (gradient_node(storage.real) != storage.gradient_node) written.push_back(storage.real);
  }
  settle_gradients(written, first_node_);
}

void Capture::rethrow_deferred() {
  if (deferred_error_) std::rethrow_exception(std::exchange(deferred_error_, nullptr));
}

}  // namespace cresset::bridge
