// The guards to check at a call. Equalities come first, then the other guards over the variables which the equalities
// leave. The strongest guards are taken first, and a guard is kept only if the earlier guards do not imply it. Few
// guards exist, because a guard is recorded only when it adds information. A single pass is therefore enough.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "sym/shape_env.h"

namespace cresset::sym {
namespace {

// A size is never negative; a caller guarantees nothing else about a symbol.
Interval natural_range(const Symbol& symbol) { return symbol.range.lo >= 0 ? Interval::size() : Interval::all(); }

void guard_declared_range(ExprPool& pool, const Symbol& symbol, std::vector<SizeGuard>& out) {
  const Interval natural = natural_range(symbol);
  const ExprId var = pool.var(symbol.var);
  const Reason reason{"", "the range given for " + symbol.source};
  if (symbol.range.lo > natural.lo) out.push_back({pool.ge(var, pool.constant(symbol.range.lo)), reason});
  if (symbol.range.hi < natural.hi) out.push_back({pool.le(var, pool.constant(symbol.range.hi)), reason});
}

std::optional<ExprId> single_variable(const ExprPool& pool, ExprId condition) {
  const Kind kind = pool[condition].kind;
  if (kind != Kind::Le && kind != Kind::Ne) return std::nullopt;
  const ExprId sum = pool.operands(condition)[0];
  if (pool.is_var(sum)) return sum;
  if (pool[sum].kind == Kind::Mul && pool.is_var(pool[sum].monomial)) return pool[sum].monomial;
  return std::nullopt;
}

// k*(x // n) <= b is k*x <= n*b for a multiple x of n. The second form is easier to read and merges with other bounds
// of x.
ExprId about_the_variable(ExprPool& pool, Facts& facts, ExprId condition) {
  const Kind kind = pool[condition].kind;
  if (kind != Kind::Le && kind != Kind::Ne) return condition;
  TermList terms;
  pool.terms(pool.operands(condition)[0], terms);
  if (terms.size() != 1 || pool[terms[0].monomial].kind != Kind::FloorDiv) return condition;
  const ExprId x = pool.operands(terms[0].monomial)[0], n = pool.operands(terms[0].monomial)[1];
  if (!pool.is_var(x) || !pool.is_const(n)) return condition;
  if (!facts.decide(pool.eq(pool.mod(x, n), pool.constant(0))).value_or(false)) return condition;
  const ExprId sum = pool.scaled(x, terms[0].coefficient), bound = pool.mul(pool.operands(condition)[1], n);
  return kind == Kind::Le ? pool.le(sum, bound) : pool.ne(sum, bound);
}

bool eliminates_a_variable(const ExprPool& pool, ExprId sum) {
  TermList terms;
  pool.terms(sum, terms);
  return std::any_of(terms.begin(), terms.end(), [&](const Term& t) {
    return (t.coefficient == 1 || t.coefficient == -1) && pool.is_var(t.monomial);
  });
}

// A smaller rank means a stronger condition. Equalities remove variables, bounds make ranges, and the other conditions
// profit from both. Within a kind, the tighter bound or the larger divisor comes first.
std::tuple<int, int64_t> strength(const ExprPool& pool, ExprId condition) {
  const Expr& e = pool[condition];
  if (e.kind != Kind::Eq && e.kind != Kind::Le && e.kind != Kind::Ne) return {6, e.weight};
  const ExprId sum = pool.operands(condition)[0];
  const int64_t bound = pool.const_value(pool.operands(condition)[1]);
  if (e.kind == Kind::Ne) return {5, e.weight};
  if (e.kind == Kind::Le) return {single_variable(pool, condition) ? 3 : 4, bound};
  if (eliminates_a_variable(pool, sum)) return {pool.is_var(sum) ? 0 : 1, e.weight};
  const bool remainder = pool[sum].kind == Kind::Mod && pool.is_const(pool.operands(sum)[1]);
  return {2, remainder ? -pool.const_value(pool.operands(sum)[1]) : e.weight};
}

// Guards the divisors of `condition`. A division by zero has no value, so a call with a zero divisor is refused.
void guard_divisors(ExprPool& pool, const SizeGuard& guard, std::vector<SizeGuard>& out) {
  std::vector<ExprId> work{guard.condition};
  std::unordered_set<ExprId> seen;
  while (!work.empty()) {
    const ExprId e = work.back();
    work.pop_back();
    if (!seen.insert(e).second) continue;
    const bool divides = pool[e].kind == Kind::FloorDiv || pool[e].kind == Kind::Mod;
    for (const ExprId operand : pool.operands(e)) work.push_back(operand);
    if (!divides || pool.is_const(pool.operands(e)[1])) continue;
    const ExprId divisor = pool.operands(e)[1];
    out.push_back({pool.ne(divisor, pool.constant(0)), guard.reason});
  }
}

bool is_equality(const ExprPool& pool, const SizeGuard& guard) { return pool[guard.condition].kind == Kind::Eq; }

// The guards on a single variable, merged: the ends of its range with the reasons which set them, and the excluded
// values inside.
class VariableBounds {
 public:
  explicit VariableBounds(Interval range) : range_(range) {}

