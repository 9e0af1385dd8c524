// One step of every rewriting walk: the node `id` over new operands, canonical again.
#pragma once

#include <span>

#include "sym/expr.h"

namespace cresset::sym {

ExprId rebuild(ExprPool& pool, ExprId id, std::span<const ExprId> operands);

}  // namespace cresset::sym
