// Costs of recording operators, by operator, and reasons for calls of shape rules: for cresset.stats().
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "ops/shape_memo.h"

namespace cresset::bridge {

struct CaptureCosts {
  struct Operator {
    int64_t calls = 0, nanoseconds = 0;  // in the capture kernel, without Python and autograd
  };
  class Clock;                                               // adds the cost of a call when destroyed
  std::unordered_map<std::string_view, Operator> operators;  // names live as long as the process
  std::array<int64_t, ops::kMemoMisses.size()> memo_misses{};

  void add(std::string_view name, int64_t nanoseconds) {
    Operator& cost = operators[name];
    ++cost.calls;
    cost.nanoseconds += nanoseconds;
  }
  void add(const CaptureCosts& other) {
    for (const auto& [name, cost] : other.operators) {
      Operator& mine = operators[name];
      mine.calls += cost.calls;
      mine.nanoseconds += cost.nanoseconds;
    }
    for (size_t i = 0; i < memo_misses.size(); ++i) memo_misses[i] += other.memo_misses[i];
  }
};

class CaptureCosts::Clock {
 public:
  Clock(CaptureCosts& costs, std::string_view name) : costs_(costs), name_(name) {}
  ~Clock() { costs_.add(name_, std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count()); }
  Clock(const Clock&) = delete;

 private:
  CaptureCosts& costs_;
  std::string_view name_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace cresset::bridge
