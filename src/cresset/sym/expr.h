// Symbolic 64-bit integers and facts about them, hash-consed: equal structure <=> equal id, in one pool.
//
// Semantics. Every expression is an int64; a relation or boolean is 0 or 1. Sizes never overflow (a tensor whose numel
// overflows cannot exist), so arithmetic is that of the integers. FloorDiv rounds down and Mod takes the sign of the
// divisor, as in Python; dividing by zero has no value, and rules never assume a divisor is non-zero unless ranges
// prove it.
//
// Canonical form, kept by the builder functions, so that equality of ids is equality of polynomials:
//   Add: >= 2 operands, each a Const (at most one, last) or Mul or atom, sorted by id, like terms collected.
//   Mul: >= 2 operands, at most one Const (first; never 0 or 1), the rest atoms sorted by id; products distribute
//        over sums.
//   Relations: Lt/Le/Eq/Ne against canonical differences (constant on the right); Not is pushed into relations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

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
  uint32_t first = 0;  // operands: pool storage [first, first + count)
  uint32_t count = 0;
  int64_t value = 0;  // Const: the number; Var: the VarId's index
};

// Owns expressions. Not thread safe: one pool belongs to one compilation.
class ExprPool {
 public:
  ExprPool();

  const Expr& operator[](ExprId id) const { return exprs_[id.index]; }
  std::span<const ExprId> operands(ExprId id) const {
    const Expr& e = exprs_[id.index];
    return {operands_.data() + e.first, e.count};
  }
  size_t size() const { return exprs_.size(); }

  ExprId constant(int64_t value);
  ExprId var(VarId var);
  VarId new_var() { return VarId{next_var_++}; }
  uint32_t var_count() const { return next_var_; }

  ExprId add(ExprId a, ExprId b);
  ExprId sub(ExprId a, ExprId b);
  ExprId neg(ExprId a);
  ExprId mul(ExprId a, ExprId b);
  ExprId floor_div(ExprId a, ExprId b);  // structural simplification only; ranges: ShapeEnv::simplify
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

  bool is_const(ExprId id) const { return exprs_[id.index].kind == Kind::Const; }
  bool is_const(ExprId id, int64_t value) const { return is_const(id) && exprs_[id.index].value == value; }
  bool is_var(ExprId id) const { return exprs_[id.index].kind == Kind::Var; }
  int64_t const_value(ExprId id) const;  // CHECKs is_const
  VarId var_of(ExprId id) const;         // CHECKs is_var

  // Rebuilds `id` with variables replaced: vars[i] invalid => kept. Canonicalizes again.
  ExprId substitute(ExprId id, const std::unordered_map<VarId, ExprId>& replacement);
  // Appends each distinct variable of `id` to `out`.
  void collect_vars(ExprId id, std::vector<VarId>& out) const;
  bool uses_var(ExprId id, VarId var) const;

  // id == coefficient * var + rest, with neither part mentioning var. nullopt when not affine in var.
  struct Affine {
    ExprId coefficient;
    ExprId rest;
  };
  bool affine_in(ExprId id, VarId var, Affine& out);

 private:
  ExprId intern(Kind kind, std::span<const ExprId> operands, int64_t value);

  std::vector<Expr> exprs_;
  std::vector<ExprId> operands_;
  std::vector<uint32_t> table_;  // open addressing over exprs_
  uint32_t next_var_ = 0;
};

// Variables' printed names; empty name => "v<index>".
using VarNames = std::unordered_map<VarId, std::string>;
std::string to_string(const ExprPool& pool, ExprId id, const VarNames& names);

}  // namespace cresset::sym
