// Division under ranges: the index arithmetic of reshapes, and divisors known to be non-zero.
#include <algorithm>

#include "sym/arith.h"
#include "sym/facts.h"

namespace cresset::sym {
namespace {

constexpr int kDivisionSteps = 32;

ExprId pack(ExprPool& pool, bool is_mod, ExprId a, ExprId b) { return is_mod ? pool.mod(a, b) : pool.floor_div(a, b); }

size_t degree(const ExprPool& pool, ExprId monomial) { return pool.factors(monomial).size(); }

}  // namespace

// a == b*quotient + remainder, for the terms of `a` divisible by b's leading term. The identity holds for every result.
bool Facts::divide(ExprId a, ExprId b, ExprId& quotient, ExprId& remainder) {
  TermList divisor, found;
  pool_.terms(b, divisor);
  Term lead = divisor[0];
  for (const Term& term : divisor) {
    if (degree(pool_, term.monomial) > degree(pool_, lead.monomial)) lead = term;
  }
  remainder = a;
  for (int step = 0; step < kDivisionSteps; ++step) {
    TermList terms;
    pool_.terms(remainder, terms);
    Term part;
    for (const Term& term : terms) {
      if (term.coefficient % lead.coefficient != 0) continue;
      if (!pool_.monomial_quotient(term.monomial, lead.monomial, part.monomial)) continue;
      part.coefficient = term.coefficient / lead.coefficient;
      break;
    }
    if (part.coefficient == 0) break;
    found.push_back(part);
    remainder = pool_.sub(remainder, pool_.mul(pool_.scaled(part.monomial, part.coefficient), b));
  }
  quotient = pool_.from_terms(found);
  return !pool_.is_const(quotient, 0);
}

bool Facts::is_remainder(ExprId r, ExprId b) {
  if (range_of(r).lo < 0 && !prover_.prove(pool_.neg(r), 0)) return false;
  return prover_.prove(pool_.sub(r, b), -1);
}

ExprId Facts::simplify_division(ExprId e) {
  const bool is_mod = pool_[e].kind == Kind::Mod;
  const ExprId a = pool_.operands(e)[0], b = pool_.operands(e)[1];
  if (pool_.is_const(b, 0)) return e;
  ExprId quotient = pool_.constant(0), remainder = a;
  const bool divided = !pool_.is_const(b) && divide(a, b, quotient, remainder);
  if (is_remainder(remainder, b)) return is_mod ? remainder : quotient;
  if ((divided || pool_.is_const(a, 0)) && pool_.is_const(remainder, 0) && nonzero(b))
    return is_mod ? remainder : quotient;
  if (divided && !pool_.is_const(remainder, 0)) {  // the division by b stays, and has no value for b = 0
    const ExprId rest = pack(pool_, is_mod, remainder, b);
    return is_mod ? rest : pool_.add(quotient, rest);
  }
  if (is_mod && pool_.is_const(b)) {
    const Interval q = floor_div(range_of(a), Interval::point(pool_.const_value(b)));
    if (q.is_point()) return pool_.sub(a, pool_.mul(pool_.constant(q.lo), b));
  }
  if (const ExprId smaller = cancel_factor(a, b, is_mod); smaller.valid()) return smaller;
  if (const ExprId smaller = divide_by_part(a, b, is_mod); smaller.valid()) return smaller;
  if (const ExprId smaller = split_multiples(a, b, is_mod); smaller.valid()) return smaller;
  if (!is_mod && !pool_.is_const(b) && pool_[a].kind == Kind::FloorDiv && range_of(b).lo > 0) {
    const ExprId x = pool_.operands(a)[0], inner = pool_.operands(a)[1];  // (x // d) // b -> x // (d*b), for b > 0
    return pool_.floor_div(x, pool_.mul(inner, b));
  }
  return e;
}

// (z*x) // (z*y) -> x // y  and  (z*x) mod (z*y) -> z*(x mod y), for z != 0.
ExprId Facts::cancel_factor(ExprId a, ExprId b, bool is_mod) {
  TermList dividend, divisor;
  pool_.terms(a, dividend);
  pool_.terms(b, divisor);
  ExprList candidates;
  candidates.assign(pool_.factors(divisor[0].monomial));
  for (const ExprId z : candidates) {
    const auto divided = [&](const TermList& terms, TermList& out) {
      for (const Term& term : terms) {
        ExprId rest;
        if (!pool_.monomial_quotient(term.monomial, z, rest)) return false;
        out.push_back({rest, term.coefficient});
      }
      return true;
    };
    TermList x, y;
    if (!divided(dividend, x) || !divided(divisor, y) || !nonzero(z)) continue;
    const ExprId rest = pack(pool_, is_mod, pool_.from_terms(x), pool_.from_terms(y));
    return is_mod ? pool_.mul(z, rest) : rest;
  }
  return {};
}

// With b = p*n, n >= 0, and a = p*m + rest, 0 <= rest < p:  a // b -> m // n  and  a mod b -> p*(m mod n) + rest.
// Candidates for p are the common factors of b and a term of a.
ExprId Facts::divide_by_part(ExprId a, ExprId b, bool is_mod) {
  TermList dividend, divisor;
  pool_.terms(a, dividend);
  pool_.terms(b, divisor);
  if (divisor.size() != 1 || dividend.size() < 2) return {};
  ExprList tried;
  for (size_t i = 0; i < dividend.size(); ++i) {
    const Term part{common_monomial(dividend[i].monomial, divisor[0].monomial),
                    gcd(dividend[i].coefficient, divisor[0].coefficient)};
    const ExprId p = pool_.scaled(part.monomial, part.coefficient);
    if (p == b || pool_.is_const(p, 1) || std::find(tried.begin(), tried.end(), p) != tried.end()) continue;
    tried.push_back(p);
    TermList multiples, rest;
    for (const Term& term : dividend) {
      ExprId cofactor;
      if (term.coefficient % part.coefficient == 0 && pool_.monomial_quotient(term.monomial, part.monomial, cofactor)) {
        multiples.push_back({cofactor, term.coefficient / part.coefficient});
      } else {
        rest.push_back(term);
      }
    }
    ExprId other;
    if (!pool_.monomial_quotient(divisor[0].monomial, part.monomial, other)) continue;
    const ExprId n = pool_.scaled(other, divisor[0].coefficient / part.coefficient);
    const ExprId remainder = pool_.from_terms(rest);
    if (range_of(n).lo < 0 || !is_remainder(remainder, p)) continue;
    const ExprId reduced = pack(pool_, is_mod, pool_.from_terms(multiples), n);
    return is_mod ? pool_.add(pool_.mul(p, reduced), remainder) : reduced;
  }
  return {};
}

ExprId Facts::common_monomial(ExprId a, ExprId b) {
  ExprList left, right;
  left.assign(pool_.factors(a));
  right.assign(pool_.factors(b));
  ExprId out;
  for (size_t i = 0, j = 0; i < left.size() && j < right.size();) {
    if (left[i] == right[j]) {
      out = pool_.monomial_product(out, left[i]);
      ++i, ++j;
    } else {
      left[i] < right[j] ? ++i : ++j;
    }
  }
  return out;
}

// Terms known to be divisible by the constant c leave the division.
ExprId Facts::split_multiples(ExprId a, ExprId b, bool is_mod) {
  if (!pool_.is_const(b) || multiple_.empty()) return {};
  const int64_t c = pool_.const_value(b);
  TermList dividend, rest;
  pool_.terms(a, dividend);
  ExprId whole = pool_.constant(0);
  size_t split = 0;
  for (const Term& term : dividend) {
    if (!multiple_of(term, c)) {
      rest.push_back(term);
      continue;
    }
    ++split;
    if (!is_mod && dividend.size() > 1) {
      whole = pool_.add(whole, pool_.floor_div(pool_.scaled(term.monomial, term.coefficient), b));
    }
  }
  if (split == 0 || (!is_mod && dividend.size() == 1)) return {};
  const ExprId remaining = pack(pool_, is_mod, pool_.from_terms(rest), b);
  return is_mod ? remaining : pool_.add(whole, remaining);
}

int64_t Facts::known_multiple(ExprId monomial) {
  if (!monomial.valid() || multiple_.empty()) return 1;
  const auto lookup = [this](ExprId e) {
    const auto it = multiple_.find(e);
    return it == multiple_.end() ? int64_t{1} : it->second;
  };
  int64_t product = 1;
  for (const ExprId factor : pool_.factors(monomial)) product = saturating_mul(product, lookup(factor));
  return std::max(product, lookup(monomial));
}

bool Facts::is_unit(ExprId e) {
  if (pool_[e].kind != Kind::FloorDiv || multiple_.empty()) return false;
  const ExprId x = pool_.operands(e)[0], n = pool_.operands(e)[1];
  if (!pool_.is_var(x) || !pool_.is_const(n)) return false;
  const VarInfo& v = info(pool_.var_of(x));
  return v.role != Role::Index && !v.replacement.valid() && known_multiple(x) == pool_.const_value(n);
}

bool Facts::multiple_of(const Term& term, int64_t divisor) {
  const int64_t multiple = known_multiple(term.monomial);
  return static_cast<__int128>(term.coefficient) * multiple % divisor == 0 && multiple != Interval::kPosInf;
}

}  // namespace cresset::sym
