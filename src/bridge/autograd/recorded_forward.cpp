#include "bridge/autograd/recorded_forward.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/node_ptr.h"
#include "bridge/aten/op_schema.h"
#include "bridge/aten/strided_by_positions.h"
#include "bridge/capture/arguments.h"
#include "bridge/capture/graph_interpreter.h"
#include "bridge/decompositions/recurrent_gradients.h"
#include "ops/effects.h"
#include "passes/rewriter.h"

namespace cresset::bridge {

using graph::ValueId;
using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;
using Kind = RecordedFunction::Kind;

namespace {

[[noreturn]] void cannot(const std::string& why) {
  TORCH_CHECK(false,
              "cresset: gradients of gradients (create_graph=True) cannot pass through this compiled call: ", why,
              ". Call the function without cresset.compile.");
}

// The same elements, with the history of another tensor.
at::Tensor with_history_of(const at::Tensor& value, const at::Tensor& other) {
  at::Tensor out = value.detach();
  torch::autograd::impl::set_gradient_edge(out, torch::autograd::impl::gradient_edge(other));
  return out;
}

const RecordedCall::Given* given_of(const RecordedCall* call, ValueId id) {
  return call != nullptr ? call->find(id) : nullptr;
}

// Removes the running statistics of a batch norm in training. They are written, the values of the call are gone, and
// the remaining results do not depend on them.
graph::Node without_statistics(graph::Node node) {
  static const graph::OpId training = graph::op_id("aten::_native_batch_norm_legit_functional"),
                           plain = graph::op_id("aten::native_batch_norm");
  if (node.op != training || !std::holds_alternative<bool>(node.args.at(5)) || !std::get<bool>(node.args[5]))
    return node;
  node.op = plain;
  node.args[3] = node.args[4] = graph::None{};
  node.results.resize(3);
  return node;
}

// Autograd has derivatives for many operators only in their in-place form (copy_), which the graph lacks.
bool lacks_derivative(const std::vector<at::Tensor>& results) {
  return std::any_of(results.begin(), results.end(), [](const at::Tensor& t) {
    return t.defined() && t.requires_grad() &&
           dynamic_cast<torch::autograd::NotImplemented*>(t.grad_fn().get()) != nullptr;
  });
}

std::optional<c10::OperatorHandle> in_place_form(graph::OpId op) {
  const std::string_view name = graph::op_name(op);
  const size_t dot = std::min(name.find('.'), name.size());
  return c10::Dispatcher::singleton().findSchema(
      {std::string(name.substr(0, dot)) + "_", std::string(name.substr(std::min(dot + 1, name.size())))});
}

// Whether the program itself called as_strided_scatter: the writes of a view have the view among their arguments.
bool is_of_program(const graph::Node& node, const RecordedCall* call) {
  const auto* source = node.args.size() > 1 ? std::get_if<ValueId>(&node.args[1]) : nullptr;
  return source != nullptr && given_of(call, *source) != nullptr &&
         given_of(call, std::get<ValueId>(node.args[0])) != nullptr;
}

std::vector<at::Tensor> run_recorded(const graph::Graph& graph, const graph::Node& node, const RecordedCall* call,
                                     const std::function<at::Tensor(ValueId)>& value,
                                     const RecordedForward::IntegerOf& integer) {
  if (is_strided_write(node.op) && is_of_program(node, call))
    return {call_by_aten(node, value, integer).at(0).toTensor()};
  if (is_strided_write(node.op))
    if (at::Tensor out = write_by_positions(graph, node, value, integer); out.defined()) return {std::move(out)};
  const std::optional<c10::OperatorHandle> in_place = in_place_form(node.op);
  const bool has_in_place = in_place && in_place->schema().arguments().size() <= node.args.size();
  std::vector<at::Tensor> results;
  try {
    results = run_by_aten(graph, node, value, integer);
  } catch (const c10::Error&) {  // autograd refuses complex results where it has no derivative
    if (!has_in_place || node.results.size() != 1) throw;
  }
  if (!results.empty() && (!lacks_derivative(results) || results.size() != 1 || !has_in_place)) return results;
  torch::jit::Stack stack;
  for (size_t i = 0; i < in_place->schema().arguments().size(); ++i)
    stack.push_back(to_torch(node.args[i], arg_type(in_place->schema().arguments()[i]), value, integer));
  stack[0] = stack[0].toTensor().clone(at::MemoryFormat::Preserve);
  in_place->callBoxed(stack);
  return {stack.at(0).toTensor()};
}

bool any_wants_gradients(const variable_list& tensors) {
  return c10::GradMode::is_enabled() && std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& t) {
           return t.defined() && t.requires_grad();
         });
}

