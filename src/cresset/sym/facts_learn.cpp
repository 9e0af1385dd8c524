// Learning: the facts take a condition as true.
#include <algorithm>
#include <tuple>
#include <utility>

#include "sym/arith.h"
#include "sym/facts.h"

namespace cresset::sym {

bool Facts::learn(ExprId condition) {
  condition = truth_of(condition);
  const ExprId simplified = simplify(condition);
  if (pool_.is_const(simplified)) return pool_.const_value(simplified) != 0;
  if (learning_ == 0) {
    samples_.learn(condition);
    assume(Assumption::Kind::Condition, condition, Interval::all());
  } else if (RewriteLog* steps = log()) {
    steps->rewrote(base_, "consequence of what was learned", condition, pool_.constant(1));
  }
  ++learning_;
  learn_simplified(simplified);
  --learning_;
  return true;
}

void Facts::learn_simplified(ExprId condition) {
  const Kind kind = pool_[condition].kind;
  if (kind == Kind::And) {
    ExprList parts;
    parts.assign(pool_.operands(condition));
    for (const ExprId part : parts) learn(part);
    return;
  }
  truth_[condition] = true;
  truth_[pool_.logical_not(condition)] = false;
  conditions_.push_back(condition);
  changed();
  if (kind == Kind::Eq) learn_equality(condition);
  if (kind == Kind::Ne) learn_inequality(condition);
  if (kind == Kind::Le) {
    const ExprId sum = pool_.operands(condition)[0];
    learn_bound(sum, pool_.const_value(pool_.operands(condition)[1]));
  }
}

// The variable to eliminate is alone in a term of coefficient 1 or -1. Unbacked symbols go first. Next, solutions
// without negative terms are preferred, since a size written as a difference hides its sign. The youngest variable
// breaks ties.
void Facts::learn_equality(ExprId condition) {
  const ExprId sum = pool_.operands(condition)[0], value = pool_.operands(condition)[1];
  TermList terms;
  pool_.terms(sum, terms);
  VarId best;
  ExprId best_solution;
  std::tuple<Role, bool, uint32_t> best_rank{};
  for (const Term& term : terms) {
    if ((term.coefficient != 1 && term.coefficient != -1) || !pool_.is_var(term.monomial)) continue;
    const VarId var = pool_.var_of(term.monomial);
    const Role role = info(var).role;
    ExprPool::Affine parts;
    if (role == Role::Index || !pool_.affine_in(sum, var, parts) || !pool_.is_const(parts.coefficient)) continue;
    const ExprId difference = pool_.sub(value, parts.rest);
    const ExprId solution = term.coefficient == 1 ? difference : pool_.neg(difference);
    TermList solved;
    pool_.terms(solution, solved);
    const bool positive = std::all_of(solved.begin(), solved.end(), [](const Term& t) { return t.coefficient > 0; });
    const std::tuple rank{role, positive, var.index};
    if (best.valid() && rank < best_rank) continue;
    best = var, best_solution = solution, best_rank = rank;
  }
  if (best.valid()) {
    conditions_.pop_back();  // absorbed
    replace_var(best, best_solution);
    return;
  }
  const int64_t constant = pool_.const_value(value);
  sum_range_[sum] = Interval::point(constant);
  sum_range_[pool_.neg(sum)] = Interval::point(saturating_neg(constant));
  bounds_.push_back({sum, constant});
  bounds_.push_back({pool_.neg(sum), saturating_neg(constant)});
  replace_monomial(sum, constant);
  if (pool_[sum].kind == Kind::Mod && constant == 0) learn_divisibility(sum);
  if (pool_[sum].kind == Kind::Mod && constant != 0) {  // (h + 1) mod 2 == 1: h is a multiple of 2
    const ExprId a = pool_.operands(sum)[0], b = pool_.operands(sum)[1];
    learn(pool_.eq(pool_.mod(pool_.sub(a, value), b), pool_.constant(0)));
  }
  if (pool_[sum].kind == Kind::FloorDiv) {
    learn(pool_.le(sum, value));
    learn(pool_.ge(sum, value));
  }
}

void Facts::learn_inequality(ExprId condition) {
  const ExprId sum = pool_.operands(condition)[0], value = pool_.operands(condition)[1];
  exclusions_.emplace(sum, pool_.const_value(value));
  apply_exclusions(sum);
  if (!pool_.is_const(value, 0) || pool_[sum].kind != Kind::Mul) return;
  ExprList factors;
  factors.assign(pool_.factors(pool_[sum].monomial));
  for (const ExprId factor : factors) learn(pool_.ne(factor, value));
}

// An excluded value at an end of the range moves this end.
void Facts::apply_exclusions(ExprId sum) {
  for (bool moved = true; moved;) {
    moved = false;
    const auto [begin, end] = exclusions_.equal_range(sum);
    const Interval r = range_of(sum);
    if (r.is_point()) break;
    for (auto it = begin; it != end && !moved; ++it) {
      const int64_t value = it->second;
      if (value != r.lo && value != r.hi) continue;
      moved = true;
      if (value == r.lo) {
        set_bound(pool_.neg(sum), saturating_neg(value + 1));
      } else {
        set_bound(sum, value - 1);
      }
    }
  }
  learn_point(sum);
}

// Bounds with a single value between them are equivalent to an equality, and an equality has more consequences.
void Facts::learn_point(ExprId sum) {
  int64_t unit = 1;
  const Interval r = range_of(sum);
  if (!r.is_point() || counted_var(sum, unit).valid()) return;
  const ExprId equal = pool_.eq(sum, pool_.constant(r.lo));
  if (pool_[equal].kind != Kind::Eq || truth_.contains(equal)) return;
  if (RewriteLog* steps = log()) steps->rewrote(base_, "bounds of one value", equal, pool_.constant(1));
  learn_simplified(equal);
}

namespace {

// Rounds the ends of a range of multiples of `divisor` inwards.
void round_to_multiples(Interval& range, int64_t divisor) {
  if (divisor <= 1 || range.empty()) return;
  if (range.lo != Interval::kNegInf) {
    range.lo = saturating_neg(saturating_mul(floor_div(saturating_neg(range.lo), divisor), divisor));
  }
  if (range.hi != Interval::kPosInf) range.hi = saturating_mul(floor_div(range.hi, divisor), divisor);
}

}  // namespace

VarId Facts::counted_var(ExprId monomial, int64_t& unit) {
  if (!monomial.valid()) return {};
  unit = is_unit(monomial) ? pool_.const_value(pool_.operands(monomial)[1]) : 1;
  const ExprId x = unit == 1 ? monomial : pool_.operands(monomial)[0];
  return pool_.is_var(x) ? pool_.var_of(x) : VarId{};
}

// Records sum <= bound without consequences.
void Facts::set_bound(ExprId sum, int64_t bound) {
  TermList terms;
  pool_.terms(sum, terms);
  changed();
  int64_t unit = 1;
  if (const VarId var = counted_var(terms[0].monomial, unit); terms.size() == 1 && var.valid()) {
    Interval& r = info(var).range;
    if (terms[0].coefficient > 0) {
      r.hi = std::min(r.hi, saturating_mul(unit, floor_div(bound, terms[0].coefficient)));
    } else {
      const int64_t least = saturating_neg(floor_div(bound, saturating_neg(terms[0].coefficient)));
      r.lo = std::max(r.lo, saturating_mul(unit, least));
    }
    round_to_multiples(r, known_multiple(pool_.var(var)));
    return;
  }
  Interval& above = sum_range_[sum];
  above.hi = std::min(above.hi, bound);
  Interval& below = sum_range_[pool_.neg(sum)];
  below.lo = std::max(below.lo, saturating_neg(bound));
  if (terms.size() > 1) bounds_.push_back({sum, bound});
}

void Facts::learn_bound(ExprId sum, int64_t bound) {
  set_bound(sum, bound);
  TermList terms;
  pool_.terms(sum, terms);
  const ExprId positive = terms.size() == 1 && terms[0].coefficient < 0 ? pool_.neg(sum) : sum;
  apply_exclusions(positive);
  int64_t unit = 1;
  if (const VarId var = counted_var(positive, unit); var.valid()) {
    if (info(var).range.is_point()) refresh(var);
    return;
  }
  propagate_bound(sum, bound);
}

// Derives bounds of single variables from sum <= bound and the ranges of the remaining terms.
void Facts::propagate_bound(ExprId sum, int64_t bound) {
  TermList terms;
  pool_.terms(sum, terms);
  for (const Term& term : terms) {
    const ExprId alone = pool_.scaled(term.monomial, term.coefficient);
    const Interval others = range_of(pool_.sub(sum, alone));
    if (others.lo == Interval::kNegInf) continue;
    const int64_t limit = saturating_add(bound, saturating_neg(others.lo));  // of coefficient * monomial
    int64_t unit = 1;
    if (const VarId var = counted_var(term.monomial, unit); var.valid()) {
      if (info(var).role == Role::Index) continue;
      learn(pool_.le(alone, pool_.constant(limit)));
    } else if (term.coefficient < 0 && limit < 0 && pool_[term.monomial].kind == Kind::Mul) {
      // the product is positive: if no factor is negative, every factor is positive
      ExprList factors;
      factors.assign(pool_.factors(term.monomial));
      bool none_negative = true;
      for (const ExprId f : factors) none_negative = none_negative && range_of(f).lo >= 0;
      if (!none_negative) continue;
      for (const ExprId f : factors) learn(pool_.ge(f, pool_.constant(1)));
    }
  }
}

void Facts::replace_var(VarId var, ExprId by) {
  VarInfo& v = info(var);
  const Interval range = v.range;
  v.replacement = by;
  changed();
  if (range.lo != Interval::kNegInf) learn(pool_.ge(by, pool_.constant(range.lo)));
  if (range.hi != Interval::kPosInf) learn(pool_.le(by, pool_.constant(range.hi)));
  learn(pool_.eq(pool_.mod(by, pool_.constant(known_multiple(pool_.var(var)))), pool_.constant(0)));
  refresh(var);
}

// sum == value becomes a rewrite rule for its largest monomial when all other monomials are smaller. This order makes
// rewriting terminate. Of quotients, those by less are larger: 2 * ((h + 7)//8) == (h + 3)//4 replaces (h + 3)//4.
// Units are smallest, since their variables are written in them.
bool Facts::replace_monomial(ExprId sum, int64_t value) {
  TermList terms;
  pool_.terms(sum, terms);
  const auto divisor = [this](ExprId e) {
    if (is_unit(e)) return Interval::kPosInf;
    const bool by_constant = pool_[e].kind == Kind::FloorDiv && pool_.is_const(pool_.operands(e)[1]);
    return by_constant ? pool_.const_value(pool_.operands(e)[1]) : 1;
  };
  const auto smaller = [&](ExprId a, ExprId b) {
    if (pool_[a].weight != pool_[b].weight) return pool_[a].weight < pool_[b].weight;
    return divisor(a) != divisor(b) ? divisor(a) > divisor(b) : a < b;
  };
  const Term* largest = &terms[0];
  for (const Term& term : terms) {
    if (smaller(largest->monomial, term.monomial)) largest = &term;
  }
  const ExprId key = largest->monomial;
  if ((largest->coefficient != 1 && largest->coefficient != -1) || pool_.is_var(key)) return false;
  const ExprId rest = pool_.sub(pool_.constant(value), pool_.sub(sum, pool_.scaled(key, largest->coefficient)));
  monomial_replacement_[key] = largest->coefficient == 1 ? rest : pool_.neg(rest);
  if (pool_[key].kind == Kind::Mul) product_keys_.push_back(key);
  changed();
  return true;
}

// x mod c == 0. In canonical form a single term of x has a coefficient prime to c, so c divides its monomial. If the
// monomial is y // d and d divides y, then c*d divides y.
void Facts::learn_divisibility(ExprId mod) {
  const ExprId x = pool_.operands(mod)[0], c = pool_.operands(mod)[1];
  TermList terms;
  pool_.terms(x, terms);
  if (!pool_.is_const(c) || terms.size() != 1 || gcd(terms[0].coefficient, pool_.const_value(c)) != 1) return;
  ExprId monomial = terms[0].monomial;
  for (int64_t divisor = pool_.const_value(c); monomial.valid();) {
    int64_t& known = multiple_.try_emplace(monomial, 1).first->second;
    const int64_t combined = saturating_mul(known / gcd(known, divisor), divisor);
    if (combined != Interval::kPosInf) known = combined;
    changed();
    const ExprId quotient = std::exchange(monomial, ExprId{});
    if (pool_.is_var(quotient)) {
      const VarId var = pool_.var_of(quotient);
      round_to_multiples(info(var).range, known);
      // Replacements made with the old units would lead back to them, in cycles which double a coefficient each time.
      std::erase_if(monomial_replacement_, [&](const auto& entry) {
        return pool_.uses_var(entry.first, var) || pool_.uses_var(entry.second, var);
      });
      std::erase_if(product_keys_, [this](ExprId key) { return !monomial_replacement_.contains(key); });
      refresh(var);
    } else if (pool_[quotient].kind == Kind::FloorDiv && pool_.is_const(pool_.operands(quotient)[1])) {
      const int64_t d = pool_.const_value(pool_.operands(quotient)[1]);
      divisor = saturating_mul(known, d);
      if (known_multiple(pool_.operands(quotient)[0]) % d == 0) monomial = pool_.operands(quotient)[0];
    }
  }
}

// `replaced` no longer occurs in canonical forms. Conditions on expressions with `replaced` are learned again without
// it.
void Facts::refresh(VarId replaced) {
  std::vector<ExprId> affected;
  std::erase_if(conditions_, [&](ExprId condition) {
    if (!pool_.uses_var(condition, replaced)) return false;
    affected.push_back(condition);
    return true;
  });
  for (const ExprId condition : affected) learn(condition);
}

}  // namespace cresset::sym
