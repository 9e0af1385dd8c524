#include "bridge/aten/autograd_history.h"

#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace cresset::bridge {
namespace {

using torch::autograd::Edge;
using torch::autograd::variable_list;

Edge recorded_edge(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta != nullptr && meta->grad_fn_ ? Edge(meta->grad_fn_, meta->output_nr_) : Edge();
}

// Restores an edge, together with the retain_grad() hook, which autograd had moved to the new node.
void put_back(const at::Tensor& tensor, const Edge& edge) {
  auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (meta == nullptr || recorded_edge(tensor) == edge) return;
  if (meta->grad_fn_ && edge.is_valid())
    if (auto hook = meta->grad_fn_->pop_retains_grad_hook(meta->output_nr_))
      edge.function->add_retains_grad_hook(std::move(hook), edge.input_nr);
  meta->grad_fn_ = edge.function;
  meta->output_nr_ = edge.input_nr;
}

// The node of a write to a view. Autograd wraps it into a node for the whole base (CopySlices), which replaces its
// first edge: the edge of the old contents, of which nothing remains. Both edges must be valid, or none.
class WrittenView final : public torch::autograd::Node {
 public:
  using Node::Node;
  std::string name() const override { return "CompiledWrite"; }

 protected:
  variable_list apply(variable_list&& gradients) override {
    if (!gradients[0].defined()) return variable_list(2);
    return {at::zeros_like(gradients[0]), std::move(gradients[0])};
  }
};

// Stands for the view's old contents, to which no gradient flows.
class Unreached final : public torch::autograd::Node {
 protected:
  variable_list apply(variable_list&&) override { return {}; }
};

// The node of a write to a base. Autograd requires a base with regenerated views to be a node's first result.
class WrittenBase final : public torch::autograd::Node {
 public:
  using Node::Node;
  std::string name() const override { return "CompiledWrite"; }

 protected:
  variable_list apply(variable_list&& gradients) override { return std::move(gradients); }
};

}  // namespace

bool is_recorded_view(const at::Tensor& tensor) {
  const auto* view = torch::autograd::impl::get_view_autograd_meta(tensor);
  return view != nullptr && view->has_bw_view();
}

static bool is_view_made(const at::Tensor& tensor, torch::autograd::CreationMeta how) {
  return is_recorded_view(tensor) && torch::autograd::impl::get_view_autograd_meta(tensor)->get_creation_meta() == how;
}

bool is_one_of_several(const at::Tensor& tensor) {
  return is_view_made(tensor, torch::autograd::CreationMeta::MULTI_OUTPUT_NODE);
}

// A view in grad mode of such a view is forbidden the same writes, and has a node.
bool is_unrecorded_view(const at::Tensor& tensor) {
  return is_view_made(tensor, torch::autograd::CreationMeta::NO_GRAD_MODE) && !recorded_edge(tensor).is_valid();
}

bool is_outdated_view(const at::Tensor& tensor) {
  if (!is_recorded_view(tensor) || !tensor.requires_grad()) return false;
  const auto* view = torch::autograd::impl::get_view_autograd_meta(tensor);
  return view->get_creation_meta() != torch::autograd::CreationMeta::DEFAULT &&
         view->get_attr_version() != static_cast<uint32_t>(tensor._version());
}

at::Tensor unrecorded_view_behind(const at::Tensor& tensor) {
  if (!is_recorded_view(tensor)) return {};
  const torch::autograd::Node* const end = recorded_edge(at::Tensor(tensor._base())).function.get();
  constexpr int kMost = 1000;
  const torch::autograd::Node* node = recorded_edge(tensor).function.get();
  for (int i = 0; i < kMost && node != nullptr && node != end; ++i) {
    if (dynamic_cast<const torch::autograd::AccumulateGrad*>(node) != nullptr) return {};
    const auto& edges = node->next_edges();
    const auto next = std::find_if(edges.begin(), edges.end(), [](const Edge& edge) { return edge.is_valid(); });
    if (next == edges.end()) return at::Tensor(tensor._base());
    node = next->function.get();
  }
  return {};
}

