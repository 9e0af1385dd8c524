// Lifetimes of a Program's tensors, and which of them share memory.
#pragma once

#include "lower/lower.h"
#include "lower/size_table.h"

namespace cresset::lower {

// `result` may share memory with `argument`, which therefore lives as long.
struct Alias {
  runtime::TensorId result, argument;
};

// Says from which to which step each tensor of the arena is needed (where it lies is decided for the sizes of a call:
// runtime/arena_plan.h), lets kernels work in place where a buffer dies in the kernel that makes another one of the
// same shape, adds Release steps, and fills Launch::symbols.
void plan_memory(const std::vector<Alias>& aliases, SizeTable& sizes, Lowered& lowered);

}  // namespace cresset::lower
