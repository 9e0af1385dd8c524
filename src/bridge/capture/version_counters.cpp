// Version counters of the caller's tensors. Autograd moves them while a call is captured; later calls move them as far.
#include "bridge/capture/autograd_state.h"
#include "bridge/capture/capture.h"

namespace cresset::bridge {
namespace {

// Whether a write to one counts for the other. The counters themselves can only be compared by their effect.
bool share_counter(const at::Tensor& a, const at::Tensor& b) {
  c10::VariableVersion counter = a.unsafeGetTensorImpl()->version_counter();
  const c10::VariableVersion& other = b.unsafeGetTensorImpl()->version_counter();
  if (!counter.enabled() || !other.enabled()) return true;
  const auto before = counter.current_version(), other_before = other.current_version();
  counter.bump();
  const bool shared = other.current_version() != other_before;
  counter.set_version(before);
  return shared;
}

}  // namespace

// How far the version counter of the storage's real tensor moved since it was met (Storage::first_version): by writes
// that autograd is told of, and by operators that change the geometry of a view in place.
uint32_t StorageTable::counted_writes(const Storage& storage) const {
  if (!storage.real.defined() || storage.home == OutputSpec::Kind::GraphOutput) return 0;
  uint32_t counted = version_of(storage.real) - storage.first_version;
  // Under the C++ front end operators are given the stand-in itself, which has a counter of its own.
  const auto lifted = lifted_.find(storage.real.unsafeGetTensorImpl());
  if (!use_input_proxies_ && lifted != lifted_.end() && !lifted->second.is_inference())
    counted += version_of(lifted->second);
  return counted;
}

// Storages whose version counters moved, and how far. Each counter once: several of the caller's tensors may share one.
std::vector<std::pair<uint32_t, uint32_t>> StorageTable::moved_counters() const {
  std::vector<std::pair<uint32_t, uint32_t>> out;
  for (uint32_t i = 0; i < storages_.size(); ++i) {
    const uint32_t steps = counted_writes(storages_[i]);
    const auto is_known = [&](const auto& moved) {
      return share_counter(storages_[moved.first].real, storages_[i].real);
    };
    if (steps != 0 && std::none_of(out.begin(), out.end(), is_known)) out.emplace_back(i, steps);
  }
  return out;
}

// Also of tensors that are not written: transpose_() of a view moves the counter that the view shares.
void Capture::add_mutations() {
  const auto found = storages_.moved_counters();
  std::unordered_map<uint32_t, uint32_t> moved(found.begin(), found.end());
  for (uint32_t i = 0; i < storages_.size(); ++i) {
    Storage& storage = storages_[i];
    storages_.settle_watched(storage);
    if (storage.home == OutputSpec::Kind::GraphOutput) continue;
    const bool is_constant = storage.home == OutputSpec::Kind::Constant;
    const uint32_t steps = moved[i], own = storage.version != 0 && steps != 0 ? 1 : 0;
    if (storage.version != 0)
      graph().mutations.push_back({storage.position, is_constant, storage.value, /*unseen=*/own == 0});
    if (steps != own) counters.written.push_back({is_constant, storage.position, steps - own});
    storage.first_version = steps;  // from now on: how far it moved, for count_writes()
  }
}

// Autograd has counted them while they were captured. Where the program is run, it counts them.
void StorageTable::count_writes(int times) const {
  for (const Storage& storage : storages_) {
    if (storage.home == OutputSpec::Kind::GraphOutput || !storage.real.defined() || storage.real.is_inference() ||
        storage.first_version == 0)
      continue;
    c10::VariableVersion counter = storage.real.unsafeGetTensorImpl()->version_counter();
    const int64_t moved = static_cast<int64_t>(counter.current_version()) + times * int64_t{storage.first_version};
    counter.set_version(std::max<int64_t>(moved, 0));
  }
}

// Results in one storage share counters as the tensors of the call do. The first tensor with a counter leads the
// others.
void StorageTable::set_versions(std::vector<OutputSpec>& specs, const std::vector<at::Tensor>& outputs,
                                const std::vector<bool>& given_as_view) const {
  if (!use_input_proxies_ || c10::InferenceMode::is_enabled()) return;
  for (uint32_t i = 0; i < specs.size(); ++i) {
    OutputSpec& spec = specs[i];
    const bool callers = spec.kind != OutputSpec::Kind::GraphOutput;
    if (!outputs[i].defined() || outputs[i].is_inference()) continue;
    std::vector<uint32_t> others;
    for (uint32_t j = 0; j < i; ++j)
      if (specs[j].kind == spec.kind && specs[j].position == spec.position && !outputs[j].is_inference())
        others.push_back(j);
    if (!callers && others.empty()) continue;  // it has the memory's first counter
    const at::Tensor& base = !callers                               ? outputs[others[0]]
                             : spec.kind == OutputSpec::Kind::Input ? recorder_.inputs()[spec.position]
                                                                    : recorder_.constants()[spec.position];
    if (given_as_view[i] && !outputs[i].requires_grad())
      outputs[i].unsafeGetTensorImpl()->set_version_counter(base.unsafeGetTensorImpl()->version_counter());
    if (given_as_view[i] || (callers && share_counter(base, outputs[i]))) continue;
    const auto leader =
        std::find_if(others.begin(), others.end(), [&](uint32_t j) { return share_counter(outputs[j], outputs[i]); });
    spec.versions = leader != others.end() ? *leader : i;
  }
}

}  // namespace cresset::bridge
