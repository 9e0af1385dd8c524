#include "bridge/autograd/autograd_record.h"

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "bridge/autograd/gradients.h"
#include "bridge/autograd/leaf_groups.h"
#include "bridge/capture/arguments.h"
#include "bridge/capture/capture.h"

namespace cresset::bridge {

using torch::autograd::Node;
using torch::autograd::variable_list;

// ---- Python functions

namespace {

RecordedFunction::Values values_of(Capture& capture, const variable_list& tensors) {
  RecordedFunction::Values out;
  for (const at::Tensor& t : tensors) out.push_back(t.defined() ? std::optional(value_of(capture, t)) : std::nullopt);
  return out;
}

void begin(Capture& capture, FunctionNotes::Noted& noted, const variable_list& given) {
  noted.function.given = values_of(capture, given);
  noted.begin = capture.graph().order.size();
}

void end(Capture& capture, FunctionNotes::Noted& noted, const variable_list& made) {
  const std::vector<graph::NodeId>& order = capture.graph().order;
  noted.function.made = values_of(capture, made);
  noted.function.order.assign(order.begin() + static_cast<long>(noted.begin), order.end());
  noted.done = true;
}

bool is_one_value(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return false;
  const TraceTensor *x = TraceTensor::from(a), *y = TraceTensor::from(b);
  return x != nullptr && y != nullptr ? x->value == y->value : a.is_same(b);
}

class PreMark final : public torch::autograd::FunctionPreHook {
 public:
  explicit PreMark(std::function<void(const variable_list&)> act) : act_(std::move(act)) {}
  // Separates gradients which are the same value here, because they may differ in another pass.
  variable_list operator()(const variable_list& gradients) override {
    variable_list apart = gradients;
    for (size_t i = 0; i < apart.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (is_one_value(apart[i], apart[k])) apart[i] = at::alias(apart[i]);
    act_(apart);
    return apart;
  }

 private:
  std::function<void(const variable_list&)> act_;
};

class PostMark final : public torch::autograd::FunctionPostHook {
 public:
  explicit PostMark(std::function<void(const variable_list&, const variable_list&)> act) : act_(std::move(act)) {}
  variable_list operator()(const variable_list& made, const variable_list& given) override {
    act_(made, given);
    return made;
  }

 private:
  std::function<void(const variable_list&, const variable_list&)> act_;
};

variable_list both(const variable_list& a, const variable_list& b) {
  variable_list out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

}  // namespace

FunctionNotes::FunctionNotes(Capture& capture, const std::vector<Node*>& python) : capture_(capture), nodes_(python) {
  for (Node* node : python) {
    if (!node->tensor_pre_hooks().empty()) add(*node, RecordedFunction::Kind::TensorHook);
    if (!node->pre_hooks().empty()) add(*node, RecordedFunction::Kind::PreHook);
    if (!node->post_hooks().empty()) add(*node, RecordedFunction::Kind::PostHook);
    if (is_python_function(*node)) add(*node, RecordedFunction::Kind::Node);
  }
}

void FunctionNotes::add(Node& node, RecordedFunction::Kind kind) {
  using Kind = RecordedFunction::Kind;
  Noted* const noted = noted_.emplace_back(std::make_unique<Noted>()).get();
  noted->function.kind = kind;
  noted->node = &node;
  Capture* const capture = &capture_;
  const auto begins = [=](const variable_list& given) { begin(*capture, *noted, given); };
  const auto ends = [=](const variable_list& made) { end(*capture, *noted, made); };
  if (kind == Kind::TensorHook || kind == Kind::PreHook) {
    auto& hooks = kind == Kind::TensorHook ? node.tensor_pre_hooks() : node.pre_hooks();
    hooks.insert(hooks.begin(), std::make_unique<PreMark>(begins));
    hooks.push_back(std::make_unique<PreMark>(ends));
    return;
  }
  auto& behind = node.post_hooks();
  if (kind == Kind::PostHook) {
    behind.insert(behind.begin(),
                  std::make_unique<PostMark>(
                      [=](const variable_list& made, const variable_list& given) { begins(both(made, given)); }));
    behind.push_back(std::make_unique<PostMark>([=](const variable_list& made, const variable_list&) { ends(made); }));
    return;
  }
  noted->function.once = is_differentiated_once(node);
  node.pre_hooks().push_back(std::make_unique<PreMark>(begins));
  behind.insert(behind.begin(),
                std::make_unique<PostMark>([=](const variable_list& made, const variable_list&) { ends(made); }));
}

FunctionNotes::~FunctionNotes() {
  const auto is_mark = [](const auto& hook) { return dynamic_cast<const PreMark*>(hook.get()) != nullptr; };
  for (Node* node : nodes_) {
    std::erase_if(node->tensor_pre_hooks(), is_mark);
    std::erase_if(node->pre_hooks(), is_mark);
    std::erase_if(node->post_hooks(),
                  [](const auto& hook) { return dynamic_cast<const PostMark*>(hook.get()) != nullptr; });
  }
}

namespace {

// Values recomputed by a checkpoint stand for existing values: the function does not compute them.
std::vector<graph::NodeId> needed(const graph::Graph& graph, const AutogradRecord& record,
                                  const RecordedFunction& function) {
  std::unordered_set<graph::ValueId> wanted;
  for (const auto& v : function.made)
    if (v) wanted.insert(*v);
  std::vector<graph::NodeId> out;
  for (size_t i = function.order.size(); i-- > 0;) {
    const graph::Node& node = graph.node(function.order[i]);
    if (std::none_of(node.results.begin(), node.results.end(), [&](auto v) { return wanted.contains(v); })) continue;
    out.push_back(function.order[i]);
    const RecordedCall* const call = record.call_of(function.order[i]);
    graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) {
      const RecordedCall::Given* const given = call != nullptr ? call->find(v) : nullptr;
      wanted.insert(given != nullptr && given->history.valid() ? given->history : v);
    });
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

void FunctionNotes::add_to(AutogradRecord& record, const AutogradNotes& notes, const EndOf& end) const {
  const auto value_at = [&](const torch::autograd::Edge& edge) {
    if (const auto value = end(edge)) return value;
    return notes.value({edge.function->sequence_nr(), edge.input_nr});
  };
  for (const std::unique_ptr<Noted>& noted : noted_) {
    if (!noted->done) continue;  // no pass reaches the function
    RecordedFunction& function = record.functions.emplace_back(noted->function);
    function.order = needed(capture_.graph(), record, function);
    for (uint32_t i = 0; i < noted->node->num_inputs(); ++i)
      function.results.push_back(value_at({noted->node->getptr(), i}));
    const auto known =
        std::find_if(function.results.begin(), function.results.end(), [](const auto& v) { return v.has_value(); });
    record.complete &= known != function.results.end();
    if (known != function.results.end()) function.of = **known;
    if (function.kind != RecordedFunction::Kind::Node) continue;
    for (const torch::autograd::Edge& edge : noted->node->next_edges()) {
      function.next.push_back(edge.is_valid() ? value_at(edge) : std::nullopt);
      record.complete &= !edge.is_valid() || function.next.back().has_value();
    }
  }
}

}  // namespace cresset::bridge
