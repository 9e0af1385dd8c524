// Sums: canonical order, like terms, quotient and remainder joined.
#include <algorithm>
#include <vector>

#include "sym/arith.h"
#include "sym/expr.h"

namespace cresset::sym {

Term ExprPool::term_of(ExprId id) const {
  const Expr& e = exprs_[id.index];
  if (e.kind == Kind::Const) return {ExprId{}, e.value};
  if (e.kind == Kind::Mul) return {e.monomial, e.value};
  return {id, 1};
}

void ExprPool::terms(ExprId id, TermList& out) const {
  if (exprs_[id.index].kind != Kind::Add) {
    const Term term = term_of(id);
    if (term.coefficient != 0) out.push_back(term);
    return;
  }
  for (const ExprId operand : operands(id)) out.push_back(term_of(operand));
}

void ExprPool::collect(TermList& terms) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.monomial < b.monomial; });
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    Term term = terms[i++];
    while (i < terms.size() && terms[i].monomial == term.monomial) {
      term.coefficient = saturating_add(term.coefficient, terms[i++].coefficient);
    }
    if (term.coefficient != 0) terms[kept++] = term;
  }
  terms.truncate(kept);
}

ExprId ExprPool::scaled(ExprId monomial, int64_t coefficient) {
  if (!monomial.valid() || coefficient == 0) return constant(coefficient);
  if (coefficient == 1) return monomial;
  const ExprId number = constant(coefficient);
  ExprList operands;
  operands.push_back(number);
  for (const ExprId factor : factors(monomial)) operands.push_back(factor);
  const ExprId id = intern(Kind::Mul, operands, coefficient);
  exprs_[id.index].monomial = monomial;
  return id;
}

ExprId ExprPool::build_sum(const TermList& collected) {
  if (collected.empty()) return constant(0);
  if (collected.size() == 1) return scaled(collected[0].monomial, collected[0].coefficient);
  ExprList operands;
  for (const Term& term : collected) operands.push_back(scaled(term.monomial, term.coefficient));
  return intern(Kind::Add, operands, 0);
}

ExprId ExprPool::sum_of_collected(TermList& collected) {
  while (join_remainders(collected, [this](ExprId b) { return is_const(b) && !is_const(b, 0); })) {
  }
  return build_sum(collected);
}

ExprId ExprPool::from_terms(TermList& terms) {
  collect(terms);
  return sum_of_collected(terms);
}

// out = a + b_scale * b, collected: a merge of two sorted lists.
void ExprPool::combine(ExprId a, ExprId b, int64_t b_scale, TermList& out) const {
  const ExprId only_a[] = {a}, only_b[] = {b};
  const auto list = [this](ExprId id, std::span<const ExprId> alone) {
    return exprs_[id.index].kind == Kind::Add ? operands(id) : alone;
  };
  const std::span<const ExprId> left = list(a, only_a), right = list(b, only_b);
  const auto push = [&out](Term term) {
    if (term.coefficient != 0) out.push_back(term);
  };
  size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    if (j == right.size()) {
      push(term_of(left[i++]));
      continue;
    }
    Term from_b = term_of(right[j]);
    from_b.coefficient = saturating_mul(from_b.coefficient, b_scale);
    if (i == left.size()) {
      push(from_b), ++j;
      continue;
    }
    const Term from_a = term_of(left[i]);
    if (from_a.monomial == from_b.monomial) {
      push({from_a.monomial, saturating_add(from_a.coefficient, from_b.coefficient)}), ++i, ++j;
    } else if (from_a.monomial < from_b.monomial) {
      push(from_a), ++i;
    } else {
      push(from_b), ++j;
    }
  }
}

ExprId ExprPool::make_add(ExprId a, ExprId b) {
  if (is_const(a, 0)) return b;
  if (is_const(b, 0)) return a;
  TermList terms;
  combine(a, b, 1, terms);
  return sum_of_collected(terms);
}

ExprId ExprPool::make_sub(ExprId a, ExprId b) {
  if (a == b) return constant(0);
  if (is_const(b, 0)) return a;
  TermList terms;
  combine(a, b, -1, terms);
  return sum_of_collected(terms);
}

ExprId ExprPool::neg(ExprId a) { return mul(a, constant(-1)); }

ExprId ExprPool::sum(std::span<const ExprId> summands) {
  TermList all;
  for (const ExprId e : summands) terms(e, all);
  return from_terms(all);
}