// As torch's once_differentiable: gives the results a history which raises when a pass reaches it.
void forbid_derivatives(variable_list& results) {
  for (at::Tensor& result : results) {
    if (!result.defined()) continue;
    result = result.detach();
    const at::Tensor leaf = result.detach().set_requires_grad(true);
    torch::autograd::edge_list edges{torch::autograd::impl::gradient_edge(leaf)};
    torch::autograd::set_history(
        result,
        make_node<torch::autograd::Error>(
            "trying to differentiate twice a function that was marked with @once_differentiable", std::move(edges)));
  }
}

}  // namespace

// ---- Python functions

struct RecordedForward::Function {
  std::shared_ptr<const graph::Graph> graph;
  const RecordedFunction* what;
  std::shared_ptr<const AutogradRecord> record;
  IntegerOf integer;
  std::unordered_map<ValueId, at::Tensor> around;  // values of the program
  std::unordered_map<ValueId, uint32_t> own;  // results of the node itself, with their position; without a history here

  at::Tensor read(std::unordered_map<ValueId, at::Tensor>& local, graph::NodeId at, ValueId id,
                  const NodePtr& self) const {
    if (const auto found = local.find(id); found != local.end()) return found->second;
    const RecordedCall::Given* const given = given_of(record->call_of(at), id);
    if (given == nullptr || given->history == id) return outside(id, self);
    if (!given->history.valid()) return outside(id, self).detach();
    if (!around.contains(id)) return outside(given->history, self);  // it stands for this value
    return with_history_of(outside(id, self).detach(), outside(given->history, self));
  }

  at::Tensor outside(ValueId id, const NodePtr& self) const {
    const auto found = around.find(id);
    if (found == around.end()) cannot("a function of Python's in autograd's record reads another gradient");
    const auto result = own.find(id);
    if (result == own.end()) return found->second;
    at::Tensor out = found->second.detach();
    torch::autograd::impl::set_gradient_edge(out, Edge(self, result->second));
    return out;
  }

  at::Tensor zeros_of(ValueId id) const {
    std::vector<int64_t> sizes;
    for (const sym::ExprId e : graph->type(id).sizes) sizes.push_back(integer(e));
    return at::zeros(sizes, at::dtype(to_torch(graph->type(id).dtype)));
  }

  variable_list run(const variable_list& given, const NodePtr& self) const {
    std::unordered_map<ValueId, at::Tensor> local;
    if (given.size() != what->given.size()) cannot("a function of Python's in autograd's record cannot be done again");
    for (size_t i = 0; i < given.size(); ++i) {
      const std::optional<ValueId> id = what->given[i];
      if (given[i].defined() && !id && what->kind == Kind::Node)
        cannot("a gradient arrives at a custom function where none did before");
      if (id) local[*id] = given[i].defined() ? given[i] : zeros_of(*id);
    }
    const AboveAutograd recording;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    for (const graph::NodeId id : what->order) {
      const graph::Node& node = graph->node(id);
      if (ops::draws(node)) cannot("a function of Python's in autograd's record draws random numbers");
      const std::vector<at::Tensor> results =
          run_recorded(*graph, node, record->call_of(id), [&](ValueId v) { return read(local, id, v, self); }, integer);
      for (size_t i = 0; i < results.size(); ++i)
        if (results[i].defined()) local[node.results[i]] = results[i];
    }
    variable_list out;
    for (size_t i = 0; i < what->made.size(); ++i) {
      const std::optional<ValueId>& made = what->made[i];
      if (what->kind != Kind::Node && i < given.size() && (!what->given.at(i) || !given[i].defined())) {
        out.push_back(given[i]);  // the hook has not seen this gradient
        continue;
      }
      const bool own = made && local.contains(*made);
      out.push_back(!made ? at::Tensor() : own ? local.at(*made) : outside(*made, self));
      // A function marked once_differentiable computes in no_grad mode.
      if (what->once && own && out.back().defined()) out.back() = out.back().detach();
    }
    if (what->once && any_wants_gradients(given)) forbid_derivatives(out);
    return out;
  }
};