  void add(const ExprPool& pool, const SizeGuard& guard) {
    const ExprId sum = pool.operands(guard.condition)[0];
    const int64_t bound = pool.const_value(pool.operands(guard.condition)[1]);
    if (pool[guard.condition].kind == Kind::Ne) {
      excluded_.emplace(bound, guard.reason);
    } else if (pool.is_var(sum)) {
      if (bound < range_.hi) range_.hi = bound, above_ = guard.reason;
    } else {
      if (-bound > range_.lo) range_.lo = -bound, below_ = guard.reason;
    }
  }

  void emit(ExprPool& pool, ExprId var, std::vector<SizeGuard>& out) {
    for (auto it = excluded_.find(range_.lo); it != excluded_.end(); it = excluded_.find(range_.lo)) {
      ++range_.lo, below_ = it->second;
    }
    for (auto it = excluded_.find(range_.hi); it != excluded_.end(); it = excluded_.find(range_.hi)) {
      --range_.hi, above_ = it->second;
    }
    if (below_) out.push_back({pool.ge(var, pool.constant(range_.lo)), *below_});
    if (above_) out.push_back({pool.le(var, pool.constant(range_.hi)), *above_});
    for (const auto& [value, reason] : excluded_) {
      if (range_.contains(value)) out.push_back({pool.ne(var, pool.constant(value)), reason});
    }
  }

 private:
  Interval range_;
  std::optional<Reason> below_, above_;
  std::map<int64_t, Reason> excluded_;
};

// Rewrites `guards` over the variables which the equalities leave, and merges the guards on a single variable.
std::vector<SizeGuard> merge_bounds(ExprPool& pool, Facts& facts, std::vector<SizeGuard> guards) {
  std::vector<SizeGuard> merged;
  std::map<ExprId, VariableBounds> bounds;
  for (SizeGuard& guard : guards) {
    guard.condition = about_the_variable(pool, facts, facts.simplify(guard.condition));
    if (pool.is_const(guard.condition, 1)) continue;
    if (const std::optional<ExprId> var = single_variable(pool, guard.condition)) {
      bounds.try_emplace(*var, facts.range(*var)).first->second.add(pool, guard);
    } else {
      merged.push_back(std::move(guard));
    }
  }
  for (auto& [var, bound] : bounds) bound.emit(pool, var, merged);
  return merged;
}

// Keeps the guards, strongest first, which the earlier guards do not imply.
void keep_news(ExprPool& pool, Facts& facts, std::vector<SizeGuard> guards, std::vector<SizeGuard>& kept) {
  std::stable_sort(guards.begin(), guards.end(), [&pool](const SizeGuard& a, const SizeGuard& b) {
    return strength(pool, a.condition) < strength(pool, b.condition);
  });
  for (SizeGuard& guard : guards) {
    const ExprId simplified = facts.simplify(guard.condition);
    if (pool.is_const(simplified, 1)) continue;
    if (!single_variable(pool, guard.condition)) guard.condition = about_the_variable(pool, facts, simplified);
    facts.learn(guard.condition);
    kept.push_back(std::move(guard));
  }
}

}  // namespace

std::vector<SizeGuard> ShapeEnv::minimized_guards() {
  std::vector<SizeGuard> equalities, others, kept;
  Facts facts(pool_);
  for (const Symbol& symbol : symbols_) {
    if (symbol.hint) {
      facts.declare(symbol.var, natural_range(symbol), Facts::Role::Symbol);
      guard_declared_range(pool_, symbol, others);
    } else {
      facts.declare(symbol.var, symbol.range, Facts::Role::Unbacked);
    }
  }
  for (const SizeGuard& guard : guards_) guard_divisors(pool_, guard, others);
  for (const SizeGuard& guard : guards_) (is_equality(pool_, guard) ? equalities : others).push_back(guard);
  keep_news(pool_, facts, std::move(equalities), kept);
  others = merge_bounds(pool_, facts, std::move(others));
  keep_news(pool_, facts, std::move(others), kept);
  return kept;
}

}  // namespace cresset::sym
