// The caller's tensors which a graph segment writes and which require gradients.
#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "bridge/aten/autograd_history.h"
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
  if (const auto known = of_written_.find(output.unsafeGetTensorImpl()); known != of_written_.end())
    spec.detached = known->second.detached, spec.unrecorded = known->second.unrecorded;
}

}  // namespace cresset::bridge
