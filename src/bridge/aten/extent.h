// The region of a storage which a view addresses.
#pragma once

#include <vector>

#include "sym/expr.h"

namespace cresset::bridge {

struct Extent {
  std::vector<sym::ExprId> sizes, strides;
  sym::ExprId offset;  // from the first element of the storage's base
};

}  // namespace cresset::bridge
