// Parser for the strings of to_string(): Python's syntax over integers, names, min() and max().
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "sym/expr.h"

namespace cresset::sym {

// A name which is not resolved, or a syntax error, gives an InvalidArguments fallback which names the column.
using ResolveName = std::function<std::optional<VarId>(std::string_view name)>;
Result<ExprId> parse(ExprPool& pool, std::string_view text, const ResolveName& resolve);

// For a string whose names are all in `names`.
using VarIds = std::unordered_map<std::string, VarId>;
Result<ExprId> parse(ExprPool& pool, std::string_view text, const VarIds& names);

}  // namespace cresset::sym
