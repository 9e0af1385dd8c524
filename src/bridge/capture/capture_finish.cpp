// The end of a capture: results become output specifications.
#include <torch/csrc/autograd/variable.h>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/dtypes.h"
#include "bridge/capture/autograd_state.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/control_flow.h"
#include "bridge/capture/data_dependent_errors.h"
#include "bridge/capture/index_checks.h"

namespace cresset::bridge {

struct Capture::Results {
  std::unordered_set<uint32_t> escaping;                         // storages
  std::unordered_map<uint32_t, uint32_t> base_outputs{};         // by storage
  std::unordered_map<uint32_t, const c10::TensorImpl*> bases{};  // by storage: the result that is all of it, as it lies
  std::vector<bool> given_as_view{};                             // copies that eager mode makes as views
};

OutputSpec Capture::output_of(const at::Tensor& output, Results& results) {
  const at::Tensor tensor = TraceTensor::from(output) != nullptr ? output : lift(output);
  TraceTensor& trace = *TraceTensor::from(tensor);
  memory_of(trace);
  const std::optional<AsView> view = storages_.as_view(trace, results.escaping);
  results.given_as_view.push_back(view && view->of_copy);
  const uint32_t index = view ? view->source : trace.storage_id().index;
  Storage& storage = storages_[index];
  OutputSpec spec;
  spec.kind = storage.home;
  spec.position = storage.position;
  if (storage.home == OutputSpec::Kind::GraphOutput) {
    auto [it, fresh] = results.base_outputs.try_emplace(index, graph().outputs.size());
    // A tensor made by torch.tensor() is a constant of the program; each call returns a copy of its own.
    if (fresh && graph().value(storage.value).kind == graph::Value::Kind::Constant)
      storage.value = recorder_.append(graph::op_id("aten::clone"), {storage.value, graph::None{}},
                                       {graph().type(storage.value)})[0];
    if (fresh) graph().outputs.push_back(storage.value);
    spec.position = it->second;
  }
  // A value written to the caller's tensor takes the layout of this tensor, not the computed layout.
  const graph::TensorType& base =
      graph().type(storage.home == OutputSpec::Kind::GraphOutput ? storage.value
                   : storage.home == OutputSpec::Kind::Input     ? graph().inputs[storage.position]
                                                                 : graph().constants[storage.position]);
  spec.dtype = trace.type().dtype;
  spec.sizes = trace.type().sizes;
  spec.strides = view ? view->strides : trace.type().strides;
  spec.offset = view ? view->offset : trace.offset();
  const auto same = [&](const std::vector<sym::ExprId>& a, const std::vector<sym::ExprId>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](sym::ExprId x, sym::ExprId y) { return env().known_equal(x, y); });
  };
  if (view && view->is_source && storage.home != OutputSpec::Kind::GraphOutput) return spec;
  // Two tensors are two objects, though they show the same of the same memory (`y.data` beside `y`).
  spec.is_view = view || trace.chain() != nullptr || !same(base.sizes, spec.sizes) || !same(base.strides, spec.strides);
  if (!spec.is_view && storage.home == OutputSpec::Kind::GraphOutput)
    spec.is_view = results.bases.try_emplace(index, &trace).first->second != &trace;
  const auto* of_autograd = torch::autograd::impl::get_view_autograd_meta(output);
  // A leaf may be a view of a tensor without gradients, which is then the base of its own views, too.
  const bool of_history =
      view ? output.requires_grad()
           : of_autograd != nullptr && of_autograd->has_bw_view() &&
                 (of_autograd->get_backward_view().base_.requires_grad() || gradient_node(output) != nullptr);
  spec.detached = !of_history;
  spec.hidden_alias = storage.hidden_alias;
  spec.unrecorded = !spec.detached && gradient_node(output) == nullptr;
  spec.of_unrecorded = of_history && unrecorded_view_behind(output).defined();
  spec.one_of_several = is_one_of_several(output);
  spec.inference = output.is_inference();
  gradients_.describe(spec, output);
  const bool recorded = storage.home == OutputSpec::Kind::GraphOutput || (!spec.detached && !spec.unrecorded);
  if (!view && recorded && trace.chain() != nullptr) spec.within = trace.chain()->within;
  spec.conjugated = view ? view->conjugated : trace.is_conj();
  spec.negated = view ? view->negated : trace.is_neg();
  spec.value = trace.value, spec.notes = storages_.notes();
  if (view && trace.chain() != nullptr) storages_.notes()->parts_of_copies.insert(trace.value);
  return spec;
}

