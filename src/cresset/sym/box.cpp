#include "sym/box.h"

#include "base/check.h"
#include "sym/arith.h"

namespace cresset::sym {
namespace {

constexpr int kRounds = 12;
constexpr size_t kNone = SIZE_MAX;
const Interval kTruth{0, 1};

Interval minus(Interval a, Interval b) { return add(a, neg(b)); }

int64_t ceil_div(int64_t a, int64_t b) { return saturating_neg(floor_div(saturating_neg(a), b)); }

// Returns the values of x with x*o in `target` for some o in the positive interval `by`.
Interval divided(Interval target, Interval by) {
  Interval x = Interval::all();
  if (target.lo != Interval::kNegInf) {
    if (target.lo >= 0) {
      x.lo = by.hi == Interval::kPosInf ? (target.lo > 0) : ceil_div(target.lo, by.hi);
    } else {
      x.lo = ceil_div(target.lo, by.lo);
    }
  }
  if (target.hi != Interval::kPosInf) {
    if (target.hi >= 0) {
      x.hi = floor_div(target.hi, by.lo);
    } else {
      x.hi = by.hi == Interval::kPosInf ? -1 : floor_div(target.hi, by.hi);
    }
  }
  return x;
}

}  // namespace

Interval Box::of(VarId var) const {
  const auto it = ranges_.find(var);
  return it == ranges_.end() ? Interval::all() : it->second;
}

// The range of the operands joined, except for operand `without`.
Interval Box::fold(const Expr& e, std::span<const ExprId> operands, size_t without) const {
  Interval result = Interval::point(e.kind == Kind::Mul ? 1 : 0);
  bool first = true;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i == without) continue;
    const Interval next = range(operands[i]);
    if (first && (e.kind == Kind::Min || e.kind == Kind::Max)) result = next;
    first = false;
    if (e.kind == Kind::Add) result = add(result, next);
    if (e.kind == Kind::Mul) result = mul(result, next);
    if (e.kind == Kind::Min) result = min(result, next);
    if (e.kind == Kind::Max) result = max(result, next);
  }
  return result;
}

Interval Box::relation(Kind kind, Interval d) const {
  bool may = true, must = false;
  if (kind == Kind::Le) may = d.lo <= 0, must = d.hi <= 0;
  if (kind == Kind::Lt) may = d.lo < 0, must = d.hi < 0;
  if (kind == Kind::Eq) may = d.contains(0), must = d == Interval::point(0);
  if (kind == Kind::Ne) may = d != Interval::point(0), must = !d.contains(0);
  return {must, may};
}

// size: switch
Interval Box::range(ExprId id) const {
  const Expr& e = (*pool_)[id];
  const std::span<const ExprId> operands = pool_->operands(id);
  switch (e.kind) {
    case Kind::Const:
      return Interval::point(e.value);
    case Kind::Var:
      return of(pool_->var_of(id));
    case Kind::Add:
    case Kind::Mul:
    case Kind::Min:
    case Kind::Max:
      return fold(e, operands, kNone);
    case Kind::FloorDiv:
      return floor_div(range(operands[0]), range(operands[1]));
    case Kind::Mod:
      return mod(range(operands[0]), range(operands[1]));
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
      return relation(e.kind, minus(range(operands[0]), range(operands[1])));
    case Kind::And:
    case Kind::Or: {
      Interval result = Interval::point(e.kind == Kind::And);
      for (const ExprId operand : operands) {
        const Interval next = range(operand);
        result = e.kind == Kind::And ? min(result, next) : max(result, next);
      }
      return result;
    }
    case Kind::Not: {
      const Interval r = range(operands[0]);
      return {r == Interval::point(0), r.contains(0)};
    }
  }
  CRESSET_CHECK(false, "unknown kind");
}

bool Box::narrow(std::span<const ExprId> conditions) {
  for (int round = 0; round < kRounds; ++round) {
    moved_ = false;
    for (const ExprId condition : conditions) {
      if (!narrow(condition, Interval::point(1))) return false;
    }
    if (!moved_) return true;
  }
  return true;
}

// size: switch
bool Box::narrow(ExprId id, Interval target) {
  const Expr& e = (*pool_)[id];
  const Interval now = range(id), kept = intersect(now, target);
  if (kept.empty()) return false;
  if (kept == now && e.kind != Kind::Mod && e.kind < Kind::Eq) return true;  // no restriction
  const std::span<const ExprId> operands = pool_->operands(id);
  switch (e.kind) {
    case Kind::Const:
      return true;
    case Kind::Var:
      moved_ = true;
      ranges_[pool_->var_of(id)] = kept;
      return true;
    case Kind::Add:
      return narrow_sum(operands, kept);
    case Kind::Mul:
      return narrow_product(operands, kept);
    case Kind::FloorDiv:
      return narrow_quotient(operands[0], operands[1], kept);
    case Kind::Mod:
      return narrow_remainder(operands[0], operands[1], kept);
    case Kind::Min:
    case Kind::Max:
      return narrow_extremum(e.kind, operands, kept);
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
      return !kept.is_point() || narrow_relation(e.kind, operands[0], operands[1], kept.lo == 1);
    case Kind::And:
    case Kind::Or:
      return !kept.is_point() || narrow_junction(e.kind, operands, kept.lo == 1);
    case Kind::Not:
      return !kept.is_point() || narrow(operands[0], Interval::point(1 - kept.lo));
  }
  CRESSET_CHECK(false, "unknown kind");
}

bool Box::narrow_sum(std::span<const ExprId> operands, Interval target) {
  for (size_t i = 0; i < operands.size(); ++i) {
    Interval others = Interval::point(0);
    for (size_t j = 0; j < operands.size(); ++j) {
      if (j != i) others = add(others, range(operands[j]));
    }
    if (!narrow(operands[i], minus(target, others))) return false;
  }
  return true;
}

