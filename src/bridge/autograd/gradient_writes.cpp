// The caller's tensors which a graph segment writes and which require gradients.
#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/memory_view.h"
#include "bridge/autograd/gradients.h"

namespace cresset::bridge {

GradientRecorder::GradientRecorder(Capture& capture) : capture_(capture), first_node_(at::sequence_number::peek()) {}

// Lists the tensors to whose history autograd has added a node. Returns false for any other change of a history.
bool GradientRecorder::find_written(std::vector<at::Tensor>& written) {
  for (Storage& storage : capture_.storages()) {
    storage.is_root = false;
    if (storage.home == OutputSpec::Kind::GraphOutput || !storage.real.defined()) continue;
    if (storage.version != 0) refresh_history(storage.real);  // of a view which was written through another view
    const bool wanted = storage.real.requires_grad();
    const void* node = gradient_node(storage.real);
    if (wanted == storage.required_grad && node == storage.gradient_node) continue;
    // The geometry of a view was changed in place: the new history says the same, and settle_histories() undoes it.
    if (wanted == storage.required_grad && storage.version == 0 && capture_.storages().counted_writes(storage) != 0)
      continue;
    if (storage.version == 0 || !wanted || node == nullptr) return false;
    storage.is_root = true;
    written.push_back(storage.real);
  }
  return true;
}

bool GradientRecorder::is_view_of_written(const at::Tensor& result) const {
  const TraceTensor* trace = TraceTensor::from(result);
  return trace != nullptr && trace == result.unsafeGetTensorImpl() &&
         capture_.storages()[trace->storage_id().index].is_root && is_recorded_view(result) &&
         result._base().requires_grad();
}

// Autograd refuses to regenerate the history of some views.
std::string GradientRecorder::obstacle_to_histories(const std::vector<at::Tensor>& results) const {
  for (const at::Tensor& result : results) {
    if (!is_recorded_view(result)) continue;
    const auto* view = torch::autograd::impl::get_view_autograd_meta(result);
    if (view->grad_fn_ == nullptr && !result._base().requires_grad()) continue;  // autograd makes the same test
    if (view->get_creation_meta() != torch::autograd::CreationMeta::DEFAULT &&
        view->get_attr_version() != static_cast<uint32_t>(result._version()))
      return "a result is a view, made without a record, of what is written then";
  }
  return {};
}

// Restores the histories which written tensors had before the call, because each call adds to them. Views of these
// tensors are reset, too.
void GradientRecorder::settle_histories(const std::vector<at::Tensor>& results) {
  for (const at::Tensor& result : results) {
    const TraceTensor* trace = TraceTensor::from(result);
    if (trace == nullptr || trace != result.unsafeGetTensorImpl() ||
        !capture_.storages()[trace->storage_id().index].is_root)
      continue;
    OfWritten& facts = of_written_[trace];
    facts.detached = !is_view_of_written(result);
    facts.unrecorded = !facts.detached && is_unrecorded_view(result);
    if (!facts.detached && !facts.unrecorded) forget_history(result);
  }
  // So has a tensor of which only the geometry of a view was changed in place, or that the call wrote to no effect:
  // autograd has noted that with symbolic sizes.
  for (const Storage& storage : capture_.storages())
    if (storage.is_root || (storage.version == 0 && capture_.storages().counted_writes(storage) != 0))
      History::restore(storage.history, storage.real);
}

void GradientRecorder::describe(OutputSpec& spec, const at::Tensor& output) const {
  spec.leaf =
      std::any_of(own_leaves_.begin(), own_leaves_.end(), [&](const at::Tensor& t) { return t.is_same(output); });
  spec.plain = plain_.contains(output.unsafeGetTensorImpl());
  const auto known = of_written_.find(output.unsafeGetTensorImpl());
  // A root is new, or a copy which eager mode makes as a view of a caller's tensor (possible_views.cpp).
  if (known != of_written_.end() && (known->second.unrecorded || spec.kind != OutputSpec::Kind::GraphOutput))
    spec.detached = known->second.detached, spec.unrecorded = known->second.unrecorded;
  if (const auto view = viewed_.find(output.unsafeGetTensorImpl()); view != viewed_.end())
    spec.node = view->second.node, spec.number = view->second.number;
  // A view of a root has lost this by now.
  if (!spec.node.empty() && !spec.of_unrecorded) spec.one_of_several = true;
}

namespace {

using torch::autograd::Edge;

// The nearest of the views on the way from a view to its base; nullptr: none.
const c10::TensorImpl* nearest_view(const at::Tensor& view, const std::vector<at::Tensor>& views) {
  constexpr int kMost = 1000;
  const Edge end = torch::autograd::impl::gradient_edge(at::Tensor(view._base()));
  Edge at = torch::autograd::impl::gradient_edge(view);
  for (int i = 0; i < kMost && at.is_valid() && at != end; ++i) {
    const auto found = std::find_if(views.begin(), views.end(), [&](const at::Tensor& other) {
      return i > 0 && torch::autograd::impl::gradient_edge(other) == at;
    });
    if (found != views.end()) return found->unsafeGetTensorImpl();
    const auto& edges = at.function->next_edges();
    const auto next = std::find_if(edges.begin(), edges.end(), [](const Edge& edge) { return edge.is_valid(); });
    at = next != edges.end() ? *next : Edge();
  }
  return nullptr;
}

}  // namespace

void GradientRecorder::note_views(const std::vector<at::Tensor>& results) {
  std::vector<at::Tensor> views;
  for (const at::Tensor& result : results) {
    if (!is_recorded_view(result) || !result.requires_grad()) continue;
    const auto* meta = torch::autograd::impl::get_view_autograd_meta(result);
    if (meta->grad_fn_ && (is_one_of_several(result) || unrecorded_view_behind(result).defined())) {
      Viewed& known = viewed_[result.unsafeGetTensorImpl()];
      known.node = meta->grad_fn_->name(), known.number = meta->output_nr_;
    }
    if (meta->get_creation_meta() != torch::autograd::CreationMeta::DEFAULT &&
        meta->get_attr_version() != static_cast<uint32_t>(result._version()))
      continue;  // autograd refuses the question
    if (result.grad_fn()) views.push_back(result);
  }
  for (const at::Tensor& view : views) {
    Viewed& known = viewed_[view.unsafeGetTensorImpl()];
    known.of = nearest_view(view, views);
    const auto& edges = view.grad_fn()->next_edges();
    known.is_of_base = edges.size() == 1 && edges[0] == torch::autograd::impl::gradient_edge(at::Tensor(view._base()));
  }
}

void GradientRecorder::link_views(std::vector<OutputSpec>& specs, const std::vector<at::Tensor>& outputs) const {
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto known = viewed_.find(outputs[i].unsafeGetTensorImpl());
    if (known == viewed_.end() || !specs[i].is_view) continue;
    if (known->second.is_of_base) specs[i].within.clear();
    const auto of = std::find_if(outputs.begin(), outputs.end(),
                                 [&](const at::Tensor& t) { return t.unsafeGetTensorImpl() == known->second.of; });
    const size_t j = static_cast<size_t>(of - outputs.begin());
    const bool linked =
        of != outputs.end() && j != i && specs[j].is_view && specs[j].kind == specs[i].kind &&
        specs[j].position == specs[i].position &&
        (specs[j].dtype == specs[i].dtype || shows_parts_of(to_torch(specs[j].dtype), to_torch(specs[i].dtype)));
    if (linked) specs[i].viewed = static_cast<uint32_t>(j);
  }
}

}  // namespace cresset::bridge
