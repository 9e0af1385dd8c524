#include "bridge/capture/graph_interpreter.h"

#include <algorithm>

#include "bridge/aten/dtypes.h"
#include "bridge/aten/memory_view.h"
#include "bridge/aten/op_schema.h"
#include "bridge/aten/strided_by_positions.h"
#include "bridge/capture/arguments.h"
#include "bridge/capture/autograd_state.h"
#include "bridge/capture/control_flow.h"
#include "bridge/capture/data_dependent_ops.h"
#include "ops/effects.h"
#include "passes/absent_tangents.h"

namespace cresset::bridge {

using IntegerOf = std::function<int64_t(sym::ExprId)>;

static std::vector<int64_t> integers(const std::vector<sym::ExprId>& es, const IntegerOf& integer) {
  std::vector<int64_t> out;
  for (const sym::ExprId e : es) out.push_back(integer(e));
  return out;
}

// Gives the result eager mode's strides, which the graph states.
static at::Tensor fitted(at::Tensor result, const graph::TensorType& type, const IntegerOf& integer) {
  if (result.scalar_type() != to_torch(type.dtype)) result = result.to(to_torch(type.dtype));
  const std::vector<int64_t> sizes = integers(type.sizes, integer), strides = integers(type.strides, integer);
  // The shape rule was wrong; eager mode's sizes are right.
  if (result.sizes() != c10::IntArrayRef(sizes)) return result;
  bool same = true, overlaps = false;  // overlaps: an expanded view whose write did not happen
  for (size_t d = 0; d < sizes.size(); ++d) {
    same = same && (sizes[d] <= 1 || result.stride(static_cast<int64_t>(d)) == strides[d]);
    overlaps = overlaps || (sizes[d] > 1 && strides[d] == 0);
  }
  if (same || overlaps || result.numel() == 0) return result;
  at::Tensor copy = result.new_empty_strided(sizes, strides);  // for a wrapper tensor, another wrapper
  copy.copy_(result);
  return copy;
}

// ATen's CPU kernel divides by the given sizes, and eager mode never calls it with empty tensors. A data-dependent size
// was treated as a general size.
static bool attends_to_nothing(const graph::Node& node, const torch::jit::Stack& stack) {
  static const graph::OpId attention = graph::op_id("aten::_scaled_dot_product_flash_attention_for_cpu");
  return node.op == attention &&
         std::any_of(stack.begin(), stack.begin() + 3, [](const c10::IValue& v) { return v.toTensor().numel() == 0; });
}

static torch::jit::Stack arguments_of(const c10::OperatorHandle& op, const graph::Node& node,
                                      const std::function<at::Tensor(graph::ValueId)>& value,
                                      const IntegerOf& integer) {
  const auto& arguments = op.schema().arguments();
  torch::jit::Stack stack;
  for (size_t i = 0; i < node.args.size(); ++i)
    stack.push_back(to_torch(node.args[i], arg_type(arguments[i]), value, integer));
  if (const auto offset = storage_offset_argument(op.schema())) count_from_storage(stack, *offset);
  return stack;
}

static c10::OperatorHandle operator_of(const graph::Node& node) {
  const std::optional<c10::OperatorHandle> handle = find_operator(node.op);
  CRESSET_CHECK(handle.has_value(), "a captured operator is unknown to torch: " + std::string(graph::op_name(node.op)));
  return *handle;
}

torch::jit::Stack call_by_aten(const graph::Node& node, const std::function<at::Tensor(graph::ValueId)>& value,
                               const IntegerOf& integer) {
  const c10::OperatorHandle handle = operator_of(node);
  torch::jit::Stack stack = arguments_of(handle, node, value, integer);
  handle.callBoxed(stack);
  return stack;
}

// Whether the tensor is a batch, or belongs to a level of torch.func.
static bool is_wrapper(const at::Tensor& tensor) {
  using c10::DispatchKey;
  constexpr c10::DispatchKeySet kWrappers(
      {DispatchKey::Batched, DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper});
  return tensor.key_set().has_any(kWrappers);
}

// A write to a part of a tensor as eager mode does it, through a view: autograd differentiates that for every dtype and
// every layout. Undefined: the operator writes no part, or no gradient is wanted.
static at::Tensor written_part(graph::OpId op, const torch::jit::Stack& given) {
  static const std::pair<graph::OpId, graph::OpId> kViews[] = {
      {graph::op_id("aten::slice_scatter"), graph::op_id("aten::slice.Tensor")},
      {graph::op_id("aten::select_scatter"), graph::op_id("aten::select.int")},
      {graph::op_id("aten::diagonal_scatter"), graph::op_id("aten::diagonal")},
      {graph::op_id("aten::as_strided_scatter"), graph::op_id("aten::as_strided")}};
  const auto found =
      std::find_if(std::begin(kViews), std::end(kViews), [&](const auto& pair) { return pair.first == op; });
  if (found == std::end(kViews)) return {};
  const at::Tensor self = given.at(0).toTensor(), written = given.at(1).toTensor();
  if ((!self.requires_grad() && !written.requires_grad()) || is_wrapper(self) || is_wrapper(written)) return {};
  const at::Tensor whole = self.clone(at::MemoryFormat::Preserve);
  torch::jit::Stack stack{whole};
  stack.insert(stack.end(), given.begin() + 2, given.end());
  const c10::OperatorHandle view = *find_operator(found->second);
  // The clone begins where its storage does.
  if (const auto offset = storage_offset_argument(view.schema()); offset && stack.at(*offset).isInt())
    stack[*offset] = stack[*offset].toInt() - self.storage_offset();
  view.callBoxed(stack);
  stack.at(0).toTensor().copy_(written);
  return whole;
}

std::vector<at::Tensor> run_by_aten(const graph::Graph& graph, const graph::Node& node,
                                    const std::function<at::Tensor(graph::ValueId)>& value, const IntegerOf& integer) {
  const c10::OperatorHandle handle = operator_of(node);
  torch::jit::Stack stack = arguments_of(handle, node, value, integer);
  std::vector<at::Tensor> results(node.results.size());
  if (const at::Tensor whole = written_part(node.op, stack); whole.defined())
    return {fitted(whole, graph.type(node.results[0]), integer)};
  if (attends_to_nothing(node, stack)) {
    for (size_t i = 0; i < results.size(); ++i) {
      const graph::TensorType& type = graph.type(node.results[i]);
      results[i] = at::zeros(integers(type.sizes, integer), at::dtype(to_torch(type.dtype)));
    }
    return results;
  }
  handle.callBoxed(stack);
  size_t next = 0;
  // If the node has all results, an output excluded by the output mask keeps its position.
  const bool by_place = stack.size() == results.size();
  const auto take = [&](const at::Tensor& t) {
    if (!t.defined() && by_place) ++next;
    if (next >= results.size() || !t.defined()) return;
    results[next] = fitted(t, graph.type(node.results[next]), integer);
    ++next;
  };
  for (const c10::IValue& v : stack) {
    if (v.isTensor()) take(v.toTensor());
    if (v.isTensorList())
      for (const at::Tensor& t : v.toTensorVector()) take(t);
  }
  return results;
}

Interpreter::Interpreter(const Captured& captured, const std::vector<at::Tensor>& inputs,
                         std::function<std::optional<int64_t>(sym::ExprId)> number)
    : captured_(captured),
      number_(std::move(number)),
      graph_(*captured.graph),
      inputs_(inputs),
      constants_(captured.constants),
      values_(captured.graph->value_count()) {
  for (size_t i = 0; i < inputs.size(); ++i) values_[graph_.inputs[i].index] = inputs[i];
  for (size_t i = 0; i < constants_.size(); ++i) values_[graph_.constants[i].index] = constants_[i];
}

at::Tensor Interpreter::value(graph::ValueId id) const {
  if (!values_[id.index].defined()) throw Missing{};
  return values_[id.index];
}

int64_t Interpreter::integer(sym::ExprId e) const {
  const std::optional<int64_t> hint = number_ ? number_(e) : graph_.env().hint(e);
  if (hint) return *hint;
  throw Missing{};
}

std::vector<int64_t> Interpreter::integers(const std::vector<sym::ExprId>& es) const {
  return bridge::integers(es, [&](sym::ExprId e) { return integer(e); });
}

at::Tensor write_by_positions(const graph::Graph& graph, const graph::Node& node,
                              const std::function<at::Tensor(graph::ValueId)>& value, const IntegerOf& integer) {
  const auto numbers = [&](size_t i) { return integers(std::get<std::vector<sym::ExprId>>(node.args.at(i)), integer); };
  const auto self = std::get<graph::ValueId>(node.args.at(0)), source = std::get<graph::ValueId>(node.args.at(1));
  const auto* offset = std::get_if<sym::ExprId>(&node.args.at(4));
  const at::Tensor out =
      strided_write(value(self), value(source), numbers(2), numbers(3), offset != nullptr ? integer(*offset) : 0,
                    integers(graph.type(self).strides, integer));
  return out.defined() ? fitted(out, graph.type(node.results[0]), integer) : out;
}

// Operators of the graph in place of writes have no derivative, and no rule for several passes at once. The result
// comes from operators with both. Empty: the operator is no write.
static std::vector<at::Tensor> by_other_operator(const graph::Graph& graph, const graph::Node& node,
                                                 const std::function<at::Tensor(graph::ValueId)>& value,
                                                 const IntegerOf& integer) {
  static const graph::OpId copy = graph::op_id("aten::copy"), put = graph::op_id("aten::_index_put_impl");
  if (node.op != copy && node.op != put && !is_strided_write(node.op)) return {};
  bool wrapped = c10::GradMode::is_enabled();
  graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) { wrapped = wrapped || is_wrapper(value(v)); });
  if (!wrapped) return {};
  if (is_strided_write(node.op)) {
    at::Tensor out = write_by_positions(graph, node, value, integer);
    if (out.defined()) return {std::move(out)};
    return {};
  }
  torch::jit::Stack stack = arguments_of(operator_of(node), node, value, integer);
  at::Tensor out;
  if (node.op == copy) {
    const at::Tensor self = stack[0].toTensor();
    out = stack[1].toTensor().to(self.scalar_type()).expand(self.sizes()).clone();
  } else {
    stack.pop_back();  // whether indices may be out of range
    find_operator(graph::op_id("aten::index_put"))->callBoxed(stack);
    out = stack[0].toTensor();
  }
  return {fitted(out, graph.type(node.results[0]), integer)};
}

