// The public builders of the pool: each computes its result and logs the step while validating.
#include "sym/expr.h"
#include "sym/rewrite_log.h"

namespace cresset::sym {

// `step`: the name and the kind of the step. Arithmetic on constants is not logged.
#define CRESSET_SYM_BUILDER(name, step, work)                                                               \
  ExprId ExprPool::name(ExprId a, ExprId b) {                                                               \
    const ExprId result = work;                                                                             \
    if (log_ != nullptr && !(is_const(a) && is_const(b))) log_->built(StepKind::step, #name, a, b, result); \
    return result;                                                                                          \
  }

CRESSET_SYM_BUILDER(add, Add, make_add(a, b))
CRESSET_SYM_BUILDER(sub, Sub, make_sub(a, b))
CRESSET_SYM_BUILDER(mul, Mul, make_mul(a, b))
CRESSET_SYM_BUILDER(floor_div, FloorDiv, make_floor_div(a, b))
CRESSET_SYM_BUILDER(mod, Mod, make_mod(a, b))
CRESSET_SYM_BUILDER(min, Min, extremum(Kind::Min, a, b))
CRESSET_SYM_BUILDER(max, Max, extremum(Kind::Max, a, b))
CRESSET_SYM_BUILDER(eq, Eq, a == b ? constant(1) : relation(Kind::Eq, a, b, 0))
CRESSET_SYM_BUILDER(ne, Ne, a == b ? constant(0) : relation(Kind::Ne, a, b, 0))
CRESSET_SYM_BUILDER(lt, Lt, relation(Kind::Le, a, b, 1))
CRESSET_SYM_BUILDER(le, Le, relation(Kind::Le, a, b, 0))
CRESSET_SYM_BUILDER(logical_and, And, junction(Kind::And, a, b))
CRESSET_SYM_BUILDER(logical_or, Or, junction(Kind::Or, a, b))
#undef CRESSET_SYM_BUILDER

ExprId ExprPool::logical_not(ExprId a) {
  const ExprId result = make_not(a);
  if (log_ != nullptr && !is_const(a)) log_->built(StepKind::Not, "logical_not", a, ExprId{}, result);
  return result;
}

}  // namespace cresset::sym
