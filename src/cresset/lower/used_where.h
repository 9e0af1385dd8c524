// Where a kernel's values are used: an element of a slab (`x[3] = ...` as a choice by index) is loaded at every point
// and taken at those of the slab alone.
#pragma once

#include "loop/kernel.h"

namespace cresset::lower {

// Whether load `id` could have `address` instead of its own: at all points at which its value is taken they are equal.
bool could_load_at(const loop::Kernel& kernel, loop::ScalarId id, sym::ExprId address);

}  // namespace cresset::lower
