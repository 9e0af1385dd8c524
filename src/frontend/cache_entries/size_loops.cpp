#include "frontend/cache_entries/size_loops.h"

#include <utility>

#include "frontend/feedback/thresholds.h"

namespace cresset::frontend {
namespace {

constexpr uint64_t kHash = 0x9E3779B97F4A7C15;

uint64_t mixed(uint64_t hash, uint64_t value) { return (hash ^ (value + kHash + (hash << 6) + (hash >> 2))) * kHash; }

uint64_t sizes_of(const CallLeaves& leaves) {
  uint64_t hash = kHash;
  for (const at::Tensor& t : leaves.tensors)
    for (const int64_t size : t.sizes()) hash = mixed(hash, static_cast<uint64_t>(size));
  for (const int64_t number : leaves.ints) hash = mixed(hash, static_cast<uint64_t>(number));
  return hash | 1;
}

}  // namespace

uint64_t kinds_of(const CallLeaves& leaves) {
  uint64_t hash = kHash + leaves.tensors.size();
  for (const at::Tensor& t : leaves.tensors) {
    if (!t.defined() || t.layout() != c10::kStrided || t.is_nested()) return 0;
    hash = mixed(hash, static_cast<uint64_t>(t.scalar_type()) << 8 | static_cast<uint64_t>(t.dim()));
    hash = mixed(hash, t.requires_grad() ? 1 : 0);
  }
  return hash | 1;
}

uint64_t SizeLoops::eager_sizes(const CacheEntries& among, const TorchState& state, PyObject* args,
                                PyObject* kwargs) const {
  if (programs_ < threshold::kSizesOfLoop) return 0;
  CallLeaves leaves;
  for (size_t i = 0; i < among.size(); ++i) {
    const std::shared_ptr<CacheEntry> v = among[i];  // checks may run Python code
    if (v->loops_of == 0 || v->state != state) continue;
    leaves.clear();
    if (!match(v->args, args, leaves, nullptr) || !match(v->kwargs, kwargs, leaves, nullptr)) continue;
    if (!v->guards.holds(nullptr) || !v->guards.gather(leaves, nullptr) || kinds_of(leaves) != v->loops_of) continue;
    const uint64_t sizes = sizes_of(leaves);
    return pays(sizes) ? 0 : sizes;
  }
  return 0;
}

bool SizeLoops::pays(uint64_t sizes) const {
  const auto found = eager_.find(sizes);
  const Clock::duration eager = found != eager_.end() ? found->second : Clock::duration{};
  return threshold::kPartOfCompiling * eager >= compile_;
}

bool SizeLoops::ran_eagerly(uint64_t sizes, Clock::duration took) {
  if (eager_.size() >= threshold::kMostSizes && eager_.count(sizes) == 0) eager_.clear();
  eager_[sizes] += took;
  return eager_.size() >= threshold::kManySizes && !std::exchange(warned_, true);
}

void SizeLoops::compiled(const CacheEntry& entry, Clock::duration took) {
  if (entry.loops_of == 0) return;
  ++programs_;
  compile_ = took;
}

}  // namespace cresset::frontend
