#include "bridge/autograd/escaped_gradients.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_set>

#include "bridge/aten/autograd_history.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/sym_node.h"

namespace cresset::bridge {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

// Of nodes that are running on this thread, innermost last. One that raised leaves its entry behind: the engine puts
// the state back.
struct Running {
  c10::impl::LocalDispatchKeySet keys;
  uint64_t first_node;  // of the nodes that it makes, where gradients of gradients are recorded
};
thread_local std::vector<Running> before;

struct Enter final : torch::autograd::FunctionPreHook {
  variable_list operator()(const variable_list& gradients) override {
    c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
    before.push_back({keys, at::sequence_number::peek()});
    if (Capture::current() == nullptr || Capture::current()->closed()) {
      keys.included_ = keys.included_.add(kTraceKey);
      keys.excluded_ = keys.excluded_.add(c10::DispatchKey::BackendSelect);
      c10::impl::_force_tls_local_dispatch_key_set(keys);
    }
    return gradients;
  }
};

std::vector<at::Tensor> given(const variable_list& tensors) {
  std::vector<at::Tensor> out;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(out),
               [](const at::Tensor& t) { return t.defined(); });
  return out;
}

struct Leave final : torch::autograd::FunctionPostHook {
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    if (before.empty()) return outputs;
    const Running node = before.back();
    before.pop_back();
    c10::impl::_force_tls_local_dispatch_key_set(node.keys);
    // The formula's own nodes hold the same symbolic sizes.
    if (c10::GradMode::is_enabled()) settle_gradients(given(outputs), node.first_node);
    return outputs;
  }
};

// Symbols of other owners, such as the lengths of nested tensors, stay.
bool is_of_capture(const c10::SymInt& n) {
  return n.is_heap_allocated() && dynamic_cast<const SymNode*>(n.toSymNodeImplUnowned()) != nullptr;
}

// Replaces symbolic sizes in the shapes against which the engine checks gradients.
void make_shapes_plain(Node& node) {
  for (uint32_t i = 0; i < node.num_inputs(); ++i) {
    const torch::autograd::InputMetadata& metadata = node.input_metadata(i);
    if (metadata.was_default_constructed() || metadata.is_nested_tensor()) continue;
    auto& sizes = const_cast<torch::autograd::InputMetadata&>(metadata).mutable_shape_as_dim_vector();
    for (c10::SymInt& size : sizes)
      if (is_of_capture(size)) size = c10::SymInt(size.guard_int(__FILE__, __LINE__));
  }
}

// Replaces symbolic numbers in autograd's recipe for a view, which it regenerates after a write to the base.
void make_view_plain(const at::Tensor& tensor) {
  if (!is_recorded_view(tensor)) return;
  auto* meta = torch::autograd::impl::get_view_autograd_meta(tensor);
  auto& view = const_cast<torch::autograd::ViewInfo&>(meta->get_backward_view());
  if (!view.has_view_fn()) return;
  std::vector<c10::SymInt> numbers = view.view_fn().get_symints();
  if (std::none_of(numbers.begin(), numbers.end(), is_of_capture)) return;
  for (c10::SymInt& n : numbers)
    if (is_of_capture(n)) n = c10::SymInt(n.guard_int(__FILE__, __LINE__));
  // Keeps the old function alive, since it may be a caller of this code.
  static thread_local std::unique_ptr<torch::autograd::ViewFunc> at_work;
  auto plain = view.view_fn().clone_and_set(std::move(numbers));
  at_work = std::exchange(view.view_fn_, std::move(plain));
}

}  // namespace

void settle_gradients(const std::vector<at::Tensor>& tensors, uint64_t since) {
  std::unordered_set<const Node*> seen;
  std::vector<Node*> left;
  const auto add = [&](Node* node) {
    if (node == nullptr || node->sequence_nr() < since || is_compiled(*node)) return;
    if (seen.insert(node).second) left.push_back(node);
  };
  for (const at::Tensor& tensor : tensors) {
    make_view_plain(tensor);
    refresh_history(tensor);
    if (const auto* meta = torch::autograd::impl::get_autograd_meta(tensor); meta != nullptr) add(meta->grad_fn_.get());
  }
  while (!left.empty()) {
    Node* node = left.back();
    left.pop_back();
    make_shapes_plain(*node);
    if (dynamic_cast<torch::autograd::AccumulateGrad*>(node) != nullptr) continue;
    node->add_pre_hook(std::make_unique<Enter>());
    node->add_post_hook(std::make_unique<Leave>());
    for (const torch::autograd::Edge& edge : node->next_edges()) add(edge.function.get());
  }
}

}  // namespace cresset::bridge
