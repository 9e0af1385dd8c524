#include "bridge/capture/autograd_notes.h"

#include <ATen/EmptyTensor.h>
#include <ATen/SequenceNumber.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "bridge/aten/node_ptr.h"
#include "bridge/capture/unseen_writes.h"
#include "passes/rewriter.h"

namespace cresset::bridge {

std::optional<Origin> origin_of(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (meta == nullptr || !meta->grad_fn_) return std::nullopt;
  return Origin{meta->grad_fn_->sequence_nr(), meta->output_nr_};
}

namespace {

// The first number of an origin that is no result of a node. Kernels of ATen compute values below autograd, where they
// get no history: copies of lazily conjugated tensors, parts of a composite operator. The second number is then the
// number of autograd nodes so far: it tells that such a value and its reader belong to one operator.
constexpr uint64_t kBelowAutograd = std::numeric_limits<uint64_t>::max();
// Contents of unseen writes have the origins below this one.
constexpr uint64_t kOfContents = kBelowAutograd - 1;
// The memory of a conjugated or negated view differs from the value that the view reads.
constexpr uint64_t kOfMemory = uint64_t{1} << 63;

Origin below_autograd_now() { return {kBelowAutograd, static_cast<uint32_t>(at::sequence_number::peek())}; }

Origin of_contents(graph::ValueId contents) { return {kOfContents - contents.index, 0}; }

// Gives the contents of an unseen write an origin.
class ContentsOrigin final : public torch::autograd::Node {
 public:
  explicit ContentsOrigin(graph::ValueId contents) : Node(of_contents(contents).first) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
};

std::optional<Origin> noted_origin(const at::Tensor& tensor, bool is_memory) {
  if (!tensor.requires_grad()) {
    const bool may_be_below =
        c10::GradMode::is_enabled() && torch::autograd::impl::get_autograd_meta(tensor) == nullptr;
    return may_be_below ? std::optional(below_autograd_now()) : std::nullopt;
  }
  std::optional<Origin> origin = origin_of(tensor);
  if (origin && is_memory && (tensor.is_conj() || tensor.is_neg())) origin->first |= kOfMemory;
  return origin;
}

// Values with the number of autograd nodes at the time when they were computed.
class ComputedValues {
 public:
  explicit ComputedValues(const graph::Graph& graph) : graph_(graph) {}
  bool contains(graph::ValueId value, const Origin& origin) const {
    const auto found = counts_.find(value);
    return found != counts_.end() && found->second == origin.second;
  }
  void add(uint32_t begin, uint32_t end, const Origin& now) {
    for (uint32_t i = begin; i < end; ++i)
      for (const graph::ValueId v : graph_.node(graph::NodeId{i}).results) counts_[v] = now.second;
  }

 private:
  const graph::Graph& graph_;
  std::unordered_map<graph::ValueId, uint32_t> counts_;
};

}  // namespace

void AutogradNotes::note(const at::Tensor& tensor, graph::ValueId value, bool is_memory) {
  given_.push_back({value, tensor.requires_grad(), noted_origin(tensor, is_memory)});
  if (given_.back().wanted && given_.back().origin) first_.try_emplace(*given_.back().origin, value);
}

void AutogradNotes::note_written_view() {
  if (given_.back().wanted && given_.back().origin) given_.back().written_at = below_autograd_now();
}

void note_unseen_write(AutogradNotes& notes, graph::ValueId before, graph::ValueId contents) {
  if (before == contents) return;
  const graph::ValueId history = notes.value(of_contents(before)).value_or(before);
  const c10::InferenceMode with_histories(false);
  // Stands for the written tensor with these contents, which may be a leaf without an origin.
  at::Tensor written(at::detail::empty_cpu({}, at::kFloat));
  torch::autograd::impl::set_gradient_edge(written, {make_node<ContentsOrigin>(contents), 0});
  notes.note(written, history);
  notes.note(written, contents);
}

void AutogradNotes::end_call(uint32_t begin, uint32_t end) {
  // A mark without a value: when the call computed its results.
  if (c10::GradMode::is_enabled()) given_.push_back({graph::ValueId{}, false, below_autograd_now()});
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
  ComputedValues computed(graph);
  for (const Call& call : calls_) {
    const bool is_forward = call.begin < first_of_backward;
    RecordedCall& recorded = out.calls.emplace_back(RecordedCall{call.begin, call.end, call.recorded, !is_forward, {}});
    for (const Given& given : call.given) {
      if (!given.wanted && given.origin) {
        if (!given.value.valid()) {
          computed.add(call.begin, call.end, *given.origin);
          continue;
        }
        const bool is_below = computed.contains(given.value, *given.origin);
        recorded.given.push_back({given.value, is_below ? given.value : graph::ValueId{}});
        out.reads_copies |= !is_forward && is_below;
        continue;
      }
      const std::optional<graph::ValueId> kept = given.origin ? std::nullopt : value(of_contents(given.value));
      const bool behind_others =
          given.written_at && computed.contains(passes::memory_of(graph, given.value), *given.written_at);
      const graph::ValueId history =
          given.origin && !behind_others ? first_.at(*given.origin) : kept.value_or(given.value);
      // The segment made this leaf, since it is no argument: gradients end there.
      const bool ends = !given.origin && !kept && graph.value(given.value).kind == graph::Value::Kind::Result;
      recorded.given.push_back({given.value, given.wanted && !ends ? history : graph::ValueId{}});
      out.reads_copies |= !is_forward && given.wanted && history != given.value;
    }
  }
  return out;
}

}  // namespace cresset::bridge