namespace {

using FunctionPtr = std::shared_ptr<RecordedForward::Function>;

class PreHook final : public torch::autograd::FunctionPreHook {
 public:
  PreHook(FunctionPtr function, Node* of) : function_(std::move(function)), of_(of) {}
  variable_list operator()(const variable_list& given) override {
    if (std::none_of(given.begin(), given.end(), [](const at::Tensor& t) { return t.defined(); })) return given;
    return function_->run(given, of_->getptr());
  }

 private:
  FunctionPtr function_;
  Node* of_;  // the node which has the hook
};

// A hook of one of several results, which the run makes by a node of its own.
class PartHook final : public torch::autograd::FunctionPreHook {
 public:
  PartHook(FunctionPtr function, Node* of, size_t place) : function_(std::move(function)), of_(of), place_(place) {}
  variable_list operator()(const variable_list& given) override {
    if (!given.at(0).defined()) return given;
    variable_list all(function_->what->given.size());
    all.at(place_) = given[0];
    return {function_->run(all, of_->getptr()).at(place_)};
  }

 private:
  FunctionPtr function_;
  Node* of_;
  size_t place_;
};

class PostHook final : public torch::autograd::FunctionPostHook {
 public:
  PostHook(FunctionPtr function, Node* of) : function_(std::move(function)), of_(of) {}
  variable_list operator()(const variable_list& made, const variable_list& given) override {
    variable_list all = made;
    all.insert(all.end(), given.begin(), given.end());
    return function_->run(all, of_->getptr());
  }

 private:
  FunctionPtr function_;
  Node* of_;
};

// The node of a custom function.
class FunctionNode final : public Node {
 public:
  using Node::Node;
  std::string name() const override { return "CompiledFunction"; }
  FunctionPtr function;

 protected:
  variable_list apply(variable_list&& given) override { return function->run(given, getptr()); }
};

}  // namespace

// ---- The program

RecordedForward::RecordedForward(std::shared_ptr<const graph::Graph> graph, const Backward& backward,
                                 const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& constants,
                                 const std::vector<bool>& depends, IntegerOf integer)
    : graph_(std::move(graph)),
      backward_(backward),
      depends_(depends),
      integer_(std::move(integer)),
      values_(graph_->value_count()) {
  // The inputs are aliases without hooks, because hooks of the inputs belong to the caller.
  const auto begin = [](const at::Tensor& t) { return t.requires_grad() ? at::alias(t) : t; };
  memory_of_call_ = inputs;
  memory_of_call_.insert(memory_of_call_.end(), constants.begin(), constants.end());
  for (size_t i = 0; i < inputs.size(); ++i) values_[graph_->inputs[i].index] = begin(inputs[i]);
  for (size_t i = 0; i < constants.size(); ++i) values_[graph_->constants[i].index] = begin(constants[i]);
  for (const Backward::Place& leaf : backward.leaves) {
    if (leaf.home == OutputSpec::Kind::GraphOutput) cannot("a leaf that the call made");
    const auto& list = leaf.home == OutputSpec::Kind::Input ? graph_->inputs : graph_->constants;
    leaves_.push_back(values_[list[leaf.position].index]);
  }
  find_recorded();
}

static std::vector<ValueId> wanted(const graph::Graph& graph, const Backward& backward) {
  std::vector<ValueId> out = backward.record->roots;
  const auto add = [&](const RecordedFunction::Values& values) {
    for (const auto& v : values)
      if (v) out.push_back(*v);
  };
  for (const RecordedFunction& function : backward.record->functions) {
    std::unordered_set<ValueId> made;
    const auto outside = [&](ValueId v) {
      if (!made.contains(v)) out.push_back(v);
    };
    for (const auto& v : function.given)
      if (v) made.insert(*v);
    for (const graph::NodeId id : function.order) {
      const graph::Node& node = graph.node(id);
      graph::Graph::for_each_value(node.args, [&](const ValueId& v) { outside(v); });
      if (const RecordedCall* call = backward.record->call_of(id))
        for (const RecordedCall::Given& given : call->given)
          if (given.history.valid()) outside(given.history);
      made.insert(node.results.begin(), node.results.end());
    }
    for (const auto& v : function.made)
      if (v) outside(*v);
    out.push_back(function.of);
    add(function.next);
  }
  // Gradients are the functions' own.
  std::unordered_set<ValueId> of_backward(backward.tangents.begin(), backward.tangents.end());
  for (const Backward::Write& w : backward.writes) of_backward.insert(w.live);
  for (const graph::NodeId id : backward.part.order)
    for (const ValueId v : graph.node(id).results) of_backward.insert(v);
  std::erase_if(out, [&](ValueId v) { return of_backward.contains(v); });
  return out;
}

