#include "codegen/nvptx/index_bounds.h"

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "codegen/nvptx/launch.h"

namespace cresset::codegen::nvptx {

using sym::Kind;

IndexBounds::IndexBounds(const loop::Kernel& kernel, const KernelPlan& plan) : env_(kernel.env()), pool_(env_.pool()) {
  for (const Loop& loop : plan.loops) extent_[loop.var] = loop.extent;
  for (const loop::Binding& b : kernel.bindings) bound_.push_back(b.var);
}

ExprId IndexBounds::of(ExprId e) {
  if (!mentions_scalar(e)) return bound(e).greatest;
  ExprId most = pool_.constant(0), together;
  const bool product = pool_[e].kind == Kind::Mul;
  for (const ExprId operand : operands(e)) {
    const ExprId bound = of(operand);
    most = pool_.max(most, bound);
    if (mentions_scalar(operand)) continue;
    if (together.valid()) together = cut(product ? pool_.mul(together, bound) : pool_.add(together, bound));
    if (!together.valid()) together = bound;
  }
  return together.valid() ? pool_.max(most, together) : most;
}

ExprId IndexBounds::cut(ExprId e) { return pool_.min(e, pool_.constant(kNoIndex32)); }

bool IndexBounds::mentions_scalar(ExprId e) {
  return std::any_of(bound_.begin(), bound_.end(), [&](VarId var) { return pool_.uses_var(e, var); });
}

bool IndexBounds::of_sizes(ExprId e) {
  const auto varies = [&](const auto& loop) { return pool_.uses_var(e, loop.first); };
  return !mentions_scalar(e) && std::none_of(extent_.begin(), extent_.end(), varies);
}

IndexBounds::Bound IndexBounds::of_variable(ExprId e) {
  const auto loop = extent_.find(pool_.var_of(e));
  if (loop != extent_.end()) return bound(loop->second);
  const ExprId own = cut(env_.range(e).lo >= 0 ? e : pool_.max(e, pool_.neg(e)));
  return {own, own};
}

IndexBounds::Bound IndexBounds::bound(ExprId e) {
  if (const auto known = known_.find(e); known != known_.end()) return known->second;
  const Bound out = pool_[e].kind == Kind::Var ? of_variable(e) : of_parts(e);
  known_.emplace(e, out);
  return out;
}

IndexBounds::Bound IndexBounds::of_parts(ExprId e) {
  std::vector<ExprId> values;
  ExprId greatest = pool_.constant(0);
  for (const ExprId part : operands(e)) {
    const Bound own = bound(part);
    values.push_back(own.value);
    greatest = pool_.max(greatest, own.greatest);
  }
  const ExprId value = compute(e, values);
  return {value, pool_.max(greatest, value)};
}

// size: switch
ExprId IndexBounds::compute(ExprId e, const std::vector<ExprId>& parts) {
  const ExprId one = pool_.constant(1);
  switch (pool_[e].kind) {
    case Kind::Const: {
      const int64_t value = pool_.const_value(e);
      return pool_.constant(value == INT64_MIN ? kNoIndex32 : std::min(std::abs(value), kNoIndex32));
    }
    case Kind::Var:
      break;  // of_variable
    case Kind::Add: {
      ExprId sum = parts[0];
      for (size_t i = 1; i < parts.size(); ++i) sum = cut(pool_.add(sum, parts[i]));
      return sum;
    }
    case Kind::Mul: {
      ExprId out = parts[0];
      for (size_t i = 1; i < parts.size(); ++i) out = product(out, parts[i]);
      return out;
    }
    case Kind::FloorDiv: {  // a negative quotient is rounded away from zero; nothing divides by zero
      const ExprId divisor = pool_.operands(e)[1];
      const ExprId least = of_sizes(divisor) ? pool_.max(divisor, one) : one;
      return cut(pool_.add(pool_.floor_div(parts[0], least), one));
    }
    case Kind::Mod:
      return pool_.max(parts[1], one);
    case Kind::Min:
    case Kind::Max: {
      ExprId out = parts[0];
      for (const ExprId part : parts) out = pool_.max(out, part);
      return out;
    }
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
    case Kind::And:
    case Kind::Or:
    case Kind::Not:
      return one;
  }
  CRESSET_CHECK(false, "unknown kind");
}

}  // namespace cresset::codegen::nvptx
