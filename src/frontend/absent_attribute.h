// torch's argument parser asks every symbolic number for __torch_function__. It has none, and CPython's answer to that
// is an error with a formatted message, which costs more than the rest of the parsing.
#pragma once

namespace cresset::frontend {

// Gives the classes of symbolic numbers a __torch_function__ that raises AttributeError at once, on the type as on
// instances: to Python it stays absent. Under the GIL; does it once.
void answer_torch_function_quickly();

}  // namespace cresset::frontend
