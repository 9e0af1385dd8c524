#include "sym/bound_prover.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sym/arith.h"
#include "sym/facts.h"
#include "sym/shifted_sum.h"

namespace cresset::sym {
namespace {

constexpr int kProofSteps = 48;
constexpr uint32_t kStepWeight = 16;  // a goal costs an additional step for this many nodes
constexpr int kProofDepth = 8;
constexpr int kChainedBounds = 3;      // facts combined in a proof
constexpr size_t kFactoredTerms = 16;  // longer sums are not searched for common factors
constexpr size_t kRecentBounds = 128;  // facts tried in a step
// A slice to the end has the end INT64_MAX, which no proof may multiply. Coefficients within the first limit, times
// divisors or facts within the second limit, fit in 64 bits.
constexpr int64_t kGreatest = int64_t{1} << 40, kGreatestFactor = int64_t{1} << 20;

bool within(const TermList& terms, int64_t limit) {
  return std::all_of(terms.begin(), terms.end(),
                     [&](const Term& t) { return -limit <= t.coefficient && t.coefficient <= limit; });
}

// e / c for a single term with the factors of c.
std::optional<ExprId> whole_quotient(ExprPool& pool, ExprId e, ExprId c) {
  TermList terms;
  pool.terms(e, terms);
  ExprId others;
  if (terms.size() != 1 || !terms[0].monomial.valid() || !pool.monomial_quotient(terms[0].monomial, c, others))
    return std::nullopt;
  return pool.scaled(others, terms[0].coefficient);
}

}  // namespace

bool BoundProver::prove(ExprId sum, int64_t bound, int depth) {
  if (facts_.pool_.is_const(sum)) return facts_.pool_.const_value(sum) <= bound;
  const Interval r = facts_.range_of(sum);
  if (r.hi != Interval::kPosInf && r.hi <= bound) return true;
  if (r.lo > bound || facts_.samples_.exceeds(sum, bound)) return false;
  const Facts::Memo& m = facts_.memo(sum);
  if (m.proved != Interval::kPosInf && m.proved <= bound) return true;
  if (m.failed_at == facts_.epoch_ && bound <= m.failed && depth >= m.failed_depth) return false;
  return depth == 0 ? prove_afresh(sum, bound) : search(sum, bound, depth);
}

// A failed goal is not searched again until a new condition is learned. Two failures are not remembered: when the steps
// ran out, and when the goal led back to a goal with another proof.
bool BoundProver::prove_afresh(ExprId sum, int64_t bound) {
  std::vector<ExprId> outer_goals;
  outer_goals.swap(goals_);
  const int outer_steps = std::exchange(steps_, kProofSteps);
  const bool outer_held = std::exchange(held_, false);
  const bool proved = search(sum, bound, 0);
  if (held_ || steps_ < 0 || facts_.fuel_ <= 0) {
    for (const ExprId goal : goals_)
      if (goal != sum) facts_.memo(goal).failed_at = 0;
  }
  outer_goals.swap(goals_);
  steps_ = outer_steps;
  held_ = outer_held;
  return proved;
}

bool BoundProver::search(ExprId sum, int64_t bound, int depth) {
  if (depth > kProofDepth || steps_ < 0) return false;
  steps_ -= 1 + static_cast<int>(std::min<uint32_t>(facts_.pool_[sum].weight / kStepWeight, kProofSteps));
  if (depth > 0 && steps_ < 0) return false;
  TermList terms;
  facts_.pool_.terms(sum, terms);
  if (!within(terms, kGreatest) || bound < -kGreatest || bound > kGreatest) return false;
  goals_.push_back(sum);
  Facts::Memo& m = facts_.memo(sum);
  m.failed_at = facts_.epoch_, m.failed = bound, m.failed_depth = depth;  // prevents a cycle through the same goal
  const auto least = [this](ExprId atom) { return facts_.range_of(atom).lo; };
  const bool held = prove_by_factoring(sum, bound) || falls_from(facts_.pool_, terms, bound, least) ||
                    prove_by_extents(sum, bound, depth) || prove_by_quotients(sum, bound, depth) ||
                    prove_by_floors(sum, bound, depth) || prove_by_cases(sum, bound, depth) ||
                    prove_by_bounds(sum, bound, depth);
  if (!held) return false;
  Facts::Memo& proved = facts_.memo(sum);
  proved.proved = std::min(proved.proved, bound);
  proved.failed_at = 0;
  held_ |= depth > 0;
  return true;
}

// sum = z*q + r for an atom z of several terms: the range of q considers these terms together.
bool BoundProver::prove_by_factoring(ExprId sum, int64_t bound) {
  TermList terms;
  facts_.pool_.terms(sum, terms);
  if (terms.size() > kFactoredTerms) return false;
  ExprList tried;
  for (const Term& term : terms) {
    ExprList atoms;
    atoms.assign(facts_.pool_.factors(term.monomial));
    for (const ExprId z : atoms) {
      if (std::find(tried.begin(), tried.end(), z) != tried.end()) continue;
      tried.push_back(z);
      const auto holds_it = [&](const Term& t) {
        const std::span<const ExprId> factors = facts_.pool_.factors(t.monomial);
        return std::find(factors.begin(), factors.end(), z) != factors.end();
      };
      if (std::count_if(terms.begin(), terms.end(), holds_it) < 2) continue;
      TermList inside, outside;
      for (const Term& t : terms) {
        ExprId rest;
        if (t.monomial.valid() && facts_.pool_.monomial_quotient(t.monomial, z, rest)) {
          inside.push_back({rest, t.coefficient});
        } else {
          outside.push_back(t);
        }
      }
      const Interval together = mul(facts_.range_of(z), facts_.range_of(facts_.pool_.from_terms(inside)));
      const Interval r = add(together, facts_.range_of(facts_.pool_.from_terms(outside)));
      if (r.hi != Interval::kPosInf && r.hi <= bound) return true;
    }
  }
  return false;
}

// An index with a non-negative factor is at most extent - 1; with a non-positive factor it is at least 0. The youngest
// index goes first, because its extent may mention older indices.
bool BoundProver::prove_by_extents(ExprId sum, int64_t bound, int depth) {
  if ((facts_.pool_[sum].var_mask & facts_.extent_mask_) == 0) return false;
  std::vector<VarId> vars;
  facts_.pool_.collect_vars(sum, vars);
  std::sort(vars.begin(), vars.end(), [](VarId a, VarId b) { return a > b; });
  for (const VarId var : vars) {
    const ExprId extent = facts_.extent(var);
    ExprPool::Affine parts;
    if (!extent.valid() || !facts_.pool_.affine_in(sum, var, parts)) continue;
    const Interval factor = facts_.range_of(parts.coefficient);
    if (factor.lo >= 0) {
      const ExprId last = facts_.pool_.sub(extent, facts_.pool_.constant(1));
      return prove(facts_.pool_.add(facts_.pool_.mul(parts.coefficient, last), parts.rest), bound, depth + 1);
    }
    if (factor.hi <= 0) return prove(parts.rest, bound, depth + 1);
  }
  return false;
}

// Whether c >= 1 wherever x has a value. An index exists only where its extent, a product of sizes, is not 0.
bool BoundProver::is_positive(ExprId c, ExprId x) const {
  const Interval range = facts_.range_of(c);
  if (range.lo >= 1) return true;
  if (range.lo < 0 || !facts_.pool_.is_var(x)) return false;
  const ExprId extent = facts_.extent(facts_.pool_.var_of(x));
  if (!extent.valid()) return false;
  return whole_quotient(facts_.pool_, extent, c).has_value();
}

// (extent - 1) // c, for c >= 1.
ExprId BoundProver::last_quotient(ExprId extent, ExprId c) const {
  ExprPool& pool = facts_.pool_;
  if (const auto quotient = whole_quotient(pool, extent, c)) return pool.sub(*quotient, pool.constant(1));
  return pool.floor_div(pool.sub(extent, pool.constant(1)), c);
}

// The quotient of an index is at least 0, and at most that of extent - 1.
bool BoundProver::prove_by_quotients(ExprId sum, int64_t bound, int depth) {
  if ((facts_.pool_[sum].var_mask & facts_.extent_mask_) == 0) return false;
  ExprPool& pool = facts_.pool_;
  TermList terms;
  pool.terms(sum, terms);
  for (size_t i = 0; i < terms.size(); ++i) {
    const Term term = terms[i];
    if (!term.monomial.valid()) continue;
    ExprList atoms;
    atoms.assign(pool.factors(term.monomial));
    for (const ExprId atom : atoms) {
      if (pool[atom].kind != Kind::FloorDiv || !pool.is_var(pool.operands(atom)[0])) continue;
      const ExprId index = pool.operands(atom)[0], c = pool.operands(atom)[1];
      const ExprId extent = facts_.extent(pool.var_of(index));
      ExprId cofactor;
      if (!extent.valid() || !is_positive(c, index) || !pool.monomial_quotient(term.monomial, atom, cofactor)) continue;
      if (cofactor.valid() && facts_.range_of(cofactor).lo < 0) continue;
      const ExprId rest = pool.sub(sum, pool.scaled(term.monomial, term.coefficient));
      const ExprId most = term.coefficient > 0 ? last_quotient(extent, c) : pool.constant(0);
      const ExprId k = pool.scaled(cofactor, term.coefficient);
      if (prove(pool.add(rest, pool.mul(k, most)), bound, depth + 1)) return true;
    }
  }
  return false;
}

// For c > 0:  c*(x // c) <= x  and  c*(x // c) >= x - c + 1. Hence k*(x // c) + rest <= bound follows from k*x + c*rest
// <= c*bound for k >= 0, and likewise from below. For k = 1 and -1 the step is exact, since rest is an integer: x // c
// <= n  <=>  x <= c*n + c - 1  and  x // c >= n  <=>  x >= c*n. Also 0 <= x mod c < c.
bool BoundProver::prove_by_floors(ExprId sum, int64_t bound, int depth) {
  TermList terms;
  facts_.pool_.terms(sum, terms);
  for (size_t i = 0; i < terms.size(); ++i) {
    const Term term = terms[i];
    if (!term.monomial.valid()) continue;
    ExprList atoms;
    atoms.assign(facts_.pool_.factors(term.monomial));
    for (const ExprId atom : atoms) {
      const Kind kind = facts_.pool_[atom].kind;
      if (kind != Kind::FloorDiv && kind != Kind::Mod) continue;
      const ExprId x = facts_.pool_.operands(atom)[0], c = facts_.pool_.operands(atom)[1];
      ExprId cofactor;
      TermList divisor;
      facts_.pool_.terms(c, divisor);
      if (!within(divisor, kGreatestFactor) || !is_positive(c, x) ||
          !facts_.pool_.monomial_quotient(term.monomial, atom, cofactor))
        continue;
      if (cofactor.valid() && facts_.range_of(cofactor).lo < 0) continue;
      const ExprId rest = facts_.pool_.sub(sum, facts_.pool_.scaled(term.monomial, term.coefficient));
      const ExprId k = facts_.pool_.scaled(cofactor, term.coefficient);
      const ExprId last = facts_.pool_.sub(c, facts_.pool_.constant(1));
      if (kind == Kind::Mod) {
        const ExprId most = term.coefficient > 0 ? last : facts_.pool_.constant(0);
        if (prove(facts_.pool_.add(rest, facts_.pool_.mul(k, most)), bound, depth + 1)) return true;
        if (term.coefficient < 0 || facts_.range_of(x).lo < 0) continue;
        return prove(facts_.pool_.add(rest, facts_.pool_.mul(k, x)), bound, depth + 1);
      }
      const bool unit = !cofactor.valid() && (term.coefficient == 1 || term.coefficient == -1);
      const ExprId most = (term.coefficient > 0) != unit ? x : facts_.pool_.sub(x, last);
      const ExprId others = facts_.pool_.mul(c, facts_.pool_.sub(rest, facts_.pool_.constant(bound)));
      return prove(facts_.pool_.add(others, facts_.pool_.mul(k, most)), 0, depth + 1);
    }
  }
  return false;
}

// max(a, b) with a positive coefficient: both cases must hold. With a negative coefficient either case suffices. For
// min the signs are reversed.
bool BoundProver::prove_by_cases(ExprId sum, int64_t bound, int depth) {
  TermList terms;
  facts_.pool_.terms(sum, terms);
  for (const Term& term : terms) {
    if (!term.monomial.valid()) continue;
    const Kind kind = facts_.pool_[term.monomial].kind;
    if (kind != Kind::Min && kind != Kind::Max) continue;
    const bool all = (kind == Kind::Max) == (term.coefficient > 0);
    const ExprId rest = facts_.pool_.sub(sum, facts_.pool_.scaled(term.monomial, term.coefficient));
    ExprList cases;
    cases.assign(facts_.pool_.operands(term.monomial));
    for (const ExprId chosen : cases) {
      const ExprId scaled = facts_.pool_.mul(chosen, facts_.pool_.constant(term.coefficient));
      if (prove(facts_.pool_.add(rest, scaled), bound, depth + 1) != all) return !all;
    }
    return all;
  }
  return false;
}

// sum - n*f <= bound - n*b, for a fact f <= b which cancels one of the terms.
bool BoundProver::prove_by_bounds(ExprId sum, int64_t bound, int depth) {
  if (depth >= kChainedBounds) return false;
  const uint64_t mask = facts_.pool_[sum].var_mask;
  TermList terms;
  facts_.pool_.terms(sum, terms);
  const size_t oldest = facts_.bounds_.size() > kRecentBounds ? facts_.bounds_.size() - kRecentBounds : 0;
  for (size_t i = facts_.bounds_.size(); i-- > oldest;) {
    const Facts::Bound fact = facts_.bounds_[i];
    if ((facts_.pool_[fact.sum].var_mask & mask) == 0 || fact.sum == sum) continue;
    TermList fact_terms;
    facts_.pool_.terms(fact.sum, fact_terms);
    if (!within(fact_terms, kGreatestFactor)) continue;
    int64_t times = 0;
    for (const Term& f : fact_terms) {
      for (const Term& t : terms) {
        if (t.monomial != f.monomial || (t.coefficient < 0) != (f.coefficient < 0)) continue;
        if (t.coefficient % f.coefficient == 0) times = t.coefficient / f.coefficient;
      }
    }
    if (times == 0) continue;
    const ExprId left = facts_.pool_.sub(sum, facts_.pool_.mul(fact.sum, facts_.pool_.constant(times)));
    if (prove(left, saturating_add(bound, saturating_neg(saturating_mul(times, fact.bound))), depth + 1)) return true;
    if (steps_ < 0) return false;
  }
  return false;
}

}  // namespace cresset::sym
