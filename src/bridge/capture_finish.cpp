// The end of a capture: writes through views become scatters, results become output specifications.
#include <torch/csrc/autograd/variable.h>

#include "bridge/capture.h"
#include "bridge/control_flow.h"
#include "bridge/dtypes.h"
#include "bridge/gradients.h"
#include "bridge/raised_by_data.h"
#include "bridge/rebase.h"
#include "bridge/sym_node.h"
#include "bridge/tensor_geometry.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::OpId;

struct ViewOps {
  OpId view = graph::op_id("aten::view"), reshape_alias = graph::op_id("aten::_reshape_alias"),
       unsafe_view = graph::op_id("aten::_unsafe_view"), unsqueeze = graph::op_id("aten::unsqueeze"),
       squeeze = graph::op_id("aten::squeeze"), squeeze_dim = graph::op_id("aten::squeeze.dim"),
       squeeze_dims = graph::op_id("aten::squeeze.dims"), permute = graph::op_id("aten::permute"),
       transpose = graph::op_id("aten::transpose.int"), t = graph::op_id("aten::t"),
       slice = graph::op_id("aten::slice.Tensor"), select = graph::op_id("aten::select.int"),
       expand = graph::op_id("aten::expand"), alias = graph::op_id("aten::alias"),
       detach = graph::op_id("aten::detach"), lift_fresh = graph::op_id("aten::lift_fresh"),
       as_strided = graph::op_id("aten::as_strided"), diagonal = graph::op_id("aten::diagonal");
};
const ViewOps& view_ops() {
  static const ViewOps ops;
  return ops;
}

bool is_reshape(OpId op) {
  const ViewOps& v = view_ops();
  return op == v.view || op == v.unsafe_view || op == v.reshape_alias || op == v.unsqueeze || op == v.squeeze ||
         op == v.squeeze_dim || op == v.squeeze_dims;
}
bool is_identity(OpId op) {
  const ViewOps& v = view_ops();
  return op == v.alias || op == v.detach || op == v.lift_fresh;
}

// Views whose elements eager computes when they are read: captured as values, given as what eager gives.
struct LazyViews {
  bool conjugated = false, negated = false;
  bool possible = true;  // the view as a whole is conjugated or negated, not a part of its elements

  explicit LazyViews(const TraceTensor& tensor) {
    static const OpId conj = graph::op_id("aten::conj_physical"), neg = graph::op_id("aten::neg");
    bool other_dtype = false;
    for (const ViewChain* link = tensor.chain().get(); link != nullptr; link = link->parent.get()) {
      conjugated ^= link->op == conj;
      negated ^= link->op == neg;
      possible &= !other_dtype || (link->op != conj && link->op != neg);
      other_dtype |= link->type.dtype != link->parent_type.dtype;
    }
  }
};

// The dims argument of the permutation that undoes a permute, transpose or t.
std::vector<int64_t> inverse_permutation(const sym::ExprPool& pool, const ViewChain& link) {
  const ViewOps& v = view_ops();
  const int64_t rank = static_cast<int64_t>(link.parent_type.rank());
  std::vector<int64_t> inverse(rank);
  for (int64_t d = 0; d < rank; ++d) inverse[d] = d;
  const auto dim = [&](const sym::ExprId e) {
    const int64_t d = pool.const_value(e);
    return d < 0 ? d + rank : d;
  };
  if (link.op == v.permute) {
    const auto& dims = std::get<std::vector<sym::ExprId>>(link.args[1]);
    for (int64_t d = 0; d < rank; ++d) inverse[dim(dims[d])] = d;
  } else if (rank > 0) {
    const bool is_t = link.op == v.t;
    const int64_t a = is_t ? 0 : dim(std::get<sym::ExprId>(link.args[1]));
    const int64_t b = is_t ? rank - 1 : dim(std::get<sym::ExprId>(link.args[2]));
    std::swap(inverse[a], inverse[b]);
  }
  return inverse;
}

}  // namespace