// The view on which the program called as_strided. The graph's operator starts from the base, and gradients reach the
// base through the view alone.
static std::optional<ValueId> strided_view(const graph::Graph& graph, const RecordedCall* call, graph::NodeId id) {
  static const graph::OpId as_strided = graph::op_id("aten::as_strided");
  const graph::Node& node = graph.node(id);
  if (node.op != as_strided || call == nullptr || call->given.empty()) return std::nullopt;
  if (id.index + 1 != call->end) return std::nullopt;  // of an argument, which was made anew
  const ValueId base = std::get<ValueId>(node.args[0]), view = call->given[0].value;
  if (!view.valid() || view == base || passes::memory_of(graph, view) != base) return std::nullopt;
  return graph.type(view).dtype == graph.type(base).dtype ? std::optional(view) : std::nullopt;
}

// The as_strided of a view whose result the call writes in place. Autograd writes through the base: the gradient of the
// written elements reaches the base directly, also where the view does not show them.
static const graph::Node* written_part(const graph::Graph& graph, const AutogradRecord& record,
                                       const RecordedCall& call, ValueId part) {
  const graph::Value& value = graph.value(part);
  if (value.kind != graph::Value::Kind::Result || !strided_view(graph, record.call_of(value.node), value.node))
    return nullptr;
  const graph::Node& read = graph.node(value.node);
  for (uint32_t i = call.begin; i < call.end; ++i) {
    const graph::Node& write = graph.node(graph::NodeId{i});
    if (is_strided_write(write.op) && !is_of_program(write, &call) && write.args.at(0) == read.args.at(0) &&
        std::equal(read.args.begin() + 1, read.args.begin() + 4, write.args.begin() + 2))
      return &read;
  }
  return nullptr;
}

static void read_arguments(const graph::Graph& graph, const Backward& backward, graph::NodeId id,
                           std::vector<bool>& read) {
  const graph::Node node = without_statistics(graph.node(id));
  graph::Graph::for_each_value(node.args, [&](const ValueId& v) { read[v.index] = true; });
  const RecordedCall* const call = backward.record->call_of(id);
  if (const auto view = strided_view(graph, call, id)) read[view->index] = true;
  if (call != nullptr)
    for (const RecordedCall::Given& given : call->given)
      if (given.history.valid() && read[given.value.index]) read[given.history.index] = true;
}

std::vector<bool> RecordedForward::reads(const graph::Graph& graph, const Backward& backward) {
  std::vector<bool> read(graph.value_count());
  for (const ValueId v : wanted(graph, backward)) read[v.index] = true;
  for (size_t i = graph.order.size(); i-- > 0;) {
    const auto& results = graph.node(graph.order[i]).results;
    if (std::any_of(results.begin(), results.end(), [&](ValueId v) { return read[v.index]; }))
      read_arguments(graph, backward, graph.order[i], read);
  }
  return read;
}