std::vector<OutputSpec> Capture::outputs_of_subgraph(const std::vector<at::Tensor>& tensors,
                                                     std::vector<graph::ValueId>& outputs) {
  Results results{{}};
  std::vector<OutputSpec> specs;
  graph().outputs.swap(outputs);
  try {
    for (const at::Tensor& tensor : tensors) specs.push_back(output_of(tensor, results));
  } catch (...) {
    graph().outputs.swap(outputs);
    throw;
  }
  graph().outputs.swap(outputs);
  return specs;
}

std::vector<Extent> OutputSpec::extents() const {
  std::vector<Extent> out = within;
  out.push_back({sizes, strides, offset});
  return out;
}

at::Tensor OutputSpec::marked(at::Tensor view) const {
  if (conjugated) view = view._conj();
  return negated ? view._neg_view() : view;
}

// Keeps unused operators which may raise: a later call may supply data for which eager mode raises.
void GraphRecorder::keep_what_raises(const Backward* backward) {
  std::vector<bool> used(graph().value_count());
  const auto use = [&](graph::ValueId v) { used[v.index] = true; };
  const auto use_all = [&](const std::vector<graph::Arg>& args) {
    graph::Graph::for_each_value(args, [&](const graph::ValueId& v) { use(v); });
  };
  std::vector<UnusedCall> unused;
  std::for_each(graph().outputs.begin(), graph().outputs.end(), use);
  for (const graph::Mutation& m : graph().mutations) use(m.value);
  const auto use_part = [&](const Subgraph& part) {
    for (const graph::ValueId v : used_from_outside(graph(), part)) use(v);
  };
  if (backward != nullptr) use_part(backward->part);
  for (const DataDependentCall& call : data_calls_) {
    use_all(call.args);
    for (const Subgraph& part : call.parts) use_part(part);
  }
  for (size_t i = graph().order.size(); i-- > 0;) {
    graph::Node& node = graph().node(graph().order[i]);
    const bool is_used =
        std::any_of(node.results.begin(), node.results.end(), [&](graph::ValueId v) { return used[v.index]; });
    if (!is_used && !node.caught && may_raise(graph(), node.op, node.args)) {
      unused.push_back({i, index_bounds(graph(), node.op, node.args)});
      node.caught = unused.back().bounds.empty();
      std::erase_if(unused.back().bounds,
                    [&](const IndexBound& bound) { return is_column_of_mask(graph(), data_calls_, bound); });
      for (const IndexBound& bound : unused.back().bounds) use(bound.indices);
    }
    if (is_used || node.caught) use_all(node.args);
  }
  std::reverse(unused.begin(), unused.end());
  check_indices(graph(), constants_, data_calls_, unused);
}

Captured Capture::finish(const std::vector<at::Tensor>& outputs, bool runs_once) {
  Results results{{}};
  for (const at::Tensor& output : outputs)
    if (const TraceTensor* trace = TraceTensor::from(output)) results.escaping.insert(trace->storage_id().index);
  std::vector<OutputSpec> specs;
  for (const at::Tensor& output : outputs) specs.push_back(output_of(output, results));
  storages_.set_versions(specs, outputs, results.given_as_view);
  gradients_.link_views(specs, outputs);
  add_mutations();
  if (!runs_once) recorder_.keep_what_raises(gradients_.backward().get());
  Captured out = std::move(counters);
  out.outputs = std::move(specs);
  recorder_.finish(out);
  out.backward = gradients_.finished_backward(outputs);
  out.input_layouts = std::move(storages_.input_layouts());
  storages_.proxies().clear();
  out.notes.reset();
  return out;
}

}  // namespace cresset::bridge
