// torch's argument parser asks every symbolic number for `__torch_function__`. Symbolic numbers have no such attribute.
// CPython's default answer is an AttributeError with a formatted message, which costs more than the rest of the
// parsing.
#pragma once

namespace cresset::frontend {

// Gives the classes of symbolic numbers a `__torch_function__` descriptor which raises AttributeError at once, on the
// type and on instances. For Python code the attribute stays absent. The caller holds the GIL; later calls do nothing.
void answer_torch_function_quickly();

}  // namespace cresset::frontend