std::vector<graph::NodeId> RecordedForward::needed(std::vector<bool>& read) const {
  std::vector<graph::NodeId> out;
  for (const ValueId v : wanted(*graph_, backward_)) read[v.index] = true;
  for (size_t i = graph_->order.size(); i-- > 0;) {
    const graph::NodeId id = graph_->order[i];
    const graph::Node& whole = graph_->node(id);
    const bool asked = std::any_of(whole.results.begin(), whole.results.end(),
                                   [&](ValueId v) { return read[v.index] && !values_[v.index].defined(); });
    if (!asked) continue;
    if (ops::draws(whole)) cannot("it draws random numbers that were not kept");
    out.push_back(id);
    read_arguments(*graph_, backward_, id, read);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

at::Tensor RecordedForward::argument(const RecordedCall* call, ValueId id) const {
  const at::Tensor& value = values_[id.index];
  if (!value.defined()) cannot("a value that was not kept");
  if (call == nullptr) return value;
  if (const graph::Node* const read = written_part(*graph_, *backward_.record, *call, id)) {
    const at::Tensor& base = values_[std::get<ValueId>(read->args[0]).index];
    if (base.defined() && base.requires_grad()) return run_strided(*read, base).at(0);
  }
  const RecordedCall::Given* const given = given_of(call, id);
  const bool is_recorded = recorded_.contains(call);
  if (given == nullptr || (!call->recorded && !is_recorded)) return value;
  if (!given->history.valid() && is_recorded && graph_->value(id).kind == graph::Value::Kind::Result) {
    const RecordedCall* const made_by = backward_.record->call_of(graph_->value(id).node);
    if (made_by != nullptr && recorded_.contains(made_by)) return value;
  }
  if (!given->history.valid()) return value.requires_grad() ? value.detach() : value;
  const at::Tensor& history = values_[given->history.index];
  if (depends_[id.index] && (!history.defined() || !history.requires_grad())) {
    if (given->history == id && is_made_on_record(id)) return value;  // by an operator without derivative: view(dtype)
    cannot("it reads a tensor whose history is not known");
  }
  return given->history == id || !history.requires_grad() ? value : with_history_of(value, history);
}

bool RecordedForward::is_made_on_record(ValueId id) const {
  if (graph_->value(id).kind != graph::Value::Kind::Result) return false;
  const RecordedCall* const call = backward_.record->call_of(graph_->value(id).node);
  return call == nullptr || call->recorded || recorded_.contains(call);
}

// Finds calls made in no_grad mode which must be recorded. Autograd's C++ functions compute in this mode, but their
// operators have derivatives of their own. Python functions, and the program's own no_grad regions, stay unrecorded.
void RecordedForward::find_recorded() {
  const AutogradRecord& record = *backward_.record;
  std::unordered_set<ValueId> of_python;
  for (const RecordedFunction& function : record.functions)
    for (const auto& v : function.results)
      if (v && function.kind == Kind::Node) of_python.insert(*v);
  std::vector<ValueId> left = record.roots;
  for (const RecordedCall& call : record.calls)
    for (const RecordedCall::Given& given : call.given)
      if (given.history.valid() && !call.is_backward) left.push_back(given.history);
  while (!left.empty()) {
    const ValueId v = left.back();
    left.pop_back();
    if (of_python.contains(v) || graph_->value(v).kind != graph::Value::Kind::Result) continue;
    const RecordedCall* const call = record.call_of(graph_->value(v).node);
    if (call == nullptr || call->recorded || call->is_backward || !recorded_.insert(call).second) continue;
    for (const RecordedCall::Given& given : call->given)
      if (!given.history.valid()) left.push_back(given.value);
  }
}

bool RecordedForward::follows_formulas(const std::vector<bool>& changed,
                                       const std::unordered_set<ValueId>& known) const {
  static const std::unordered_set<graph::OpId> reads_nothing{graph::op_id("aten::cumsum"), graph::op_id("aten::repeat"),
                                                             graph::op_id("aten::as_strided")};
  return std::all_of(recorded_.begin(), recorded_.end(), [&](const RecordedCall* call) {
    bool is_read = false;
    for (uint32_t i = call->begin; i < call->end; ++i)
      is_read = is_read || !reads_nothing.contains(graph_->node(graph::NodeId{i}).op);
    return !is_read || std::all_of(call->given.begin(), call->given.end(), [&](const RecordedCall::Given& given) {
      return !given.value.valid() || !changed[given.value.index] || known.contains(given.value);
    });
  });
}

void RecordedForward::run_steps(const graph::Node& node) {
  std::vector<c10::IValue> args;
  for (const graph::Arg& arg : node.args) {
    const auto* v = std::get_if<ValueId>(&arg);
    args.push_back(v != nullptr ? c10::IValue(argument(nullptr, *v)) : c10::IValue());
  }
  const auto optional = [&](size_t i) {
    return args.at(i).isTensor() ? std::optional(args[i].toTensor()) : std::nullopt;
  };
  const auto kind = static_cast<RecurrentKind>(integer_(std::get<sym::ExprId>(node.args.at(5))));
  const auto [out, kept] = recorded_steps(args.at(0).toTensor(), args.at(1).toTensor(), optional(2),
                                          args.at(3).toTensor(), optional(4), kind, std::get<bool>(node.args.at(6)));
  values_[node.results.at(0).index] = out;
  values_[node.results.at(1).index] = kept;
}

// Whether values computed twice differ by more than the rounding of other kernels. The run's own values have the same
// rounding as in eager mode, which matters where gradients cancel.
static bool differ_beyond_rounding(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return false;
  if ((!a.is_floating_point() && !a.is_complex()) || a.scalar_type() == at::kComplexHalf) return true;
  const size_t width = at::elementSize(at::toRealValueType(a.scalar_type()));
  const double rounding = width == 8 ? 2e-14 : width == 4 ? 1e-5 : 2e-2;
  const double most = (a - b).abs().max().item().toDouble(), scale = b.abs().max().item().toDouble();
  return !(most <= rounding * scale);  // also for NaN
}

// Writes the contents at the call beneath autograd: its node holds this memory. Memory of the caller stays as it is.
void RecordedForward::restore(ValueId id, const at::Tensor& result) const {
  const auto found = contents_.find(id);
  if (found == contents_.end()) return;
  for (const at::Tensor& t : memory_of_call_)
    if (result.is_alias_of(t)) return;
  const at::NoGradGuard no_history;
  at::Tensor target = result.variable_data(), source = found->second;
  for (int64_t d = 0; d < target.dim(); ++d)
    if (target.stride(d) == 0 && target.size(d) > 1) {
      target = target.narrow(d, 0, 1);
      source = source.narrow(d, 0, 1);
    }
  if (differ_beyond_rounding(target, source)) target.copy_(source);
}

std::vector<at::Tensor> RecordedForward::run_strided(const graph::Node& node, const at::Tensor& view) const {
  const at::Tensor& base = values_[std::get<ValueId>(node.args[0]).index];
  if (!base.defined() || !view.is_alias_of(base)) return {};
  const auto integers = [&](size_t i) {
    std::vector<int64_t> out;
    for (const sym::ExprId e : std::get<std::vector<sym::ExprId>>(node.args.at(i))) out.push_back(integer_(e));
    return out;
  };
  const int64_t offset = integer_(std::get<sym::ExprId>(node.args.at(3)));
  return {at::as_strided(view, integers(1), integers(2), base.storage_offset() + offset)};
}

void RecordedForward::run_node(graph::NodeId id) {
  static const graph::OpId steps = graph::op_id("cresset::recurrent_steps");
  const graph::Node node = without_statistics(graph_->node(id));
  const RecordedCall* const call = backward_.record->call_of(id);
  if (node.op == steps) return run_steps(node);
  const at::AutoGradMode mode(call == nullptr || call->recorded || recorded_.contains(call));
  std::vector<at::Tensor> results;
  if (const auto view = strided_view(*graph_, call, id); view && values_[view->index].defined())
    results = run_strided(node, argument(call, *view));
  if (results.empty())
    results = run_recorded(*graph_, node, call, [&](ValueId v) { return argument(call, v); }, integer_);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) continue;
    restore(node.results[i], results[i]);
    values_[node.results[i].index] = std::move(results[i]);
    keep_history(call, node.results[i]);
    give_history(node.results[i]);
  }
}

