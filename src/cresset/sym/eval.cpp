#include "sym/eval.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "sym/arith.h"

namespace cresset::sym {

std::optional<int64_t> apply(Kind op, int64_t a, int64_t b) {
  switch (op) {
    case Kind::Const:
    case Kind::Var:
      break;
    case Kind::Add:
      return saturating_add(a, b);
    case Kind::Mul:
      return saturating_mul(a, b);
    case Kind::FloorDiv:
      if (b == 0) return std::nullopt;
      return floor_div(a, b);
    case Kind::Mod:
      if (b == 0) return std::nullopt;
      return floor_mod(a, b);
    case Kind::Min:
      return std::min(a, b);
    case Kind::Max:
      return std::max(a, b);
    case Kind::Eq:
      return a == b;
    case Kind::Ne:
      return a != b;
    case Kind::Lt:
      return a < b;
    case Kind::Le:
      return a <= b;
    case Kind::And:
      return a != 0 && b != 0;
    case Kind::Or:
      return a != 0 || b != 0;
    case Kind::Not:
      return a == 0;
  }
  CRESSET_CHECK(false, "a leaf is not applied");
}

namespace {

class Evaluator {
 public:
  Evaluator(const ExprPool& pool, const ValueOf& value_of, bool memoize)
      : pool_(pool), value_of_(value_of), memoize_(memoize) {}

  std::optional<int64_t> eval(ExprId id) {
    const Expr& e = pool_[id];
    if (e.kind == Kind::Const) return e.value;
    if (e.kind == Kind::Var) return value_of_(pool_.var_of(id));
    if (memoize_) {
      if (const auto it = done_.find(id); it != done_.end()) return it->second;
    }
    const std::optional<int64_t> result = eval_operands(e.kind, pool_.operands(id));
    if (memoize_) done_.emplace(id, result);
    return result;
  }

 private:
  std::optional<int64_t> eval_operands(Kind kind, std::span<const ExprId> operands) {
    std::optional<int64_t> result = eval(operands[0]);
    if (kind == Kind::Not && result) return apply(kind, *result, 0);
    for (const ExprId operand : operands.subspan(1)) {
      if (!result) return std::nullopt;
      const std::optional<int64_t> next = eval(operand);
      if (!next) return std::nullopt;
      result = apply(kind, *result, *next);
    }
    return result;
  }

  const ExprPool& pool_;
  const ValueOf& value_of_;
  bool memoize_;  // a table for shared nodes pays only in large expressions
  std::unordered_map<ExprId, std::optional<int64_t>> done_;
};

}  // namespace

std::optional<int64_t> eval(const ExprPool& pool, ExprId id, const ValueOf& value_of) {
  return Evaluator(pool, value_of, pool[id].weight > 64).eval(id);
}

}  // namespace cresset::sym
