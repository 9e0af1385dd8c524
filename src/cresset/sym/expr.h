// Symbolic 64-bit integers and relations between them. Expressions are hash-consed: in one pool, equal structure means
// equal id.
//
// Semantics. Every expression is an int64; a relation or boolean is 0 or 1. Sizes never overflow, because a tensor
// whose numel overflows cannot exist. Arithmetic is therefore the arithmetic of the integers. FloorDiv rounds down and
// Mod takes the sign of the divisor, as in Python. A division by zero has no value, and rules assume a non-zero divisor
// only where ranges prove it.
//
// The builder functions keep expressions in canonical form, so equality of ids is equality of polynomials:
//   Add: >= 2 operands, each a Const (at most one, last) or Mul or atom. Like terms are collected, and terms are sorted
//        by the id of the term's monomial (the term without its constant factor).
//   Mul: >= 2 operands, at most one Const (first; never 0 or 1), the rest atoms sorted by id. Products distribute over
//        sums, unless the result would have more than kMaxProductTerms terms; then the sums stay factors.
//   FloorDiv, Mod: a constant divisor is > 1 (or 0, kept as written) and shares no factor with the dividend's
//        coefficients. Each coefficient is smaller than the divisor; the dividend's constant is in [0, divisor).
//        q*b + (a mod b) with q = a // b is a.
//   Relations: Le, Eq, Ne of a sum without constant, its coefficients coprime, against a Const. a < b is a - b <= -1:
//        there are no Lt nodes. Eq and Ne start with a positive coefficient. Not is pushed inwards: there are no Not
//        nodes.
//   And, Or: >= 2 boolean operands, flattened, sorted, distinct.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "sym/small_vector.h"

namespace cresset::sym {

enum class Kind : uint8_t {
#define CRESSET_SYM_KIND(name, text) name,
#include "sym/kinds.def"
#undef CRESSET_SYM_KIND
};

using ExprId = Id<struct ExprTag>;
using VarId = Id<struct VarTag>;

struct Expr {
  Kind kind;
  bool has_mod = false;  // the expression contains a Mod, or a product with a Mod
  uint16_t depth = 0;    // longest path to a leaf; saturates
  uint32_t weight = 1;   // number of nodes of the expression as a tree; saturates
  uint32_t hash = 0;
  uint32_t first = 0;  // operands: pool storage [first, first + count)
  uint32_t count = 0;
  ExprId monomial;        // Mul: the product without its Const; other kinds: the node itself
  int64_t value = 0;      // Const: the number; Var: the VarId's index; Mul: its Const, or 1
  uint64_t var_mask = 0;  // bit (index mod 64) of each variable inside, for a quick negative answer
};

// A term of a sum: coefficient * monomial. An invalid monomial stands for 1 and sorts last.
struct Term {
  ExprId monomial;
  int64_t coefficient = 0;
};
using TermList = SmallVector<Term, 24>;
using ExprList = SmallVector<ExprId, 24>;

class RewriteLog;

// Owns expressions as nodes: structurally equal nodes have one id. Not thread-safe: a table belongs to a single
// compilation.
class ExprTable {
 public:
  ExprTable();

  const Expr& operator[](ExprId id) const { return exprs_[id.index]; }
  std::span<const ExprId> operands(ExprId id) const {
    const Expr& e = exprs_[id.index];
    return {operands_.data() + e.first, e.count};
  }
  size_t size() const { return exprs_.size(); }

  ExprId constant(int64_t value) {
    const uint64_t place = static_cast<uint64_t>(value) - static_cast<uint64_t>(kLeastSmall);
    if (place >= kSmallCount) return intern(Kind::Const, {}, value);
    if (!small_[place].valid()) small_[place] = intern(Kind::Const, {}, value);
    return small_[place];
  }
  ExprId var(VarId var);
  VarId new_var() { return VarId{next_var_++}; }
  uint32_t var_count() const { return next_var_; }

  bool is_const(ExprId id) const { return exprs_[id.index].kind == Kind::Const; }
  bool is_const(ExprId id, int64_t value) const { return is_const(id) && exprs_[id.index].value == value; }
  bool is_var(ExprId id) const { return exprs_[id.index].kind == Kind::Var; }
  int64_t const_value(ExprId id) const;  // CHECKs is_const
  VarId var_of(ExprId id) const;         // CHECKs is_var
  // Appends each distinct variable of `id` to `out`.
  void collect_vars(ExprId id, std::vector<VarId>& out) const;
  bool uses_var(ExprId id, VarId var) const;
  // Returns the atoms of a monomial, sorted, with repetition. An invalid monomial has no atoms.
  std::span<const ExprId> factors(const ExprId& monomial) const;

 protected:
  ExprId intern(Kind kind, std::span<const ExprId> operands, int64_t value);  // operands: not the table's storage

  std::vector<Expr> exprs_;

 private:
  void grow_table();

  std::vector<ExprId> operands_;
  struct Slot {
    uint32_t hash = 0, index = 0;  // index + 1, 0 when free; the hash is stored here so that a miss reads no node
  };
  std::vector<Slot> table_;  // open addressing over exprs_
  // Ids of the small constants that sizes use most, filled on first use.
  static constexpr int64_t kLeastSmall = -1, kSmallCount = 66;
  std::array<ExprId, kSmallCount> small_;
  uint32_t next_var_ = 0;
};

// Arithmetic on expressions. Every result is canonical, so equal results of these rules have one id.
class ExprPool : public ExprTable {
 public:
  // Sets the log of steps for validation; nullptr disables logging. The log outlives the pool.
  void set_log(RewriteLog* log) { log_ = log; }
  RewriteLog* log() const { return log_; }

