// Walks over an expression's variables.
#include <algorithm>
#include <unordered_set>

#include "sym/expr.h"
#include "sym/rebuild.h"

namespace cresset::sym {
namespace {

uint64_t mask_of(VarId var) { return uint64_t{1} << (var.index % 64); }

class Substitution {
 public:
  Substitution(ExprPool& pool, const std::unordered_map<VarId, ExprId>& replacement)
      : pool_(pool), replacement_(replacement) {
    for (const auto& [var, unused] : replacement) mask_ |= mask_of(var);
  }

  ExprId apply(ExprId id) {
    if ((pool_[id].var_mask & mask_) == 0) return id;
    if (pool_.is_var(id)) {
      const auto it = replacement_.find(pool_.var_of(id));
      return it == replacement_.end() ? id : it->second;
    }
    if (const auto it = done_.find(id); it != done_.end()) return it->second;
    ExprList old_operands, new_operands;
    old_operands.assign(pool_.operands(id));
    bool changed = false;
    for (const ExprId operand : old_operands) {
      new_operands.push_back(apply(operand));
      changed |= new_operands.back() != operand;
    }
    const ExprId result = changed ? rebuild(pool_, id, new_operands) : id;
    done_.emplace(id, result);
    return result;
  }

 private:
  ExprPool& pool_;
  const std::unordered_map<VarId, ExprId>& replacement_;
  uint64_t mask_ = 0;
  std::unordered_map<ExprId, ExprId> done_;
};

// Calls visit(var) once for each distinct variable in the expression whose bit is in `mask`. Stops when visit returns
// true.
template <class Visit>
bool visit_vars(const ExprTable& pool, ExprId root, uint64_t mask, Visit&& visit) {
  SmallVector<ExprId, 64> work;
  std::unordered_set<ExprId> seen;  // shared nodes only: small expressions never use the set
  const bool track = pool[root].weight > 64;
  work.push_back(root);
  while (!work.empty()) {
    const ExprId id = work.back();
    work.pop_back();
    if ((pool[id].var_mask & mask) == 0) continue;
    if (pool.is_var(id)) {
      if (visit(pool.var_of(id))) return true;
      continue;
    }
    if (track && !seen.insert(id).second) continue;
    for (const ExprId operand : pool.operands(id)) work.push_back(operand);
  }
  return false;
}

}  // namespace

ExprId ExprPool::substitute(ExprId id, const std::unordered_map<VarId, ExprId>& replacement) {
  return Substitution(*this, replacement).apply(id);
}

void ExprTable::collect_vars(ExprId id, std::vector<VarId>& out) const {
  visit_vars(*this, id, ~uint64_t{0}, [&](VarId var) {
    if (std::find(out.begin(), out.end(), var) == out.end()) out.push_back(var);
    return false;
  });
}

bool ExprTable::uses_var(ExprId id, VarId var) const {
  return visit_vars(*this, id, mask_of(var), [&](VarId v) { return v == var; });
}

bool ExprPool::affine_in(ExprId id, VarId var, Affine& out) {
  if (!uses_var(id, var)) {
    out = {constant(0), id};
    return true;
  }
  const ExprId variable = this->var(var);
  TermList all, with, without;
  terms(id, all);
  for (const Term& term : all) {
    if (!term.monomial.valid() || !uses_var(term.monomial, var)) {
      without.push_back(term);
      continue;
    }
    ExprId cofactor;
    if (!monomial_quotient(term.monomial, variable, cofactor)) return false;
    if (cofactor.valid() && uses_var(cofactor, var)) return false;
    with.push_back({cofactor, term.coefficient});
  }
  out.coefficient = from_terms(with);
  out.rest = from_terms(without);
  return true;
}

}  // namespace cresset::sym