// Of the metadata against which gradients are checked, only sizes and dtype matter.
void RecordedForward::add_metadata(Node& node, const std::optional<ValueId>& of) const {
  if (!of) {
    node.add_input_metadata(Node::undefined_input{});
    return;
  }
  const graph::TensorType& type = graph_->type(*of);
  std::vector<int64_t> sizes;
  for (const sym::ExprId e : type.sizes) sizes.push_back(integer_(e));
  node.add_input_metadata(
      at::empty_strided(sizes, std::vector<int64_t>(sizes.size()), at::dtype(to_torch(type.dtype))));
}

// Gives the contents of an unseen write the history of the contents before it.
void RecordedForward::keep_history(const RecordedCall* call, ValueId id) {
  const RecordedCall::Given* const kept = given_of(call, id);
  if (kept == nullptr || !kept->history.valid()) return;
  const at::Tensor& history = values_[kept->history.index];
  values_[id.index] = history.defined() && history.requires_grad() ? with_history_of(values_[id.index], history)
                                                                   : values_[id.index].detach();
}

// Connects a result of a custom function to the function's inputs.
void RecordedForward::give_history(ValueId id) {
  for (const RecordedFunction& function : backward_.record->functions) {
    if (function.kind != Kind::Node) continue;
    const auto found = std::find(function.results.begin(), function.results.end(), std::optional(id));
    if (found == function.results.end()) continue;
    NodePtr& node = nodes_[&function];
    if (!node) {
      torch::autograd::edge_list edges;
      for (const auto& next : function.next) {
        const at::Tensor t = next ? values_[next->index] : at::Tensor();
        edges.push_back(t.defined() && t.requires_grad() ? torch::autograd::impl::gradient_edge(t) : Edge());
      }
      node = make_node<FunctionNode>(std::move(edges));
      for (const auto& of : function.results) add_metadata(*node, of);
    }
    const auto result = static_cast<uint32_t>(found - function.results.begin());
    at::Tensor out = values_[id.index].detach();
    torch::autograd::impl::set_gradient_edge(out, Edge(node, result));
    values_[id.index] = std::move(out);
    return;
  }
}

