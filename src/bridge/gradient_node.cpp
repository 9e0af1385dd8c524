// The node of autograd's that stands for a compiled call.
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include "bridge/gradients.h"

namespace cresset::bridge {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;
using NodePtr = decltype(torch::autograd::Edge::function);

class CompiledBackward final : public Node {
 public:
  CompiledBackward(torch::autograd::edge_list&& edges, std::vector<TangentLayout> layouts, SavedTensors saved,
                   BackwardRun run)
      : Node(std::move(edges)), layouts_(std::move(layouts)), saved_(std::move(saved)), run_(std::move(run)) {}

  std::string name() const override { return "CompiledBackward"; }
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    run_ = nullptr;
    saved_ = {};
  }

 protected:
  variable_list apply(variable_list&& tangents) override {
    TORCH_CHECK(!c10::GradMode::is_enabled(),
                "cresset: gradients of gradients (create_graph=True) cannot pass through a compiled call. Compute the "
                "inner gradient inside of the compiled function (torch.autograd.grad in it is compiled), or call the "
                "function without cresset.compile.");
    if (Capture* capture = Capture::current(); capture != nullptr && !capture->closed())
      capture->flush("gradients of an earlier compiled call");
    std::vector<at::Tensor> given;
    for (size_t i = 0; i < layouts_.size(); ++i) given.push_back(laid_out(tangents[i], layouts_[i]));
    tangents.clear();
    auto [run, saved] = take();
    return run(std::move(given), std::move(saved));
  }

 private:
  // What the pass works with. The last pass alone holds it, so that it can let go of it piece by piece.
  std::pair<BackwardRun, std::vector<at::Tensor>> take() {
    const bool again = torch::autograd::get_current_graph_task_keep_graph();
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(run_ != nullptr, torch::autograd::ERR_BACKWARD_TWICE);
    saved_.check();
    if (again) return {run_, saved_.tensors};
    return {std::exchange(run_, nullptr), std::exchange(saved_, {}).tensors};
  }

  // A result that nothing came of has no gradient: zeros stand for it.
  static at::Tensor laid_out(const at::Tensor& tangent, const TangentLayout& layout) {
    const auto make = [&] {
      return at::empty_strided(layout.sizes, layout.strides, at::dtype(layout.dtype).device(layout.device));
    };
    if (!tangent.defined()) return make().zero_();
    TORCH_CHECK(tangent.layout() == c10::kStrided &&
                    tangent.key_set().has(layout.device.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA) &&
                    !tangent.key_set().has(c10::DispatchKey::FuncTorchBatched) &&
                    !tangent.unsafeGetTensorImpl()->is_python_dispatch(),
                "cresset: the gradient of a compiled call's result must be a plain strided tensor, got ",
                tangent.toString(), " with keys ", tangent.key_set(), ". Call the function without cresset.compile.");
    bool as_promised = tangent.scalar_type() == layout.dtype && !tangent.is_conj() && !tangent.is_neg();
    for (size_t d = 0; d < layout.sizes.size(); ++d)
      as_promised &= layout.sizes[d] == 1 || tangent.stride(static_cast<int64_t>(d)) == layout.strides[d];
    return as_promised || tangent.numel() == 0 ? tangent : make().copy_(tangent);
  }

  std::mutex mutex_;
  const std::vector<TangentLayout> layouts_;
  SavedTensors saved_;
  BackwardRun run_;  // empty: released
};

template <class Pointer = NodePtr>
Pointer make_node(torch::autograd::edge_list&& edges, std::vector<TangentLayout> layouts, SavedTensors saved,
                  BackwardRun run) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<Node>>)
    return Pointer(new CompiledBackward(std::move(edges), std::move(layouts), std::move(saved), std::move(run)),
                   [](auto* node) { deleteNode(node); });
  else
    return c10::make_intrusive<CompiledBackward>(std::move(edges), std::move(layouts), std::move(saved),
                                                 std::move(run));
}

}  // namespace

namespace {

uint32_t version_of(const at::Tensor& t) {
  return t.is_inference() ? 0 : static_cast<uint32_t>(torch::autograd::impl::version_counter(t).current_version());
}

}  // namespace

void SavedTensors::add(const at::Tensor& t) {
  tensors.push_back(t.detach());  // the same memory and version counter, no history: nothing refers back to the node
  versions_.push_back(version_of(tensors.back()));
}

void SavedTensors::check() const {
  for (size_t i = 0; i < tensors.size(); ++i)
    TORCH_CHECK(version_of(tensors[i]) == versions_[i],
                "one of the variables needed for gradient computation has been modified by an inplace operation: [",
                tensors[i].toString(), " ", tensors[i].sizes(), "] is at version ", version_of(tensors[i]),
                "; expected version ", versions_[i],
                " instead. Hint: the operation that failed to compute its gradient is part of a compiled function; "
                "call it without cresset under torch.autograd.set_detect_anomaly(True) to find it.");
}

void set_gradients(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& leaves,
                   std::vector<TangentLayout> layouts, SavedTensors saved, BackwardRun run) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& leaf : leaves) edges.push_back(torch::autograd::impl::gradient_edge(leaf));
  const NodePtr node = make_node(std::move(edges), std::move(layouts), std::move(saved), std::move(run));
  for (const at::Tensor& root : roots) torch::autograd::set_history(root, node);
}

}  // namespace cresset::bridge