void Interpreter::run_node(const graph::Node& node) {
  const auto value_of = [&](graph::ValueId v) { return value(v); };
  const auto integer_of = [&](sym::ExprId e) { return integer(e); };
  std::vector<at::Tensor> results = by_other_operator(graph_, node, value_of, integer_of);
  if (results.empty()) results = run_by_aten(graph_, node, value_of, integer_of);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].defined()) values_[node.results[i].index] = std::move(results[i]);
}

void Interpreter::read_elements(const DataDependentCall& call) {
  const at::Tensor tensor = value(std::get<graph::ValueId>(call.args[0]));
  for (const SymbolBinding& b : captured_.symbols)
    if (b.source.kind == runtime::SymbolSource::Kind::Element && b.source.position == call.made[0])
      graph_.env().learn(b.var, element(tensor, b.source.dim));
}

void Interpreter::run_call(const DataDependentCall& call) {
  if (is_control_flow(call)) return run_control_flow(call);
  if (reads_elements(call)) return read_elements(call);
  std::vector<at::Tensor> made = call_data_dependent(
      *find_operator(call.op), call.args, [&](graph::ValueId v) { return value(v); },
      [&](sym::ExprId e) { return integer(e); });
  for (size_t i = 0; i < call.made.size(); ++i) {
    const at::Tensor& tensor = values_[graph_.inputs[call.made[i]].index] = made.at(i);
    for (const SymbolBinding& b : captured_.symbols)
      if (b.source.kind == runtime::SymbolSource::Kind::InputSize && b.source.position == call.made[i])
        graph_.env().learn(b.var, tensor.size(b.source.dim));
  }
}

