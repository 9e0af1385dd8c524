// Steps that write where they read: saves memory, and cache traffic with it.
#pragma once

#include "lower/lifetimes.h"

namespace cresset::lower {

// Where a launch reads a tensor in the arena, or one that an extern call allocated, for the last time, element by
// element at the very addresses at which it writes an arena tensor, or an output, of the same dtype and size, both
// become one buffer of the kernel. What is loaded elsewhere, but taken only where the addresses agree, is loaded at the
// store's. A kernel that reduces stores at a point only after it has folded all points of the
// row. Likewise a call whose result starts as its first argument (`starts_as_first`), read for the last time and by
// nothing else of the call: it finds the two at one address. Returns, by tensor, the one whose block it shares
// (invalid: none).
std::vector<runtime::TensorId> reuse_in_place(SizeTable& sizes, const std::vector<Lifetime>& lives,
                                              const std::vector<Alias>& aliases, Lowered& lowered);

// New contents of a tensor of the caller's that one launch makes, element by element at the very addresses at which it
// reads the old ones, if it does: they are written there at once, where nothing reads the old ones later. The copy into
// it becomes one of the tensor into itself, which tells that it was written. Only where no step can raise.
void write_in_place(SizeTable& sizes, Lowered& lowered);

}  // namespace cresset::lower
