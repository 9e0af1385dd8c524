// Most calls of C functions: operators of torch's and methods of tensors, given tensors and values. C code that looks
// at nothing that can change but tensors, and that cannot look into what it is given, need not be asked what else it
// does.
#pragma once

#include "frontend/c_functions.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// Whether the table of C functions says of such a function that it is pure whatever it is given, and the arguments are
// tensors of torch's own types, values, and tuples of these. Then *what is what it says.
bool is_plain_operator(const CressetCall& call, CCall* what);
// Once it was called: whether that function was asked about, and is pure of these arguments, whatever they hold.
bool was_plain_operator(const CressetCall& call);

}  // namespace cresset::frontend