void Interpreter::run_nodes(const Subgraph& part) {
  auto call = part.calls.begin();
  for (size_t i = 0; i <= part.order.size(); ++i) {
    for (; call != part.calls.end() && call->position == i; ++call) run_call(*call);
    if (i < part.order.size()) run_with_casts(part.order[i]);
  }
}

// Nodes recorded inside an autocast region were already cast there. Results keep the dtypes of the graph, since
// autograd casts the gradients of each formula.
void Interpreter::run_with_casts(graph::NodeId id) {
  if (!excluded_casts_ || captured_.backward == nullptr || captured_.backward->in_own_casts.contains(id))
    return run_node(graph_.node(id));
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = (keys.excluded_ - c10::autocast_dispatch_keyset) | *excluded_casts_;
  const c10::impl::ForceDispatchKeyGuard guard(keys);
  run_node(graph_.node(id));
}

std::vector<at::Tensor> Interpreter::run_subgraph(const Subgraph& part) {
  run_nodes(part);
  std::vector<at::Tensor> out;
  for (const graph::ValueId v : part.outputs) out.push_back(value(v));
  return out;
}

void Interpreter::run_control_flow(const DataDependentCall& call) {
  const auto operand = [&](size_t i) { return value(std::get<graph::ValueId>(call.args[i])); };
  std::vector<at::Tensor> results;
  if (is_cond(call)) {
    results = run_subgraph(call.parts[at::is_nonzero(operand(0)) ? 0 : 1]);
  } else {
    for (size_t i = 0; i < call.carried.size(); ++i) results.push_back(operand(i));
    for (;;) {
      for (size_t i = 0; i < results.size(); ++i) values_[graph_.inputs[call.carried[i]].index] = results[i];
      if (!at::is_nonzero(run_subgraph(call.parts[0])[0])) break;
      results = run_subgraph(call.parts[1]);
    }
  }
  for (size_t i = 0; i < call.made.size(); ++i) values_[graph_.inputs[call.made[i]].index] = results[i];
}