// The values which a function reads. It must not refer to its own node, nor to values computed from the node's results.
std::shared_ptr<RecordedForward::Function> RecordedForward::bound(const RecordedFunction& what,
                                                                  const Node& node) const {
  auto out = std::make_shared<Function>();
  out->graph = graph_;
  out->record = backward_.record;
  out->what = &what;
  out->integer = integer_;
  const auto add = [&](ValueId v) {
    at::Tensor t = values_[v.index];
    if (!t.defined() || out->around.contains(v)) return;
    if (t.requires_grad() && t.grad_fn() != nullptr) {
      if (t.grad_fn().get() == &node) {
        out->own.emplace(v, t.output_nr());
        t = t.detach();
      } else if (t.grad_fn()->sequence_nr() > node.sequence_nr()) {
        cannot("a hook that reads what is computed of the tensor that it is of");
      }
    }
    out->around.emplace(v, std::move(t));
  };
  for (const graph::NodeId id : what.order) {
    graph::Graph::for_each_value(graph_->node(id).args, [&](const ValueId& v) { add(v); });
    if (const RecordedCall* call = backward_.record->call_of(id))
      for (const RecordedCall::Given& given : call->given)
        if (given.history.valid()) add(given.history);
  }
  for (const auto& v : what.made)
    if (v) add(*v);
  return out;
}

// Returns false where the results do not have nodes of their own.
bool RecordedForward::add_hooks_of_parts(const RecordedFunction& function) {
  if (function.kind != Kind::TensorHook || function.given.size() != function.results.size()) return false;
  for (size_t i = 0; i < function.given.size(); ++i) {
    if (!function.given[i]) continue;
    const at::Tensor of = function.results[i] ? values_[function.results[i]->index] : at::Tensor();
    Node* const node = of.defined() && of.requires_grad() ? of.grad_fn().get() : nullptr;
    if (node == nullptr || node->num_inputs() != 1) return false;
    node->add_tensor_pre_hook(std::make_unique<PartHook>(this->bound(function, *node), node, i));
  }
  return true;
}

void RecordedForward::add_hooks() {
  for (const RecordedFunction& function : backward_.record->functions) {
    const at::Tensor& of = values_[function.of.index];
    if (!of.defined() || !of.requires_grad() || of.grad_fn() == nullptr)
      cannot("a hook of a tensor whose history is not known");
    Node* const node = of.grad_fn().get();
    FunctionPtr bound = this->bound(function, *node);
    const size_t results =
        function.kind == Kind::PostHook ? node->num_inputs() + node->num_outputs() : node->num_inputs();
    const size_t made =
        function.kind == Kind::PostHook || function.kind == Kind::Node ? node->num_outputs() : node->num_inputs();
    if (function.given.size() != results && add_hooks_of_parts(function)) continue;
    if (function.given.size() != results || function.made.size() != made)
      cannot("a hook of a node that autograd has in another form");
    switch (function.kind) {
      case Kind::Node:
        if (auto* const own = dynamic_cast<FunctionNode*>(node); own != nullptr)
          own->function = std::move(bound);
        else
          cannot("a custom function whose results are not known");
        break;
      case Kind::TensorHook:
        node->add_tensor_pre_hook(std::make_unique<PreHook>(std::move(bound), node));
        break;
      case Kind::PreHook:
        node->add_pre_hook(std::make_unique<PreHook>(std::move(bound), node));
        break;
      case Kind::PostHook:
        node->add_post_hook(std::make_unique<PostHook>(std::move(bound), node));
        break;
    }
  }
}

