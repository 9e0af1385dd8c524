// Operator names, interned process-wide: "aten::add.Tensor" <=> OpId. Thread-safe.
#pragma once

#include <string_view>

#include "base/ids.h"

namespace cresset::graph {

using OpId = Id<struct OpTag>;

OpId op_id(std::string_view name);
std::string_view op_name(OpId id);  // valid for the life of the process

}  // namespace cresset::graph
