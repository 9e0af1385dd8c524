// Which operators compute each element of their result from the elements at the same place of their operands,
// broadcast.
#pragma once

#include "ops/op_def.h"

namespace cresset::ops {

// Not every operator with an element rule does (a triangle, a pad, a resampling look at the index). Operators that make
// a tensor like another one (zeros_like, fill) do; those that are given its sizes do not.
bool is_elementwise(graph::OpId op);

}  // namespace cresset::ops