void Interpreter::attempt(const std::function<void()>& step) {
  try {
    step();
  } catch (const Missing&) {
  } catch (...) {
    if (!error_) error_ = std::current_exception();
  }
}

std::vector<bool> Interpreter::compute(const std::vector<graph::ValueId>& wanted) {
  std::vector<bool> read(values_.size());
  for (const graph::ValueId v : wanted) read[v.index] = true;
  std::vector<graph::NodeId> needed;
  for (size_t i = graph_.order.size(); i-- > 0;) {
    const graph::Node& node = graph_.node(graph_.order[i]);
    const bool asked = std::any_of(node.results.begin(), node.results.end(),
                                   [&](graph::ValueId v) { return read[v.index] && !values_[v.index].defined(); });
    if (!asked) continue;
    TORCH_CHECK(!ops::draws(node), "it draws random numbers that were not kept, in ", graph::op_name(node.op));
    needed.push_back(graph_.order[i]);
    graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) { read[v.index] = true; });
  }
  for (size_t i = needed.size(); i-- > 0;) run_node(graph_.node(needed[i]));
  return read;
}

void Interpreter::run() {
  auto call = captured_.data_calls.begin();
  for (size_t i = 0; i <= graph_.order.size(); ++i) {
    for (; call != captured_.data_calls.end() && call->position == i; ++call) attempt([&] { run_call(*call); });
    if (i < graph_.order.size()) attempt([&] { run_node(graph_.node(graph_.order[i])); });
  }
  for (const StatedFact& fact : captured_.facts)
    attempt([&] { TORCH_CHECK(graph_.env().hint(fact.condition).value_or(1) != 0, fact.message); });
  write_inputs();
}

// Whether a fresh result would expose memory of the caller or of another graph value.
bool Interpreter::shares_memory(const at::Tensor& tensor, graph::ValueId except) const {
  for (const at::Tensor& t : inputs_)
    if (tensor.is_alias_of(t)) return true;
  for (const at::Tensor& t : constants_)
    if (tensor.is_alias_of(t)) return true;
  for (const graph::ValueId id : graph_.outputs)
    if (id != except && values_[id.index].defined() && tensor.is_alias_of(values_[id.index])) return true;
  return false;
}

void Interpreter::write_inputs() {
  for (const graph::ValueId id : graph_.outputs) {
    at::Tensor& out = values_[id.index];
    if (out.defined() && out.numel() > 0 && shares_memory(out, id)) out = out.clone(at::MemoryFormat::Preserve);
  }
  std::vector<std::pair<at::Tensor, at::Tensor>> writes;
  for (const graph::Mutation& m : graph_.mutations) {
    const at::Tensor& target = m.is_constant ? constants_[m.input] : inputs_[m.input];
    at::Tensor value = values_[m.value.index];
    if (!value.defined() || value.is_same(target)) continue;
    // A value in memory which is about to be written is copied first.
    if (graph_.mutations.size() > 1 || value.is_alias_of(target)) value = value.clone();
    writes.emplace_back(target, value);
  }
  for (const auto& [target, value] : writes) at::Tensor(target).copy_(value);
}