// The parent's contents after `value` was written to the view.
graph::ValueId Capture::scatter(const ViewChain& link, graph::ValueId parent, graph::ValueId value) {
  const ViewOps& v = view_ops();
  sym::ExprPool& pool = env().pool();
  if (is_identity(link.op)) return value;
  if (is_reshape(link.op)) {
    graph::TensorType type = link.parent_type;
    type.strides = graph::contiguous_strides(pool, type.sizes);
    const std::vector<sym::ExprId> sizes = type.sizes;
    if (!graph::is_contiguous(env(), graph_->type(value)))
      value = call(graph::op_id("aten::clone"), {value, graph::MemoryFormat::Contiguous})[0];
    return append(graph::op_id("aten::_unsafe_view"), {value, sizes}, {std::move(type)})[0];
  }
  if (link.op == v.permute || link.op == v.transpose || link.op == v.t) {
    std::vector<sym::ExprId> dims;
    for (const int64_t d : inverse_permutation(pool, link)) dims.push_back(pool.constant(d));
    return call(v.permute, {value, dims})[0];
  }
  std::vector<Arg> args = link.args;
  args[0] = parent;
  args.insert(args.begin() + 1, Arg(value));
  if (link.op == v.slice) return append(graph::op_id("aten::slice_scatter"), std::move(args), {link.parent_type})[0];
  if (link.op == v.select) return append(graph::op_id("aten::select_scatter"), std::move(args), {link.parent_type})[0];
  if (link.op == v.as_strided && link.parent == nullptr) {
    const auto why = [] { return current_reason(); };
    if (!geometry::decide_non_overlapping(env(), link.type.sizes, link.type.strides, why))
      abort_capture("a write through aten::as_strided to elements that may share their memory");
    // A view of the base by numbers: they count from where its memory begins, as they do in the base's value.
    return append(graph::op_id("aten::as_strided_scatter"), std::move(args), {link.parent_type})[0];
  }
  if (link.op == v.diagonal)
    return append(graph::op_id("aten::diagonal_scatter"), std::move(args), {link.parent_type})[0];
  if (link.op == v.expand) {
    bool same = link.type.sizes.size() == link.parent_type.sizes.size();
    for (size_t d = 0; same && d < link.type.sizes.size(); ++d)
      same = env().known_equal(link.type.sizes[d], link.parent_type.sizes[d]);
    if (same) return value;
  }
  abort_capture(c10::str("a write through ", std::string(graph::op_name(link.op))));
}

struct Capture::Results {
  bool runs_once;
  std::unordered_set<uint32_t> escaping;                  // storages
  std::unordered_map<uint32_t, uint32_t> base_outputs{};  // by storage
};

OutputSpec Capture::output_of(const at::Tensor& output, Results& results) {
  const at::Tensor tensor = TraceTensor::from(output) != nullptr ? output : lift(output);
  TraceTensor& trace = *TraceTensor::from(tensor);
  value_of(trace);
  const LazyViews lazy(trace);
  if (!lazy.possible) {
    if (!results.runs_once) abort_capture("a result some of whose elements are negated when they are read");
    // A piece that runs once: the elements are changed at once.
    graph_->outputs.push_back(trace.value);
    OutputSpec own;
    own.kind = OutputSpec::Kind::GraphOutput;
    own.position = static_cast<uint32_t>(graph_->outputs.size() - 1);
    own.dtype = trace.type().dtype;
    return own;
  }
  const std::optional<AsView> view = as_view(trace, results.escaping);
  const uint32_t index = view ? view->source : trace.storage_id().index;
  Storage& storage = storages_[index];
  OutputSpec spec;
  spec.kind = storage.home;
  spec.position = storage.position;
  if (storage.home == OutputSpec::Kind::GraphOutput) {
    auto [it, fresh] = results.base_outputs.try_emplace(index, graph_->outputs.size());
    // What torch.tensor() made is a constant of the program, and each call makes its own.
    if (fresh && graph_->value(storage.value).kind == graph::Value::Kind::Constant)
      storage.value =
          append(graph::op_id("aten::clone"), {storage.value, graph::None{}}, {graph_->type(storage.value)})[0];
    if (fresh) graph_->outputs.push_back(storage.value);
    spec.position = it->second;
  }
  // What is written to the caller's tensor lies as that does, whatever layout was computed.
  const graph::TensorType& base =
      graph_->type(storage.home == OutputSpec::Kind::GraphOutput ? storage.value
                   : storage.home == OutputSpec::Kind::Input     ? graph_->inputs[storage.position]
                                                                 : graph_->constants[storage.position]);
  spec.dtype = trace.type().dtype;
  spec.sizes = trace.type().sizes;
  spec.strides = view ? view->strides : trace.type().strides;
  spec.offset = view ? view->offset : trace.offset();
  const auto same = [&](const std::vector<sym::ExprId>& a, const std::vector<sym::ExprId>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](sym::ExprId x, sym::ExprId y) { return env().known_equal(x, y); });
  };
  spec.is_view = view || trace.chain() != nullptr || !same(base.sizes, spec.sizes) || !same(base.strides, spec.strides);
  const auto* of_autograd = torch::autograd::impl::get_view_autograd_meta(output);
  spec.detached =
      of_autograd == nullptr || !of_autograd->has_bw_view() || !of_autograd->get_backward_view().base_.requires_grad();
  spec.leaf =
      std::any_of(own_leaves_.begin(), own_leaves_.end(), [&](const at::Tensor& t) { return t.is_same(output); });
  spec.plain = plain_.contains(output.unsafeGetTensorImpl());
  spec.unrecorded = !spec.detached && gradient_node(output) == nullptr;
  spec.one_of_several = is_one_of_several(output);
  if (const auto known = of_written_.find(output.unsafeGetTensorImpl()); known != of_written_.end())
    spec.detached = known->second.detached, spec.unrecorded = known->second.unrecorded;
  const bool recorded = storage.home == OutputSpec::Kind::GraphOutput || (!spec.detached && !spec.unrecorded);
  if (!view && recorded && trace.chain() != nullptr) spec.within = trace.chain()->within;
  spec.conjugated = lazy.conjugated;
  spec.negated = lazy.negated;
  return spec;
}

