// The fast path for most C calls: torch operators and tensor methods with tensor and value arguments. Their C code
// reads no mutable state except tensors and cannot inspect its arguments, so no special case needs a test.
#pragma once

#include "frontend/eval/hooks.h"
#include "frontend/trace_rules/c_function_effects.h"

namespace cresset::frontend {

// Whether the table of C functions declares the function pure for all arguments. All arguments must be tensors of
// torch's own types, values, and tuples of these. `*what` receives the table's answer.
bool is_plain_operator(const CressetCall& call, CCall* what);
// Called after the call: whether the function was looked up and is pure for these arguments, whatever they contain.
bool was_plain_operator(const CressetCall& call);

}  // namespace cresset::frontend
