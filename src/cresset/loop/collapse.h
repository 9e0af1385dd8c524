// Normalizes the loops of a kernel. Dimensions of extent 1 are dropped, and dimensions divided in addresses are split.
// Dimensions are ordered by stride, and adjacent dimensions are merged when every address treats them as a single
// dimension.
#pragma once

#include <vector>

#include "loop/kernel.h"

namespace cresset::loop {

struct Loop {
  VarId var;
  ExprId extent;
  bool inner = false;
};

// All index expressions of a kernel, rewritten together.
struct IndexSpace {
  std::vector<Loop> outer, inner;
  std::vector<ExprId> scalar;  // by scalar; invalid without an expression
  std::vector<ExprId> store;   // by store
  ExprId position;             // row-major over inner dims; invalid when unused
};

IndexSpace collapsed_space(const Kernel& kernel);

}  // namespace cresset::loop