std::vector<OutputSpec> Capture::outputs_of_part(const std::vector<at::Tensor>& tensors,
                                                 std::vector<graph::ValueId>& outputs) {
  Results results{false, {}};
  std::vector<OutputSpec> specs;
  graph_->outputs.swap(outputs);
  try {
    for (const at::Tensor& tensor : tensors) specs.push_back(output_of(tensor, results));
  } catch (...) {
    graph_->outputs.swap(outputs);
    throw;
  }
  graph_->outputs.swap(outputs);
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

// An operator whose result nobody uses is done all the same where later calls may give it what it raises for.
void Capture::keep_what_raises(const Backward* backward) {
  std::vector<bool> used(graph_->value_count());
  const auto use = [&](graph::ValueId v) { used[v.index] = true; };
  const auto use_all = [&](const std::vector<Arg>& args) {
    graph::Graph::for_each_value(args, [&](const graph::ValueId& v) { use(v); });
  };
  std::for_each(graph_->outputs.begin(), graph_->outputs.end(), use);
  for (const graph::Mutation& m : graph_->mutations) use(m.value);
  const auto use_part = [&](const GraphPart& part) {
    for (const graph::ValueId v : used_from_outside(*graph_, part)) use(v);
  };
  if (backward != nullptr) use_part(backward->part);
  for (const DataDependentCall& call : data_calls_) {
    use_all(call.args);
    for (const GraphPart& part : call.parts) use_part(part);
  }
  for (size_t i = graph_->order.size(); i-- > 0;) {
    graph::Node& node = graph_->node(graph_->order[i]);
    const bool is_used =
        std::any_of(node.results.begin(), node.results.end(), [&](graph::ValueId v) { return used[v.index]; });
    node.caught = node.caught || (!is_used && may_raise(*graph_, node.op, node.args));
    if (is_used || node.caught) use_all(node.args);
  }
}

Captured Capture::finish(const std::vector<at::Tensor>& outputs, bool runs_once) {
  Results results{runs_once, {}};
  for (const at::Tensor& output : outputs)
    if (const TraceTensor* trace = TraceTensor::from(output)) results.escaping.insert(trace->storage_id().index);
  std::vector<OutputSpec> specs;
  for (const at::Tensor& output : outputs) specs.push_back(output_of(output, results));
  for (Storage& storage : storages_) {
    settle_watched(storage);
    if (storage.home == OutputSpec::Kind::GraphOutput || storage.version == 0) continue;
    graph_->mutations.push_back({storage.position, storage.home == OutputSpec::Kind::Constant, storage.value,
                                 storage.unseen == storage.version});
    if (const uint32_t seen = storage.version - storage.unseen; seen > 1)
      counters.written.push_back({storage.home == OutputSpec::Kind::Constant, storage.position, seen});
  }
  if (!runs_once) keep_what_raises(backward_.get());
  Captured out = std::move(counters);
  out.costs.memo_misses = shapes_.misses();
  out.outputs = std::move(specs);
  out.graph = std::move(graph_);
  out.data_reads = std::move(data_reads_);
  out.float_guards = std::move(float_guards_);
  out.computed = std::move(computed_);
  out.data_calls = std::move(data_calls_);
  out.facts = std::move(facts_);
  out.backward = finished_backward(outputs);
  out.constants = std::move(constants_);
  out.symbols = std::move(symbols_);
  out.input_layouts = std::move(input_layouts_);
  lifted_.clear();
  out.notes.reset();
  return out;
}

}  // namespace cresset::bridge
