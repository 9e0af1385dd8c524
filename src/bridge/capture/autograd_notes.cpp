#include "bridge/capture/autograd_notes.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace cresset::bridge {

std::optional<Origin> origin_of(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (meta == nullptr || !meta->grad_fn_) return std::nullopt;
  return Origin{meta->grad_fn_->sequence_nr(), meta->output_nr_};
}

void AutogradNotes::note(const at::Tensor& tensor, graph::ValueId value) {
  const bool wanted = tensor.requires_grad();
  given_.push_back({value, wanted, wanted ? origin_of(tensor) : std::nullopt});
  if (given_.back().origin) first_.try_emplace(*given_.back().origin, value);
}

void AutogradNotes::end_call(uint32_t begin, uint32_t end) {
  if (begin != end) calls_.push_back({begin, end, c10::GradMode::is_enabled(), std::move(given_)});
  given_.clear();
}

std::optional<graph::ValueId> AutogradNotes::value(const Origin& origin) const {
  const auto found = first_.find(origin);
  return found != first_.end() ? std::optional(found->second) : std::nullopt;
}

const RecordedCall::Given* RecordedCall::find(graph::ValueId value) const {
  const auto found = std::find_if(given.begin(), given.end(), [&](const Given& g) { return g.value == value; });
  return found != given.end() ? &*found : nullptr;
}

const RecordedCall* AutogradRecord::call_of(graph::NodeId node) const {
  const auto behind = std::upper_bound(calls.begin(), calls.end(), node.index,
                                       [](uint32_t index, const RecordedCall& call) { return index < call.begin; });
  if (behind == calls.begin() || node.index >= std::prev(behind)->end) return nullptr;
  return &*std::prev(behind);
}

AutogradRecord AutogradNotes::record(const graph::Graph& graph, uint32_t first_of_backward) const {
  AutogradRecord out;
  for (const Call& call : calls_) {
    const bool is_forward = call.begin < first_of_backward;
    RecordedCall& recorded = out.calls.emplace_back(RecordedCall{call.begin, call.end, call.recorded, !is_forward, {}});
    for (const Given& given : call.given) {
      const graph::ValueId history = given.origin ? first_.at(*given.origin) : given.value;
      // The segment made this leaf, since it is no argument: gradients end there.
      const bool ends = !given.origin && graph.value(given.value).kind == graph::Value::Kind::Result;
      recorded.given.push_back({given.value, given.wanted && !ends ? history : graph::ValueId{}});
      out.reads_copies |= !is_forward && given.wanted && history != given.value;
    }
  }
  return out;
}

}  // namespace cresset::bridge
