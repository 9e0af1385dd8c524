// Bounds of index expressions, from which a launch decides whether 32 bits hold them.
#pragma once

#include <unordered_map>
#include <vector>

#include "codegen/common/kernel_plan.h"

namespace cresset::codegen::nvptx {

// Of the absolute values of expressions and of all their parts, over size symbols. Every step is cut off at kNoIndex32,
// so that none leaves 64 bits.
class IndexBounds {
 public:
  IndexBounds(const loop::Kernel& kernel, const KernelPlan& plan);

  // Of e, or, where it mentions a scalar's value (64 bits are taken there), of its parts that do not.
  ExprId of(ExprId e);
  ExprId cut(ExprId e);
  ExprId product(ExprId a, ExprId b) { return cut(pool_.mul(a, b)); }

 private:
  struct Bound {
    ExprId value;     // of the expression
    ExprId greatest;  // of it and everything that it is computed from
  };

  std::vector<ExprId> operands(ExprId e) { return {pool_.operands(e).begin(), pool_.operands(e).end()}; }
  bool mentions_scalar(ExprId e);
  bool of_sizes(ExprId e);
  Bound of_variable(ExprId e);
  Bound bound(ExprId e);
  Bound of_parts(ExprId e);
  ExprId compute(ExprId e, const std::vector<ExprId>& parts);

  sym::ShapeEnv& env_;
  sym::ExprPool& pool_;
  std::unordered_map<VarId, ExprId> extent_;
  std::vector<VarId> bound_;
  std::unordered_map<ExprId, Bound> known_;
};

}  // namespace cresset::codegen::nvptx
