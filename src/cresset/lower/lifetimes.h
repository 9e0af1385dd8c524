// Lifetimes: the steps between which each tensor's memory is needed.
#pragma once

#include <functional>
#include <vector>

#include "lower/memory_plan.h"

namespace cresset::lower {

struct Lifetime {
  static constexpr uint32_t kNever = UINT32_MAX;
  static constexpr uint32_t kEnd = UINT32_MAX - 1;  // outlives the call
  uint32_t first = kNever, last = 0;
  bool used() const { return first != kNever; }
};

// Returns the tensor which owns the memory of `id`.
runtime::TensorId owner(const runtime::Program& program, runtime::TensorId id);
// Calls f for every tensor read or written by a step.
void for_each_tensor(const runtime::Step& step, const std::function<void(runtime::TensorId)>& f);
// Indexed by tensor; meaningful for owners.
std::vector<Lifetime> lifetimes(const runtime::Program& program, const std::vector<Alias>& aliases);

}  // namespace cresset::lower
