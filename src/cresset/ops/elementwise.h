// Elementwise operators: each element of the result is computed from the elements at the same index of the operands,
// broadcast.
#pragma once

#include "ops/op_def.h"

namespace cresset::ops {

// Not every operator with an element rule is elementwise (a triangle, a pad, a resampling use the index). Operators
// which create a tensor like another tensor (zeros_like, fill) are elementwise; operators which take sizes are not.
bool is_elementwise(graph::OpId op);

}  // namespace cresset::ops
