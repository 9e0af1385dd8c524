// Lifetimes of a Program's tensors, and one arena for those that live inside the call.
#pragma once

#include "lower/lower.h"
#include "lower/size_table.h"

namespace cresset::lower {

// `result` may share memory with `argument`, which therefore lives as long.
struct Alias {
  runtime::TensorId result, argument;
};

// Assigns arena offsets (symbolic, multiples of 64), lets kernels work in place where a buffer dies in the kernel that
// makes another one of the same shape, adds Release steps, and fills Launch::symbols.
void plan_memory(sym::ShapeEnv& env, const std::vector<Alias>& aliases, SizeTable& sizes, Lowered& lowered);

}  // namespace cresset::lower
