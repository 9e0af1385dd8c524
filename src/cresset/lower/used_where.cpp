#include "lower/used_where.h"

#include <algorithm>
#include <unordered_map>

namespace cresset::lower {
namespace {

using loop::Kernel;
using loop::Op;
using loop::Scalar;
using loop::ScalarId;
using sym::ExprId;
using sym::VarId;

class Uses {
 public:
  Uses(const Kernel& kernel, ExprId apart) : kernel_(kernel), pool_(kernel.env().pool()), apart_(apart) {}

  // Every path from `id` to a store, a reduction or an index passes a Select which takes the value only where the
  // addresses agree.
  bool agree_where_taken(ScalarId id) {
    const auto [it, added] = known_.emplace(id, true);
    if (!added) return it->second;
    const bool agree = !escapes(id) && all_users_agree(id);
    return known_[id] = agree;
  }

 private:
  bool escapes(ScalarId id) const {
    return std::any_of(kernel_.stores.begin(), kernel_.stores.end(),
                       [&](const auto& s) { return s.value == id || s.condition == id; }) ||
           std::any_of(kernel_.bindings.begin(), kernel_.bindings.end(), [&](const auto& b) { return b.scalar == id; });
  }
  bool all_users_agree(ScalarId id) {
    for (uint32_t u = id.index + 1; u < kernel_.scalars.size(); ++u) {
      const Scalar& user = kernel_.scalars[u];
      if (user.a != id && user.b != id && user.c != id) continue;
      if (user.op == Op::Reduce) return false;
      const bool taken_if = user.op == Op::Select && user.b == id && user.a != id && user.c != id;
      if (!(taken_if && agree_under(user.a)) && !agree_where_taken({u})) return false;
    }
    return true;
  }
  bool agree_under(ScalarId condition) {
    const Scalar& c = kernel_[condition];
    if (c.op == Op::BitAnd) return agree_under(c.a) || agree_under(c.b);
    if (c.op != Op::Eq) return false;
    const std::optional<ExprId> left = index_of(c.a), right = index_of(c.b);
    if (!left || !right) return false;
    const ExprId equation = pool_.sub(*left, *right);
    return std::any_of(kernel_.dims.begin(), kernel_.dims.end(),
                       [&](const loop::Dim& dim) { return agree_given(equation, dim.var); });
  }
  // Solves the equation for the variable and substitutes the solution.
  bool agree_given(ExprId equation, VarId var) {
    sym::ExprPool::Affine form;
    if (!pool_.uses_var(equation, var) || !pool_.affine_in(equation, var, form)) return false;
    const bool plus = pool_.is_const(form.coefficient, 1);
    if (!plus && !pool_.is_const(form.coefficient, -1)) return false;
    const ExprId value = plus ? pool_.sub(pool_.constant(0), form.rest) : form.rest;
    return pool_.is_const(kernel_.env().simplify(pool_.substitute(apart_, {{var, value}})), 0);
  }
  std::optional<ExprId> index_of(ScalarId id) const {
    const Scalar& s = kernel_[id];
    if (s.op == Op::Size) return s.expr;
    if (s.op == Op::Const && s.dtype == DType::I64) return pool_.constant(s.integer);
    return std::nullopt;
  }

  const Kernel& kernel_;
  sym::ExprPool& pool_;
  const ExprId apart_;
  std::unordered_map<ScalarId, bool> known_;
};

}  // namespace

bool could_load_at(const Kernel& kernel, ScalarId id, ExprId address) {
  const ExprId own = kernel[id].expr;
  return own == address || Uses(kernel, kernel.env().pool().sub(own, address)).agree_where_taken(id);
}

}  // namespace cresset::lower
