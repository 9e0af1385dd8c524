// Floor division and remainder. No rule here assumes a non-zero symbolic divisor; Facts has the rules with this
// assumption.
#include <limits>

#include "sym/arith.h"
#include "sym/expr.h"

namespace cresset::sym {
namespace {

struct Split {
  TermList quotient, remainder;  // dividend == divisor * quotient + remainder
  int64_t constant = 0;          // of the remainder, not in the list; in [0, divisor)
  int64_t common = 0;            // gcd of the divisor and the remainder's coefficients
};

// Coefficients are divided towards zero, so that -x stays -x. The constant is divided down.
void split_terms(const TermList& dividend, int64_t divisor, Split& out) {
  out.common = divisor;
  for (const Term& term : dividend) {
    const bool is_constant = !term.monomial.valid();
    const int64_t q = is_constant ? floor_div(term.coefficient, divisor) : term.coefficient / divisor;
    const int64_t r = term.coefficient - q * divisor;
    if (q != 0) out.quotient.push_back({term.monomial, q});
    if (is_constant) {
      out.constant = r;
    } else if (r != 0) {
      out.remainder.push_back({term.monomial, r});
      out.common = gcd(out.common, r);
    }
  }
}

int64_t content(const TermList& terms) {
  int64_t g = 0;
  for (const Term& term : terms) g = gcd(g, term.coefficient);
  return g;
}

void divide_coefficients(TermList& terms, int64_t by) {
  for (Term& term : terms) term.coefficient /= by;
}

}  // namespace

ExprId ExprPool::make_floor_div(ExprId a, ExprId b) {
  if (is_const(b)) {
    const int64_t c = exprs_[b.index].value;
    if (c > 0) return divide_by_constant(a, c);
    if (c < 0 && c != std::numeric_limits<int64_t>::min()) return divide_by_constant(neg(a), -c);
    const ExprId operands[] = {a, b};
    return intern(Kind::FloorDiv, operands, 0);
  }
  TermList dividend, divisor;
  terms(a, dividend);
  terms(b, divisor);
  int64_t g = gcd(content(dividend), content(divisor));
  if (divisor[0].coefficient < 0) g = -g;  // a // b == (-a) // (-b)
  if (g != 1) {
    divide_coefficients(dividend, g);
    divide_coefficients(divisor, g);
    a = from_terms(dividend);
    b = from_terms(divisor);
    if (is_const(b)) return floor_div(a, b);
  }
  const ExprId operands[] = {a, b};
  return intern(Kind::FloorDiv, operands, 0);
}

// a = c*q + r: q + r // c, where
//   (g*r + k) // (g*c)   ->  (r + k // g) // c
//   (x // d + k) // c    ->  (x + k*d) // (c*d)         for c > 0
//   (x mod (d*c)) // c   ->  (x // c) mod d             for c, d > 0
//   (-x) // c            ->  -((x + c - 1) // c)        so that rounding up has a unique form
ExprId ExprPool::divide_by_constant(ExprId a, int64_t c) {
  if (c == 1) return a;
  TermList dividend;
  terms(a, dividend);
  Split split;
  split_terms(dividend, c, split);
  const ExprId quotient = from_terms(split.quotient);
  TermList& rest = split.remainder;
  if (rest.empty()) return quotient;
  divide_coefficients(rest, split.common);
  const int64_t k = split.constant / split.common;
  c /= split.common;
  const bool one_atom = rest.size() == 1 && rest[0].coefficient == 1;
  const Kind kind = exprs_[rest[0].monomial.index].kind;
  if (one_atom && kind == Kind::FloorDiv) {
    const ExprId x = operands(rest[0].monomial)[0], d = operands(rest[0].monomial)[1];
    return add(quotient, floor_div(add(x, mul(d, constant(k))), mul(d, constant(c))));
  }
  if (one_atom && kind == Kind::Mod && k == 0) {
    const ExprId x = operands(rest[0].monomial)[0], m = operands(rest[0].monomial)[1];
    if (is_const(m) && exprs_[m.index].value > 0 && exprs_[m.index].value % c == 0) {
      const ExprId d = constant(exprs_[m.index].value / c);
      return add(quotient, mod(divide_by_constant(x, c), d));
    }
  }
  if (rest[0].coefficient < 0) {
    divide_coefficients(rest, -1);
    rest.push_back({ExprId{}, c - 1 - k});
    return sub(quotient, divide_by_constant(from_terms(rest), c));
  }
  if (k != 0) rest.push_back({ExprId{}, k});
  const size_t count = rest.size();
  const ExprId inner = from_terms(rest);
  TermList joined;
  terms(inner, joined);  // x - x % c is c*(x // c)
  if (joined.size() < count) return add(quotient, divide_by_constant(inner, c));
  const ExprId operands[] = {inner, constant(c)};
  return add(quotient, intern(Kind::FloorDiv, operands, 0));
}

ExprId ExprPool::ceil_div(ExprId a, ExprId b) { return neg(floor_div(neg(a), b)); }

ExprId ExprPool::make_mod(ExprId a, ExprId b) {
  if (is_const(b)) {
    const int64_t c = exprs_[b.index].value;
    if (c > 0) return modulo_constant(a, c);
    if (c < 0 && c != std::numeric_limits<int64_t>::min()) return neg(modulo_constant(neg(a), -c));
    const ExprId operands[] = {a, b};
    return intern(Kind::Mod, operands, 0);
  }
  TermList dividend, divisor;
  terms(a, dividend);
  terms(b, divisor);
  int64_t g = gcd(content(dividend), content(divisor));
  if (divisor[0].coefficient < 0) g = -g;  // a mod b == -((-a) mod (-b))
  if (g == 1) {
    const ExprId operands[] = {a, b};
    return intern(Kind::Mod, operands, 0);
  }
  divide_coefficients(dividend, g);
  divide_coefficients(divisor, g);
  return mul(constant(g), mod(from_terms(dividend), from_terms(divisor)));
}

// a = c*q + r: r mod c, where
//   (g*r + k) mod (g*c)           ->  g*((r + k // g) mod c) + k mod g
//   (k*(z mod d) + r) mod c       ->  (k*z + r) mod c        when c divides k*d
ExprId ExprPool::modulo_constant(ExprId a, int64_t c) {
  if (c == 1) return constant(0);
  TermList dividend;
  terms(a, dividend);
  for (size_t i = 0; i < dividend.size(); ++i) {
    const Term term = dividend[i];
    if (!term.monomial.valid() || exprs_[term.monomial.index].kind != Kind::Mod) continue;
    const ExprId z = operands(term.monomial)[0], d = operands(term.monomial)[1];
    if (!is_const(d) || exprs_[d.index].value == 0) continue;
    if (static_cast<__int128>(term.coefficient) * exprs_[d.index].value % c != 0) continue;
    dividend.erase_at(i);
    terms(mul(z, constant(term.coefficient)), dividend);
    return modulo_constant(from_terms(dividend), c);
  }
  Split split;
  split_terms(dividend, c, split);
  TermList& rest = split.remainder;
  if (rest.empty()) return constant(split.constant);
  const int64_t g = split.common;
  divide_coefficients(rest, g);
  if (split.constant / g != 0) rest.push_back({ExprId{}, split.constant / g});
  const ExprId operands[] = {from_terms(rest), constant(c / g)};
  const ExprId digit = intern(Kind::Mod, operands, 0);
  return add(mul(digit, constant(g)), constant(split.constant % g));
}

}  // namespace cresset::sym
