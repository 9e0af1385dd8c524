#include "bridge/executor/frozen_weights.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "bridge/device/cpu/result_allocator.h"
#include "passes/freeze.h"

namespace cresset::bridge {
namespace {

std::vector<bool> staying(const graph::Graph& graph, const std::vector<at::Tensor>& constants) {
  std::unordered_set<const c10::StorageImpl*> written;
  const auto memory = [](const at::Tensor& t) { return t.storage().unsafeGetStorageImpl(); };
  for (const graph::Mutation& m : graph.mutations)
    if (m.is_constant && constants[m.input].has_storage()) written.insert(memory(constants[m.input]));
  std::vector<bool> fixed;
  for (const at::Tensor& t : constants)
    fixed.push_back(t.has_storage() && t.device().is_cpu() && t.layout() == at::kStrided && !t.is_inference() &&
                    !written.contains(memory(t)));
  return fixed;
}

// RAII: these values outlive the call which makes them, so they need memory outside of any plan.
struct Apart {
  const PlaceResults own_memory;
  const c10::InferenceMode ordinary_tensors{false};
  const c10::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
};

}  // namespace

FrozenWeights::FrozenWeights(const std::vector<at::Tensor>& constants, std::vector<bool> fixed)
    : constants_(constants), fixed_(std::move(fixed)), marks_(marks()) {}

std::unique_ptr<FrozenWeights> FrozenWeights::freeze(graph::Graph& graph, std::vector<at::Tensor>& constants,
                                                     const driver::Options& options) {
  std::vector<bool> fixed = staying(graph, constants);
  if (std::find(fixed.begin(), fixed.end(), true) == fixed.end()) return nullptr;
  std::unique_ptr<graph::Graph> apart = passes::freeze(graph, fixed, options);
  std::unique_ptr<FrozenWeights> frozen(new FrozenWeights(constants, std::move(fixed)));
  if (apart == nullptr) return frozen;
  Result<driver::Compiled> compiled = driver::compile(std::move(apart), options);
  CRESSET_CHECK(compiled.ok(), describe(compiled.fallback()));
  CRESSET_CHECK(compiled->program.symbols.empty(), "what is computed from weights alone depends on a size");
  frozen->program_ = std::make_unique<Executor>(std::move(*compiled), constants);
  frozen->values_ = frozen->compute();
  constants.insert(constants.end(), frozen->values_.begin(), frozen->values_.end());
  return frozen;
}

driver::Stats FrozenWeights::stats() const {
  driver::Stats out;
  if (program_ != nullptr) out = program_->compile_stats();
  out.frozen_values = static_cast<int64_t>(values_.size());
  return out;
}

FrozenWeights::Mark FrozenWeights::mark_of(const at::Tensor& t) {
  return {t.const_data_ptr(), static_cast<uint32_t>(t._version())};
}

std::vector<FrozenWeights::Mark> FrozenWeights::marks() const {
  std::vector<Mark> out;
  out.reserve(constants_.size());
  for (size_t i = 0; i < constants_.size(); ++i)
    if (fixed_[i]) out.push_back(mark_of(constants_[i]));
  return out;
}

std::vector<at::Tensor> FrozenWeights::compute() {
  const Apart apart;
  std::vector<at::Tensor> made = program_->run({}, {});
  program_->drop_contexts();
  return made;
}

void FrozenWeights::refresh() {
  const std::lock_guard lock(mutex_);
  bool same = true;
  for (size_t i = 0, mark = 0; same && i < constants_.size(); ++i)
    if (fixed_[i]) same = marks_[mark++] == mark_of(constants_[i]);
  if (same) return;
  std::vector<Mark> now = marks();
  if (program_ != nullptr) {
    const Apart apart;
    const std::vector<at::Tensor> made = compute();
    for (size_t v = 0; v < made.size(); ++v) values_[v].copy_(made[v]);  // in place, where programs read them
  }
  packed_.clear();
  marks_ = std::move(now);
  generation_.fetch_add(1, std::memory_order_release);
}

at::Tensor FrozenWeights::packed(const std::string& key, c10::function_ref<at::Tensor()> pack) {
  const std::lock_guard lock(mutex_);
  at::Tensor& found = packed_[key];
  if (!found.defined()) {
    const Apart apart;
    found = pack();
  }
  return found;
}

}  // namespace cresset::bridge