bool Box::narrow_product(std::span<const ExprId> operands, Interval target) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (pool_->is_const(operands[i])) continue;
    Interval others = Interval::point(1);
    for (size_t j = 0; j < operands.size(); ++j) {
      if (j != i) others = mul(others, range(operands[j]));
    }
    if (others.lo >= 0 && !target.contains(0)) others.lo = std::max<int64_t>(others.lo, 1);
    if (others.empty()) return false;
    if (others.lo > 0 && !narrow(operands[i], divided(target, others))) return false;
    if (others.hi < 0 && !narrow(operands[i], divided(neg(target), neg(others)))) return false;
  }
  return true;
}

// q <= a // b <= q'  <=>  q*b <= a <= q'*b + b - 1, for b > 0.
bool Box::narrow_quotient(ExprId a, ExprId b, Interval target) {
  const Interval divisor = range(b);
  if (divisor.lo < 1) return true;
  const Interval least = mul(Interval::point(target.lo), divisor);
  const Interval most = mul(Interval::point(saturating_add(target.hi, 1)), divisor);
  Interval dividend = Interval::all();
  if (target.lo != Interval::kNegInf) dividend.lo = least.lo;
  if (target.hi != Interval::kPosInf && most.hi != Interval::kPosInf) dividend.hi = most.hi - 1;
  if (!narrow(a, dividend)) return false;
  const Interval reached = range(a);
  if (target.lo <= 0 || reached.lo < 0) return true;
  Interval by{1, reached.hi == Interval::kPosInf ? Interval::kPosInf : floor_div(reached.hi, target.lo)};
  if (target.hi != Interval::kPosInf) by.lo = floor_div(reached.lo, target.hi + 1) + 1;
  return narrow(b, by);
}

bool Box::narrow_remainder(ExprId a, ExprId b, Interval target) {
  const Interval divisor = range(b);
  if (divisor.is_point() && divisor.lo > 0 && target.is_point()) return round_to_class(a, divisor.lo, target.lo);
  if (divisor.lo < 0 || target.lo <= 0) return true;
  return narrow(b, {saturating_add(target.lo, 1), Interval::kPosInf});
}

// c*x + d = remainder (mod divisor) for a variable x: the ends of the range of x move to the nearest solutions. Longer
// sums are not narrowed.
bool Box::round_to_class(ExprId a, int64_t divisor, int64_t remainder) {
  TermList terms;
  pool_->terms(a, terms);
  const int64_t d = terms.size() == 2 && !terms[1].monomial.valid() ? terms[1].coefficient : 0;
  if (terms.empty() || terms.size() > (d != 0 ? 2u : 1u) || !terms[0].monomial.valid()) return true;
  if (!pool_->is_var(terms[0].monomial)) return true;
  const int64_t c = terms[0].coefficient;
  const auto fits = [&](int64_t x) {
    return floor_mod(clamp_to_int64(static_cast<__int128>(c) * x + d - remainder), divisor) == 0;
  };
  Interval kept = range(terms[0].monomial);
  constexpr int64_t kMostSteps = 4096;  // larger divisors: the search decides
  if (divisor > kMostSteps) return true;
  for (int64_t step = 0; kept.lo != Interval::kNegInf && !fits(kept.lo); ++step, ++kept.lo) {
    if (step > divisor || kept.lo == Interval::kPosInf) return false;
  }
  for (int64_t step = 0; kept.hi != Interval::kPosInf && !fits(kept.hi); ++step, --kept.hi) {
    if (step > divisor || kept.hi == Interval::kNegInf) return false;
  }
  return !kept.empty() && narrow(terms[0].monomial, kept);
}

bool Box::narrow_extremum(Kind kind, std::span<const ExprId> operands, Interval target) {
  const bool is_min = kind == Kind::Min;
  const Interval every = is_min ? Interval{target.lo, Interval::kPosInf} : Interval{Interval::kNegInf, target.hi};
  ExprId only;
  int candidates = 0;
  for (const ExprId operand : operands) {
    if (!narrow(operand, every)) return false;
    const Interval r = range(operand);
    if (is_min ? r.lo <= target.hi : r.hi >= target.lo) only = operand, ++candidates;
  }
  if (candidates == 0) return false;
  return candidates > 1 || narrow(only, target);
}

bool Box::narrow_relation(Kind kind, ExprId lhs, ExprId rhs, bool truth) {
  const Interval right = range(rhs);  // a constant, in canonical form
  if (!right.is_point()) return true;
  const int64_t bound = right.lo;
  if (kind == Kind::Le || kind == Kind::Lt) {
    const int64_t most = kind == Kind::Le ? bound : saturating_add(bound, -1);
    return narrow(lhs,
                  truth ? Interval{Interval::kNegInf, most} : Interval{saturating_add(most, 1), Interval::kPosInf});
  }
  if ((kind == Kind::Eq) == truth) return narrow(lhs, right);
  Interval kept = range(lhs);
  if (kept.lo == bound) ++kept.lo;
  if (kept.hi == bound) --kept.hi;
  return !kept.empty() && narrow(lhs, kept);
}

bool Box::narrow_junction(Kind kind, std::span<const ExprId> operands, bool truth) {
  if ((kind == Kind::And) == truth) {
    for (const ExprId operand : operands) {
      if (!narrow(operand, Interval::point(truth))) return false;
    }
    return true;
  }
  ExprId only;
  int candidates = 0;
  for (const ExprId operand : operands) {
    if (range(operand).contains(truth)) only = operand, ++candidates;
  }
  if (candidates == 0) return false;
  return candidates > 1 || narrow(only, Interval::point(truth));
}

}  // namespace cresset::sym
