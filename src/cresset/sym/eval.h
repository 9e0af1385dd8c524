// A direct evaluator of expressions. It computes hints, and tests use it as an oracle.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sym/expr.h"

namespace cresset::sym {

// Returns the value of `op` over numbers, or nullopt for a division by zero. `op` is neither Const nor Var, which have
// no operands.
std::optional<int64_t> apply(Kind op, int64_t a, int64_t b);

// Returns the value of an expression, or nullopt when a needed variable has no value or a divisor is zero.
using ValueOf = std::function<std::optional<int64_t>(VarId)>;
std::optional<int64_t> eval(const ExprPool& pool, ExprId id, const ValueOf& value_of);

}  // namespace cresset::sym
