// Operators on floats whose result the least change of an argument may change by a whole step: floor, sign, a
// remainder. Those with truth values or integers as results are not listed.
#pragma once

#include "ops/op_def.h"

namespace cresset::ops {

bool takes_steps(graph::OpId op);

}  // namespace cresset::ops
