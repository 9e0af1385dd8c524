// Lifetimes of a Program's tensors, and sharing of their memory.
#pragma once

#include "lower/lower.h"
#include "lower/size_table.h"

namespace cresset::lower {

// `result` may share memory with `argument`, so `argument` lives at least as long.
struct Alias {
  runtime::TensorId result, argument;
};

// Computes the lifetime of each tensor in the arena; runtime/arena_plan.h places the tensors for the sizes of a call.
// Kernels work in place where a buffer dies in the kernel which makes another buffer of the same shape. Also adds
// Release steps and fills Launch::symbols.
void plan_memory(const std::vector<Alias>& aliases, SizeTable& sizes, Lowered& lowered);

}  // namespace cresset::lower