  ExprId add(ExprId a, ExprId b);
  ExprId sub(ExprId a, ExprId b);
  ExprId neg(ExprId a);
  ExprId mul(ExprId a, ExprId b);
  ExprId floor_div(ExprId a, ExprId b);  // structural simplification only; ShapeEnv::simplify uses ranges
  ExprId ceil_div(ExprId a, ExprId b);   // -((-a) // b)
  ExprId mod(ExprId a, ExprId b);
  ExprId min(ExprId a, ExprId b);
  ExprId max(ExprId a, ExprId b);
  ExprId sum(std::span<const ExprId> terms);
  ExprId product(std::span<const ExprId> factors);

  ExprId eq(ExprId a, ExprId b);
  ExprId ne(ExprId a, ExprId b);
  ExprId lt(ExprId a, ExprId b);
  ExprId le(ExprId a, ExprId b);
  ExprId gt(ExprId a, ExprId b) { return lt(b, a); }
  ExprId ge(ExprId a, ExprId b) { return le(b, a); }
  ExprId logical_and(ExprId a, ExprId b);
  ExprId logical_or(ExprId a, ExprId b);
  ExprId logical_not(ExprId a);

  static constexpr size_t kMaxProductTerms = 64;

  // Rebuilds `id` with variables replaced. Variables without an entry in `replacement` are kept. The result is
  // canonical.
  ExprId substitute(ExprId id, const std::unordered_map<VarId, ExprId>& replacement);

  // id == coefficient * var + rest, where neither `coefficient` nor `rest` mentions var. affine_in() returns false when
  // `id` is not affine in var.
  struct Affine {
    ExprId coefficient;
    ExprId rest;
  };
  bool affine_in(ExprId id, VarId var, Affine& out);

  // The polynomial view of an expression. terms() appends in canonical order; from_terms() accepts any order.
  void terms(ExprId id, TermList& out) const;
  ExprId from_terms(TermList& terms);
  ExprId scaled(ExprId monomial, int64_t coefficient);  // coefficient * monomial
  ExprId monomial_product(ExprId a, ExprId b);
  // Computes the monomial a / b. Returns false when b does not divide a.
  bool monomial_quotient(ExprId a, ExprId b, ExprId& out);
  // Computes a - b. Returns false when the difference is not a constant.
  bool constant_difference(ExprId a, ExprId b, int64_t& out) const;
  bool is_boolean(ExprId id) const;
  // Joins quotient and remainder, q*b + (a mod b) -> a, for divisors that `nonzero` accepts. Joins two remainders, b*(q
  // mod c) + (a mod b) -> a mod (b*c), for constants and for divisors that `positive` accepts. Returns true when it
  // changed `terms`. The terms must be collected on entry and are collected on return.
  using Divisors = std::function<bool(ExprId)>;
  template <class NonZero>
  bool join_remainders(TermList& terms, NonZero&& nonzero, const Divisors* positive = nullptr);

 private:
  Term term_of(ExprId id) const;
  static void collect(TermList& terms);  // sorts, adds like terms, drops zeros
  ExprId make_add(ExprId a, ExprId b);
  ExprId make_sub(ExprId a, ExprId b);
  ExprId make_mul(ExprId a, ExprId b);
  ExprId make_floor_div(ExprId a, ExprId b);
  ExprId make_mod(ExprId a, ExprId b);
  ExprId make_not(ExprId a);
  ExprId build_sum(const TermList& collected);
  ExprId sum_of_collected(TermList& collected);
  void combine(ExprId a, ExprId b, int64_t b_scale, TermList& out) const;
  ExprId distribute(ExprId a, ExprId b);
  ExprId divide_by_constant(ExprId a, int64_t c);
  ExprId modulo_constant(ExprId a, int64_t c);
  ExprId extremum(Kind kind, ExprId a, ExprId b);
  ExprId relation(Kind kind, ExprId a, ExprId b, int64_t offset);  // a + offset (kind) b
  ExprId relation_of_boolean(Kind kind, ExprId boolean, bool negated, int64_t bound);
  ExprId junction(Kind kind, ExprId a, ExprId b);
  bool join_one(TermList& terms, size_t i, ExprId mod, const Divisors* positive);
  ExprId quotient_of(ExprId mod);  // returns y // b for y mod b

  std::unordered_map<ExprId, ExprId> quotients_;  // quotients of remainders, needed for every sum with a remainder
  RewriteLog* log_ = nullptr;
};

template <class NonZero>
bool ExprPool::join_remainders(TermList& terms, NonZero&& nonzero, const Divisors* positive) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!terms[i].monomial.valid() || !(*this)[terms[i].monomial].has_mod) continue;
    ExprList atoms;
    atoms.assign(factors(terms[i].monomial));
    for (const ExprId atom : atoms) {
      if ((*this)[atom].kind == Kind::Mod && nonzero(operands(atom)[1]) && join_one(terms, i, atom, positive))
        return true;
    }
  }
  return false;
}

// Printed names of variables. A variable with an empty name prints as "v<index>".
using VarNames = std::unordered_map<VarId, std::string>;
std::string to_string(const ExprPool& pool, ExprId id, const VarNames& names);

}  // namespace cresset::sym