bool ExprPool::constant_difference(ExprId a, ExprId b, int64_t& out) const {
  TermList terms;
  combine(a, b, -1, terms);
  out = terms.empty() ? 0 : terms[0].coefficient;
  return terms.empty() || !terms[0].monomial.valid();
}

ExprId ExprPool::quotient_of(ExprId mod) {
  if (const auto it = quotients_.find(mod); it != quotients_.end()) return it->second;
  const ExprId quotient = floor_div(operands(mod)[0], operands(mod)[1]);
  quotients_.emplace(mod, quotient);
  return quotient;
}

namespace {

// The last rule of join_one, for term i = k*rest*mod. Constants in y need no partner.
bool cancel_dividend(ExprPool& pool, TermList& terms, size_t i, ExprId mod, ExprId quotient, ExprId rest) {
  const int64_t k = terms[i].coefficient;
  const ExprId y = pool.operands(mod)[0], b = pool.operands(mod)[1];
  TermList dividend, kept;
  pool.terms(y, dividend);
  std::vector<bool> gone(terms.size());
  gone[i] = true;
  for (const Term& part : dividend) {
    const int64_t scale = saturating_mul(k, part.coefficient);
    if (!part.monomial.valid()) {
      kept.push_back({rest, scale});
      continue;
    }
    const ExprId monomial = pool.monomial_product(rest, part.monomial);
    size_t j = 0;
    while (j < terms.size() && !(terms[j].monomial == monomial && terms[j].coefficient == saturating_neg(scale))) ++j;
    if (j == terms.size()) return false;
    gone[j] = true;
  }
  pool.terms(pool.mul(pool.scaled(rest, saturating_neg(k)), pool.mul(b, quotient)), kept);
  for (size_t j = 0; j < terms.size(); ++j)
    if (!gone[j]) kept.push_back(terms[j]);
  terms.assign(kept);
  return true;
}

}  // namespace

// With mod = Mod(y, b) a factor of term i = k * m * Mod(y, b), and q = y // b:
//   k*m*(y mod b) + k*m*b*q           ->  k*m*y
//   k*m*(y mod b) + k*m*b*(q mod c)   ->  k*m*(y mod (b*c))
//   k*m*(y mod b) - k*m*y             ->  -k*m*b*q         shows that a size padded to a multiple of b is a multiple
// The rules are sound where b != 0, which the caller ensures.
bool ExprPool::join_one(TermList& terms, size_t i, ExprId mod, const Divisors* positive) {
  const Term term = terms[i];
  const ExprId y = operands(mod)[0], b = operands(mod)[1];
  if (exprs_[b.index].kind == Kind::Add) return false;
  const ExprId quotient = quotient_of(mod);
  if (is_const(quotient) || exprs_[quotient.index].kind == Kind::Add) return false;
  const ExprId q = exprs_[quotient.index].monomial;
  const Term divisor = term_of(b);
  ExprId rest;
  if (!monomial_quotient(term.monomial, mod, rest)) return false;
  const ExprId outer = monomial_product(rest, divisor.monomial);
  const auto radix = [&](ExprId x) { return is_const(x) || (positive != nullptr && (*positive)(x)); };
  int64_t coefficient = saturating_mul(term.coefficient, divisor.coefficient);
  coefficient = saturating_mul(coefficient, term_of(quotient).coefficient);
  for (size_t j = 0; j < terms.size(); ++j) {
    if (j == i || terms[j].coefficient != coefficient || !terms[j].monomial.valid()) continue;
    ExprId digit;
    if (!monomial_quotient(terms[j].monomial, outer, digit) || !digit.valid()) continue;
    ExprId joined = y;
    const Expr& d = exprs_[digit.index];
    if (digit != q) {
      if (quotient != q || d.kind != Kind::Mod || operands(digit)[0] != q || !radix(b) || !radix(operands(digit)[1]))
        continue;
      joined = this->mod(y, mul(b, operands(digit)[1]));
    }
    const ExprId replacement = mul(scaled(rest, term.coefficient), joined);
    terms.erase_at(std::max(i, j));
    terms.erase_at(std::min(i, j));
    this->terms(replacement, terms);
    collect(terms);
    return true;
  }
  if (!cancel_dividend(*this, terms, i, mod, quotient, rest)) return false;
  collect(terms);
  return true;
}

}  // namespace cresset::sym
