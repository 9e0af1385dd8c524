#include "frontend/feedback/eager_fallback_timing.h"

#include <algorithm>

#include "frontend/feedback/thresholds.h"

namespace cresset::frontend {
namespace {

// With fewer segments, the cost of a call is dominated by its kernels.
using threshold::kManySegments;
// After kWarm calls, every outcome of the program's decisions should have its segment. Compiled and eager calls
// alternate, since sizes may differ between calls.
using threshold::kWarm, threshold::kPairs, threshold::kFirstRest, threshold::kLongestEager, threshold::kUntilNext;

int64_t since(EagerFallbackTiming::Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(EagerFallbackTiming::Clock::now() - start).count();
}

}  // namespace

bool EagerFallbackTiming::runs_eagerly() {
  if (resting_ > 0) {
    if (--resting_ == 0) begin_again(0);
    return true;
  }
  return calls_ > kWarm + eager_calls_;
}

std::optional<EagerFallbackTiming::Clock::time_point> EagerFallbackTiming::start() const {
  if (resting_ > 0 || calls_ < kWarm) return {};
  return Clock::now();
}

void EagerFallbackTiming::ran(size_t segments, bool natively, std::optional<Clock::time_point> start) {
  segments_ = segments;
  if (calls_ >= 0 && segments < kManySegments && !natively) return void(calls_ = 0);
  ++calls_;
  if (start) compiled_ns_ = std::min(compiled_ns_, since(*start));
}

bool EagerFallbackTiming::ran_eagerly(std::optional<Clock::time_point> start) {
  if (!start || calls_ <= kWarm) return false;  // tuning rests
  eager_ns_ = std::min(eager_ns_, since(*start));
  if (++eager_calls_ < kPairs) return false;
  const bool is_slower = compiled_ns_ > eager_ns_ + eager_ns_ / 2;
  if (!is_slower) return begin_again(kUntilNext), false;
  rest_ = std::clamp(2 * rest_, kFirstRest, kLongestEager);
  resting_ = rest_;
  return true;
}

void EagerFallbackTiming::begin_again(int64_t calls_from_now) {
  calls_ = kWarm - calls_from_now;
  compiled_ns_ = eager_ns_ = std::numeric_limits<int64_t>::max();
  eager_calls_ = 0;
}

}  // namespace cresset::frontend
