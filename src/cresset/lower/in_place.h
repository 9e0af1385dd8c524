// Steps which write in place, at the memory they read. This saves memory and cache traffic.
#pragma once

#include "lower/lifetimes.h"

namespace cresset::lower {

// Finds launches which read an input tensor for the last time, element by element at the same addresses at which they
// write a result. The input is in the arena or was allocated by an extern call; the result is in the arena or an
// output. Both have the same dtype and size. They become a single buffer of the kernel. A load from another address
// moves to the store's address if its value is used only where the addresses agree. A reducing kernel stores at a point
// only after it has folded all points of the row.
//
// A call whose result starts as its first argument (`starts_as_first`) is treated in the same way. This must be the
// last use of the argument, and no other argument of the call may read it. The call then receives the same address for
// both. Returns, for each tensor, the tensor whose block it shares (invalid: none).
std::vector<runtime::TensorId> reuse_in_place(SizeTable& sizes, const std::vector<Lifetime>& lives,
                                              const std::vector<Alias>& aliases, Lowered& lowered);

// Writes new contents of an input or constant directly. A launch must compute them element by element, at the addresses
// at which it reads the old contents, if it reads them. A call must start as the old contents (`starts_as_first`): a
// cache that grows in place. No later step may read the old contents. The copy becomes a copy of the tensor to itself,
// which records the write. Only for programs in which no step can raise.
void write_in_place(SizeTable& sizes, Lowered& lowered);

}  // namespace cresset::lower
