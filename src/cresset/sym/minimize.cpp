// The guards to check at a call: the recorded ones, strongest first, each kept only if those before it do not imply it.
// Every recorded guard was news when it was recorded, so there are few; one pass over them is enough.
#include <algorithm>
#include <tuple>

#include "sym/shape_env.h"

namespace cresset::sym {
namespace {

// A size is never negative; nothing else about a symbol is promised by the caller.
Interval natural_range(const Symbol& symbol) { return symbol.range.lo >= 0 ? Interval::size() : Interval::all(); }

void guard_declared_range(ExprPool& pool, const Symbol& symbol, std::vector<GuardFact>& out) {
  const Interval natural = natural_range(symbol);
  const ExprId var = pool.var(symbol.var);
  const Reason reason{"", "the range given for " + symbol.source};
  if (symbol.range.lo > natural.lo) out.push_back({pool.ge(var, pool.constant(symbol.range.lo)), reason});
  if (symbol.range.hi < natural.hi) out.push_back({pool.le(var, pool.constant(symbol.range.hi)), reason});
}

// Smaller is stronger: equalities remove variables, bounds make ranges, the rest profits from both.
std::tuple<int, int64_t> strength(const ExprPool& pool, ExprId condition) {
  const Expr& e = pool[condition];
  if (e.kind != Kind::Eq && e.kind != Kind::Le && e.kind != Kind::Ne) return {5, e.weight};
  const ExprId sum = pool.operands(condition)[0];
  const int64_t bound = pool.const_value(pool.operands(condition)[1]);
  if (e.kind == Kind::Ne) return {4, e.weight};
  if (e.kind == Kind::Eq) return {pool.is_var(sum) ? 0 : 1, e.weight};
  const bool one_var = pool[sum].kind == Kind::Var || (pool[sum].kind == Kind::Mul && pool.is_var(pool[sum].monomial));
  return {one_var ? 2 : 3, bound};
}

}  // namespace

std::vector<GuardFact> ShapeEnv::minimized_guards() {
  std::vector<GuardFact> candidates;
  Facts facts(pool_);
  for (const Symbol& symbol : symbols_) {
    facts.declare(symbol.var, symbol.hint ? natural_range(symbol) : symbol.range, Facts::Role::Symbol);
    if (symbol.hint) guard_declared_range(pool_, symbol, candidates);
  }
  candidates.insert(candidates.end(), guards_.begin(), guards_.end());
  std::stable_sort(candidates.begin(), candidates.end(), [this](const GuardFact& a, const GuardFact& b) {
    return strength(pool_, a.condition) < strength(pool_, b.condition);
  });
  std::vector<GuardFact> kept;
  for (GuardFact& guard : candidates) {
    guard.condition = facts.simplify(guard.condition);
    if (pool_.is_const(guard.condition, 1)) continue;
    facts.learn(guard.condition);
    kept.push_back(std::move(guard));
  }
  return kept;
}

}  // namespace cresset::sym
