// Random integer expressions with a meaning of their own: the oracle shares no code with the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sym/expr.h"

namespace cresset::sym::testing {

enum class Op : uint8_t { Const, Var, Add, Sub, Mul, Div, CeilDiv, Mod, Min, Max, Eq, Ne, Lt, Le, And, Or, Not };

struct Tree {
  Op op;
  int64_t value = 0;  // Const: number; Var: index into the test's variables
  std::shared_ptr<Tree> a, b;
};
using TreePtr = std::shared_ptr<Tree>;

inline int64_t python_floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  while (q * b > a && b > 0) --q;
  while (q * b < a && b < 0) --q;
  return q;
}

// nullopt: divides by zero somewhere.
inline std::optional<int64_t> meaning(const Tree& t, const std::vector<int64_t>& vars) {
  if (t.op == Op::Const) return t.value;
  if (t.op == Op::Var) return vars[static_cast<size_t>(t.value)];
  const std::optional<int64_t> a = meaning(*t.a, vars);
  if (!a) return std::nullopt;
  if (t.op == Op::Not) return *a == 0;
  const std::optional<int64_t> b = meaning(*t.b, vars);
  if (!b) return std::nullopt;
  switch (t.op) {
    case Op::Add:
      return *a + *b;
    case Op::Sub:
      return *a - *b;
    case Op::Mul:
      return *a * *b;
    case Op::Div:
      return *b == 0 ? std::nullopt : std::optional(python_floor_div(*a, *b));
    case Op::CeilDiv:
      return *b == 0 ? std::nullopt : std::optional(-python_floor_div(-*a, *b));
    case Op::Mod:
      return *b == 0 ? std::nullopt : std::optional(*a - *b * python_floor_div(*a, *b));
    case Op::Min:
      return *a < *b ? *a : *b;
    case Op::Max:
      return *a < *b ? *b : *a;
    case Op::Eq:
      return *a == *b;
    case Op::Ne:
      return *a != *b;
    case Op::Lt:
      return *a < *b;
    case Op::Le:
      return *a <= *b;
    case Op::And:
      return *a != 0 && *b != 0;
    case Op::Or:
      return *a != 0 || *b != 0;
    case Op::Const:
    case Op::Var:
    case Op::Not:
      break;
  }
  return std::nullopt;
}

inline ExprId build(ExprPool& pool, const Tree& t, const std::vector<ExprId>& vars) {
  if (t.op == Op::Const) return pool.constant(t.value);
  if (t.op == Op::Var) return vars[static_cast<size_t>(t.value)];
  const ExprId a = build(pool, *t.a, vars);
  if (t.op == Op::Not) return pool.logical_not(a);
  const ExprId b = build(pool, *t.b, vars);
  switch (t.op) {
    case Op::Add:
      return pool.add(a, b);
    case Op::Sub:
      return pool.sub(a, b);
    case Op::Mul:
      return pool.mul(a, b);
    case Op::Div:
      return pool.floor_div(a, b);
    case Op::CeilDiv:
      return pool.ceil_div(a, b);
    case Op::Mod:
      return pool.mod(a, b);
    case Op::Min:
      return pool.min(a, b);
    case Op::Max:
      return pool.max(a, b);
    case Op::Eq:
      return pool.eq(a, b);
    case Op::Ne:
      return pool.ne(a, b);
    case Op::Lt:
      return pool.lt(a, b);
    case Op::Le:
      return pool.le(a, b);
    case Op::And:
      return pool.logical_and(a, b);
    case Op::Or:
      return pool.logical_or(a, b);
    case Op::Const:
    case Op::Var:
    case Op::Not:
      break;
  }
  return a;
}

inline std::string text(const Tree& t) {
  static const char* const kNames[] = {"",    "",   "+",  "-", "*",  "//",  "ceildiv", "%",  "min",
                                       "max", "==", "!=", "<", "<=", "and", "or",      "not"};
  if (t.op == Op::Const) return std::to_string(t.value);
  if (t.op == Op::Var) return "x" + std::to_string(t.value);
  if (t.op == Op::Not) return "(not " + text(*t.a) + ")";
  return "(" + text(*t.a) + " " + kNames[static_cast<size_t>(t.op)] + " " + text(*t.b) + ")";
}

class RandomExpr {
 public:
  RandomExpr(uint64_t seed, size_t var_count) : rng_(seed), var_count_(var_count) {}

  int64_t number(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(rng_); }

  TreePtr leaf() {
    if (number(0, 3) != 0) return make(Op::Var, number(0, static_cast<int64_t>(var_count_) - 1));
    return make(Op::Const, number(0, 5) == 0 ? number(-12, 24) : number(-3, 6));
  }
  TreePtr integer(int depth) {
    if (depth <= 0 || number(0, 9) == 0) return leaf();
    static constexpr Op kOps[] = {Op::Add, Op::Add, Op::Add, Op::Sub, Op::Sub, Op::Mul, Op::Mul,    Op::Mul,
                                  Op::Div, Op::Div, Op::Mod, Op::Mod, Op::Min, Op::Max, Op::CeilDiv};
    const Op op = kOps[number(0, std::size(kOps) - 1)];
    const bool division = op == Op::Div || op == Op::Mod || op == Op::CeilDiv;
    TreePtr left = integer(depth - 1);
    TreePtr right = division && number(0, 2) != 0 ? make(Op::Const, number(-1, 8)) : integer(depth - 1);
    return make(op, 0, left, right);
  }
  TreePtr relation(int depth) {
    static constexpr Op kOps[] = {Op::Eq, Op::Ne, Op::Lt, Op::Le};
    return make(kOps[number(0, 3)], 0, integer(depth), number(0, 1) ? leaf() : integer(depth - 1));
  }
  TreePtr condition(int depth) {
    if (number(0, 5) != 0) return relation(depth);
    const int64_t kind = number(0, 2);
    if (kind == 0) return make(Op::Not, 0, condition(depth - 1));
    return make(kind == 1 ? Op::And : Op::Or, 0, condition(depth - 1), relation(depth - 1));
  }

 private:
  static TreePtr make(Op op, int64_t value, TreePtr a = nullptr, TreePtr b = nullptr) {
    return std::make_shared<Tree>(Tree{op, value, std::move(a), std::move(b)});
  }
  std::mt19937_64 rng_;
  size_t var_count_;
};

}  // namespace cresset::sym::testing
