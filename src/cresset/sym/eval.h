// The slow, obvious meaning of an expression: hints, and the oracle of tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sym/expr.h"

namespace cresset::sym {

// Value of `op` over numbers; nullopt for a division by zero. Const and Var have no operands to apply.
std::optional<int64_t> apply(Kind op, int64_t a, int64_t b);

// Value of an expression; nullopt when a needed variable has none, or on a division by zero.
using ValueOf = std::function<std::optional<int64_t>(VarId)>;
std::optional<int64_t> eval(const ExprPool& pool, ExprId id, const ValueOf& value_of);

}  // namespace cresset::sym
