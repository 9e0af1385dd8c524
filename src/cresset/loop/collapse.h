// Loops that addresses walk in strides: drops dimensions of extent 1, splits those that addresses divide, orders
// dimensions by stride, merges neighbours that every address walks as one.
#pragma once

#include <vector>

#include "loop/kernel.h"

namespace cresset::loop {

struct Loop {
  VarId var;
  ExprId extent;
  bool inner = false;
};

// Every index expression of a kernel, rewritten together.
struct IndexSpace {
  std::vector<Loop> outer, inner;
  std::vector<ExprId> scalar;  // by scalar, invalid when it has none
  std::vector<ExprId> store;   // by store
  ExprId position;             // row-major over inner dims; invalid when nothing needs it
};

IndexSpace collapsed_space(const Kernel& kernel);

}  // namespace cresset::loop
