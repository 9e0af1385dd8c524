// A function for each family returns its table of rows. registry.cpp concatenates the tables.
#pragma once

#include <span>

#include "ops/op_def.h"

namespace cresset::ops {

#define CRESSET_OP_FAMILY(name) std::span<const OpDef> name##_ops();
#include "ops/families.def"
#undef CRESSET_OP_FAMILY

}  // namespace cresset::ops
