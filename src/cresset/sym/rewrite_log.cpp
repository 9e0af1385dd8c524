#include "sym/rewrite_log.h"

namespace cresset::sym {

// Steps are deduplicated by hash. A collision loses one proof among thousands, in a debugging mode.
void RewriteLog::add(RewriteStep step) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
  uint64_t h = static_cast<uint64_t>(step.kind) + 1;
  for (const uint32_t part : {step.a.index, step.b.index, step.after.index, step.base}) {
    h = (h ^ (h >> 31) ^ part) * kMultiplier;
  }
  if (seen_.insert(h).second) steps_.push_back(step);
}

}  // namespace cresset::sym
