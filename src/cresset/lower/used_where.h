// The points at which a kernel uses loaded values. A write to a slab (`x[3] = ...`) is lowered to a Select on the
// index. The Select's operand is loaded at every point, but used only at the points of the slab.
#pragma once

#include "loop/kernel.h"

namespace cresset::lower {

// Whether load `id` could use `address` instead of its own address: at all points which use the value, both are equal.
bool could_load_at(const loop::Kernel& kernel, loop::ScalarId id, sym::ExprId address);

}  // namespace cresset::lower