at::Tensor Interpreter::view(const OutputSpec& spec, const at::Tensor& base) const {
  const std::vector<int64_t> sizes = integers(spec.sizes), strides = integers(spec.strides);
  const int64_t offset = integer(spec.offset);
  if (spec.within.empty()) return spec.marked(view_of_memory(base, to_torch(spec.dtype), sizes, strides, offset));
  at::Tensor out = base;
  const auto from = static_cast<int64_t>(base.element_size()), to = byte_size(spec.dtype);
  for (const Extent& extent : spec.extents()) {
    const std::vector<int64_t> part = integers(extent.sizes), apart = integers(extent.strides);
    const int64_t begin = integer(extent.offset);
    out = out.is_same(base) ? view_of_memory(base, to_torch(spec.dtype), part, apart, begin)
                            : at::as_strided(out, part, apart, base.storage_offset() * from / to + begin);
  }
  return spec.marked(out);
}

at::Tensor Interpreter::output(const OutputSpec& spec) {
  try {
    at::Tensor base = spec.kind == OutputSpec::Kind::Input      ? inputs_[spec.position]
                      : spec.kind == OutputSpec::Kind::Constant ? constants_[spec.position]
                                                                : value(graph_.outputs[spec.position]);
    if (spec.plain && base.requires_grad()) base = base.detach();
    if (!spec.is_view) return base;
    if (spec.kind != OutputSpec::Kind::GraphOutput && spec.detached && base.requires_grad()) base = base.detach();
    return view(spec, base);
  } catch (const Missing&) {
    return {};
  } catch (const c10::Error&) {  // a view of a missing value, after an operator which eager mode rejects
    if (!error_) error_ = std::current_exception();
    return {};
  }
}

std::vector<at::Tensor> Interpreter::gradients(const Backward& backward, const std::vector<at::Tensor>& tangents) {
  for (size_t i = 0; i < tangents.size(); ++i) values_[backward.tangents[i].index] = tangents[i];
  const std::vector<bool> given = which_are_given(tangents, tangents.size());
  if (given.empty()) return gradients(backward, backward.part, {});
  Subgraph part = backward.part;
  graph::Graph whole = graph_;
  const std::vector<bool> absent = passes::without_tangents(graph_, part.order, part.outputs, backward.tangents, given);
  values_.resize(graph_.value_count());
  std::vector<at::Tensor> out = gradients(backward, part, absent);
  graph_ = std::move(whole);
  return out;
}

std::vector<at::Tensor> Interpreter::arriving(const Backward& backward, const std::vector<at::Tensor>& tangents) {
  gradients(backward, tangents);
  std::vector<at::Tensor> out;
  for (const Backward::Intermediate& intermediates : backward.intermediates)
    out.push_back(known(intermediates.gradient));
  return out;
}

std::vector<at::Tensor> Interpreter::gradients(const Backward& backward, const Subgraph& part,
                                               const std::vector<bool>& absent) {
  graph_.outputs = part.outputs;
  const auto written = [&](const Backward::Write& w) { return tensor_at(w.place, inputs_, constants_, {}).detach(); };
  for (const Backward::Write& w : backward.writes) values_[w.live.index] = written(w).clone();
  run_nodes(part);  // some outputs are absent
  for (size_t i = 0; i < backward.writes.size(); ++i)
    write_live(written(backward.writes[i]),
               values_[part.outputs[part.outputs.size() - backward.writes.size() + i].index],
               backward.writes[i].unseen);
  std::vector<at::Tensor> out;
  for (OutputSpec spec : backward.gradients) {
    const bool is_tangent = spec.kind == OutputSpec::Kind::Input;
    if (is_tangent ? !values_[graph_.inputs[spec.position].index].defined()
                   : !absent.empty() && absent[spec.position]) {
      out.emplace_back();
      continue;
    }
    if (spec.kind == OutputSpec::Kind::Input) {  // a graph input, possibly a tangent
      graph_.outputs.push_back(graph_.inputs[spec.position]);
      spec.kind = OutputSpec::Kind::GraphOutput;
      spec.position = static_cast<uint32_t>(graph_.outputs.size() - 1);
    }
    out.push_back(output(spec));
  }
  return out;
}

}  // namespace cresset::bridge
