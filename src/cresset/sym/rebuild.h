// A single step of every rewriting walk: the node `id` over new operands, in canonical form.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>

#include "sym/expr.h"

namespace cresset::sym {

ExprId rebuild(ExprPool& pool, ExprId id, std::span<const ExprId> operands);
// The same for a kind which has operands.
ExprId rebuild(ExprPool& pool, Kind kind, std::span<const ExprId> operands);

// Copies `id` into another pool. Returns nullopt when it mentions a variable that `vars` lacks.
std::optional<ExprId> transfer(const ExprPool& from, ExprId id, ExprPool& to,
                               const std::unordered_map<VarId, ExprId>& vars);

}  // namespace cresset::sym
