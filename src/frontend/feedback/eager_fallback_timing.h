// Compiled-versus-eager tuning for calls with many graph segments, or with an eager fallback. The values which a
// program keeps in its frames are checked again for each segment, and these checks may cost more than the segments
// save. Calls are therefore timed compiled and eagerly. A function which is faster in eager mode runs eagerly, and is
// timed again after a while.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace cresset::frontend {

class EagerFallbackTiming {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether the next call is to run eagerly; asked once per call.
  bool runs_eagerly();
  // Returns the start time if the call is to be timed.
  std::optional<Clock::time_point> start() const;
  // Reports a finished call: its number of segments and whether CPython ran the rest of it, or a finished eager call.
  void ran(size_t segments, bool natively, std::optional<Clock::time_point> start);
  bool ran_eagerly(std::optional<Clock::time_point> start);  // whether this call decided against the segments
  double compiled_ms() const { return static_cast<double>(compiled_ns_) * 1e-6; }
  double eager_ms() const { return static_cast<double>(eager_ns_) * 1e-6; }
  size_t segments() const { return segments_; }

 private:
  void begin_again(int64_t calls_from_now);

  int64_t calls_ = 0;  // consecutive calls with many segments; negative: calls until the next tuning
  int64_t resting_ = 0, rest_ = 0;
  int64_t compiled_ns_ = std::numeric_limits<int64_t>::max(), eager_ns_ = compiled_ns_;  // minima
  int64_t eager_calls_ = 0;
  size_t segments_ = 0;
};

}  // namespace cresset::frontend
