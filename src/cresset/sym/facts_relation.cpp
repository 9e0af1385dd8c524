// Conditions: proved, refuted, or simplified.
#include "sym/arith.h"
#include "sym/facts.h"

namespace cresset::sym {

std::optional<bool> Facts::decide_equality(ExprId sum, int64_t value) {
  const Interval r = range_of(sum);
  if (!r.contains(value)) return false;
  if (r.is_point()) return true;
  TermList terms;
  pool_.terms(sum, terms);
  int64_t common = 0;
  for (const Term& term : terms) {
    common = gcd(common, saturating_mul(term.coefficient, known_multiple(term.monomial)));
  }
  if (common > 1 && common != Interval::kPosInf && value % common != 0) return false;
  const ExprId negated = pool_.neg(sum);
  // If sum <= value has no proof, sum < value has none. Most equalities have neither, and each search is expensive.
  if (!prover_.prove(sum, value)) {
    if (prover_.prove(negated, saturating_add(saturating_neg(value), -1))) return false;
    return std::nullopt;
  }
  if (prover_.prove(negated, saturating_neg(value))) return true;
  if (prover_.prove(sum, saturating_add(value, -1))) return false;
  return std::nullopt;
}

ExprId Facts::simplify_relation(ExprId e) {
  const Kind kind = pool_[e].kind;
  const ExprId sum = pool_.operands(e)[0];
  const int64_t bound = pool_.const_value(pool_.operands(e)[1]);
  if (kind == Kind::Le) {
    if (prover_.prove(sum, bound)) return pool_.constant(1);
    if (prover_.prove(pool_.neg(sum), saturating_add(saturating_neg(bound), -1))) return pool_.constant(0);
  } else if (const std::optional<bool> equal = decide_equality(sum, bound)) {
    return pool_.constant(*equal == (kind == Kind::Eq));
  }
  return cancel_relation_factor(e);
}

// z*t == 0 -> t == 0 for z != 0;  z*t <= 0 and z*t < 0 likewise for z > 0.
ExprId Facts::cancel_relation_factor(ExprId e) {
  const Kind kind = pool_[e].kind;
  const int64_t bound = pool_.const_value(pool_.operands(e)[1]);
  if (bound != 0 && !(kind == Kind::Le && bound == -1)) return e;
  TermList terms;
  pool_.terms(pool_.operands(e)[0], terms);
  ExprList candidates;
  candidates.assign(pool_.factors(terms[0].monomial));
  if (terms.size() == 1 && candidates.size() == 1) return e;
  for (const ExprId factor : candidates) {
    TermList divided;
    bool everywhere = true;
    for (const Term& term : terms) {
      ExprId rest;
      everywhere = everywhere && pool_.monomial_quotient(term.monomial, factor, rest);
      divided.push_back({rest, term.coefficient});
    }
    if (!everywhere) continue;
    if (kind == Kind::Le ? range_of(factor).lo < 1 : !nonzero(factor)) continue;
    const ExprId sum = pool_.from_terms(divided), limit = pool_.constant(bound);
    if (kind == Kind::Le) return pool_.le(sum, limit);
    return kind == Kind::Eq ? pool_.eq(sum, limit) : pool_.ne(sum, limit);
  }
  return e;
}

}  // namespace cresset::sym