// Contents of the caller's tensors that a call wrote unseen: formulas read them in place of those before the write.
void RecordedForward::restore_inputs() {
  for (const std::vector<ValueId>* list : {&graph_->inputs, &graph_->constants})
    for (const ValueId v : *list) {
      const auto found = contents_.find(v);
      at::Tensor& value = values_[v.index];
      if (found == contents_.end() || !value.defined()) continue;
      value = value.requires_grad() ? with_history_of(found->second, value) : found->second.detach();
    }
}

std::vector<bool> RecordedForward::run() {
  std::vector<bool> read(values_.size());
  restore_inputs();
  for (const graph::NodeId id : needed(read)) run_node(id);
  add_hooks();
  return read;
}

// Zeros of the leaf's sizes with a history which leads to the tangent, as eager mode gives for a filled result.
static at::Tensor zeros_of_leaf(const at::Tensor& leaf, const at::Tensor& tangent) {
  const at::Tensor any = (tangent.is_complex() ? at::view_as_real(tangent.resolve_conj()) : tangent).sum();
  return at::where(at::scalar_tensor(false, at::kBool), any.to(leaf.scalar_type()), at::zeros_like(leaf.detach()));
}

// Whether gradients of the root reach the leaf.
static bool leads_to(const Backward& backward, size_t root, size_t leaf) {
  const auto contains = [](const std::vector<uint32_t>& list, size_t i) {
    return std::find(list.begin(), list.end(), static_cast<uint32_t>(i)) != list.end();
  };
  return backward.groups.empty() ||
         std::any_of(backward.groups.begin(), backward.groups.end(), [&](const Backward::Group& group) {
           return contains(group.roots, root) && contains(group.leaves, leaf);
         });
}

std::vector<at::Tensor> RecordedForward::gradients(const std::vector<at::Tensor>& tangents) const {
  torch::autograd::edge_list starts, ends;
  variable_list given;
  std::vector<size_t> filled;  // roots of which no element depends on a leaf
  for (size_t i = 0; i < tangents.size(); ++i) {
    const ValueId root = backward_.record->roots.at(i);
    if (!tangents[i].defined()) continue;
    if (!values_[root.index].requires_grad()) {
      if (!values_[root.index].defined() || depends_[root.index]) cannot("a result whose history is not known");
      filled.push_back(i);
      continue;
    }
    starts.push_back(torch::autograd::impl::gradient_edge(values_[root.index]));
    given.push_back(tangents[i]);
  }
  std::vector<at::Tensor> out(leaves_.size());
  std::vector<size_t> places;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (!leaves_[i].requires_grad()) continue;
    ends.push_back(torch::autograd::impl::gradient_edge(leaves_[i]));
    places.push_back(i);
  }
  variable_list found(places.size());
  if (!starts.empty())
    found = torch::autograd::Engine::get_default_engine().execute(starts, given, /*keep_graph=*/true,
                                                                  c10::GradMode::is_enabled(),
                                                                  /*accumulate_grad=*/false, ends);
  for (size_t i = 0; i < places.size(); ++i) {
    for (const size_t root : filled)
      if (!found[i].defined() && leads_to(backward_, root, places[i]))
        found[i] = zeros_of_leaf(leaves_[places[i]], tangents[root]);
    out[places[i]] = std::move(found[i]);
    if (out[places[i]].defined() && !out[places[i]].requires_grad() && backward_.record->behind_writes[places[i]])
      for (size_t root = 0; root < tangents.size(); ++root)
        if (tangents[root].defined() && tangents[root].requires_grad() && leads_to(backward_, root, places[i]))
          out[places[i]] = out[places[i]] + zeros_of_leaf(leaves_[places[i]], tangents[root]);
  }
  return out;
}

}  // namespace cresset::bridge
