// Calls of many pieces, or of so many that CPython has to go on, are timed beside eager ones: what a program leaves in
// its frames is checked again for each piece, which may cost more than the pieces save. Such a function runs eagerly,
// and is timed again after a while.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace cresset::frontend {

class EagerRace {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether the next call is to run eagerly; asked once a call.
  bool runs_eagerly();
  // When a call begins that is to be timed.
  std::optional<Clock::time_point> start() const;
  // Of a call that began then: in how many pieces it ran, and whether CPython went on from there; or that it ran
  // eagerly.
  void ran(size_t pieces, bool natively, std::optional<Clock::time_point> start);
  bool ran_eagerly(std::optional<Clock::time_point> start);  // whether this decided against the pieces
  double compiled_ms() const { return static_cast<double>(compiled_ns_) * 1e-6; }
  double eager_ms() const { return static_cast<double>(eager_ns_) * 1e-6; }
  size_t pieces() const { return pieces_; }

 private:
  void begin_again(int64_t calls_from_now);

  int64_t calls_ = 0;  // in a row that ran in many pieces; below 0: until a next race
  int64_t resting_ = 0, rest_ = 0;
  int64_t compiled_ns_ = std::numeric_limits<int64_t>::max(), eager_ns_ = compiled_ns_;  // the least of each
  int64_t eager_calls_ = 0;
  size_t pieces_ = 0;
};

}  // namespace cresset::frontend
