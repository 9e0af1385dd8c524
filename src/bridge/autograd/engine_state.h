// The state of the autograd engine and of its nodes while the autograd graph runs for a capture.
#pragma once

#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace cresset::bridge {

// RAII: the engine runs all nodes in this thread, where the capture is. Nodes of GPUs have threads of their own
// otherwise.
class InThisThread {
 public:
  InThisThread() { state().set_multithreading_enabled(false); }
  ~InThisThread() { state().set_multithreading_enabled(before_); }
  InThisThread(const InThisThread&) = delete;
  InThisThread& operator=(const InThisThread&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }
  const bool before_ = state().get_multithreading_enabled();
};

// While the autograd graph runs, gradients of these nodes' results are not retained.
class Unkept {
 public:
  explicit Unkept(const std::unordered_set<const torch::autograd::Node*>& nodes) {
    for (const torch::autograd::Node* node : nodes)
      hooks_.emplace_back(const_cast<torch::autograd::Node*>(node), Kept{});
    swap();
  }
  ~Unkept() { swap(); }
  Unkept(const Unkept&) = delete;

 private:
  using Kept = std::unordered_map<size_t, std::unique_ptr<torch::autograd::FunctionPreHook>>;
  void swap() {
    for (auto& [node, kept] : hooks_) kept.swap(node->retains_grad_hooks());
  }
  std::vector<std::pair<torch::autograd::Node*, Kept>> hooks_;
};

}  // namespace cresset::bridge