std::shared_ptr<const History> History::of(const at::Tensor& tensor) {
  const bool is_view = is_recorded_view(tensor);
  const Edge edge = recorded_edge(tensor);
  if (!is_view && !edge.is_valid()) return nullptr;
  auto out = std::make_shared<History>();
  out->edge_ = edge;
  out->is_retained_ = edge.is_valid() && edge.function->retains_grad_hooks().contains(edge.input_nr);
  if (is_view) out->of_base_ = recorded_edge(at::Tensor(tensor._base()));
  return out;
}

void History::restore(const std::shared_ptr<const History>& history, const at::Tensor& tensor) {
  put_back(tensor, history != nullptr ? history->edge_ : Edge());
  if (!is_recorded_view(tensor)) return;
  auto* view = torch::autograd::impl::get_view_autograd_meta(tensor);
  put_back(view->get_backward_view().base_, history != nullptr ? history->of_base_ : Edge());
  // The history of other views is forbidden after a write, which a question for it still has to notice.
  if (view->get_creation_meta() == torch::autograd::CreationMeta::DEFAULT)
    view->set_attr_version(static_cast<uint32_t>(tensor._version()));
}

bool may_rebase(const at::Tensor& tensor) {
  if (tensor.is_leaf() && tensor.requires_grad()) return false;
  if (!is_recorded_view(tensor)) return true;
  const auto* view = torch::autograd::impl::get_view_autograd_meta(tensor);
  const at::Tensor& base = view->get_backward_view().base_;
  return view->get_creation_meta() == torch::autograd::CreationMeta::DEFAULT &&
         !(base.is_leaf() && base.requires_grad());
}

void require_rebase(const at::Tensor& tensor) { torch::autograd::check_inplace(tensor, /*requires_grad=*/true); }

// While autograd regenerates the history, it holds the view's lock, which the same thread must not request again. Its
// mutexes are ordinary: glibc's try_lock fails for a second attempt of the same thread, too.
bool is_asked_for_history(const at::Tensor& tensor) {
  if (!is_recorded_view(tensor)) return false;
  std::mutex& mutex = torch::autograd::impl::get_view_autograd_meta(tensor)->mutex_;
  if (!mutex.try_lock()) return true;
  mutex.unlock();
  return false;
}

void refresh_history(const at::Tensor& view) {
  if (!is_recorded_view(view) || is_asked_for_history(view)) return;
  const AboveAutograd recording;  // a piece may end inside of an operator
  try {
    view.grad_fn();
  } catch (const c10::Error&) {  // autograd refuses to answer: any later request gets the error
  }
}

void forget_history(const at::Tensor& view) {
  auto* meta = torch::autograd::impl::get_view_autograd_meta(view);
  meta->grad_fn_ = nullptr;
  meta->set_attr_version(static_cast<uint32_t>(view._version()) - 1);
}

void rebase(const at::Tensor& written, NodePtr node, uint32_t input_nr) {
  const AboveAutograd recording;
  Edge edge(std::move(node), input_nr);
  if (is_recorded_view(written)) {
    const bool is_reached = torch::autograd::impl::gradient_edge(at::Tensor(written._base())).is_valid();
    Edge old = is_reached ? Edge(make_node<Unreached>(), 0) : Edge();
    const NodePtr write = make_node<WrittenView>(torch::autograd::edge_list{std::move(old), std::move(edge)});
    write->add_input_metadata(written);
    forget_history(written);
    edge = Edge(write, 0);
  } else if (input_nr != 0) {
    const NodePtr write = make_node<WrittenBase>(torch::autograd::edge_list{std::move(edge)});
    write->add_input_metadata(written);
    edge = Edge(write, 0);
  }
  torch::autograd::impl::rebase_history(written, std::move(edge));
}

void take_place_of(const at::Tensor& other, const at::Tensor& leaf) {
  if (!leaf.is_inference())
    leaf.unsafeGetTensorImpl()->set_version_counter(other.unsafeGetTensorImpl()->version_counter());
  const auto arrival = torch::autograd::impl::grad_accumulator(other);
  dynamic_cast<torch::autograd::AccumulateGrad&>(*arrival).variable = leaf;
  torch::autograd::impl::set_grad_accumulator(leaf,
                                              decltype(torch::autograd::AutogradMeta::grad_accumulator_)(arrival));
}

}  // namespace cresset::bridge
