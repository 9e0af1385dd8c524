#include "sym/samples.h"

#include <algorithm>

#include "sym/eval.h"

namespace cresset::sym {
namespace {

// Samples beyond this magnitude are invalid, since sums and products of them saturate.
constexpr int64_t kGreatestSample = int64_t{1} << 60;
constexpr uint16_t kMostDepth = 200;
constexpr int64_t kUnknownSizes[] = {37, 64, 5, 121};  // of sizes without a hint

bool in_reach(int64_t v) { return -kGreatestSample <= v && v <= kGreatestSample; }

}  // namespace

Samples::Values& Samples::of_var(VarId var) {
  if (var.index >= vars_.size()) vars_.resize(var.index + 1);
  return vars_[var.index];
}

void Samples::declare(VarId var, Interval range, std::optional<int64_t> hint) {
  Values& v = of_var(var);
  for (size_t i = 0; i < kPoints; ++i) {
    v.at[i] = hint ? *hint : std::clamp(kUnknownSizes[i], range.lo, std::max(range.lo, range.hi));
    if (range.contains(v.at[i]) && in_reach(v.at[i])) v.valid |= static_cast<uint8_t>(1u << i);
  }
}

void Samples::declare_index(VarId var, ExprId extent) {
  const Values extents = values(extent);
  Values& v = of_var(var);
  v.valid = extents.valid;
  for (size_t i = 0; i < kPoints; ++i) {
    const int64_t n = extents.at[i];
    if (n <= 0) v.valid &= static_cast<uint8_t>(~(1u << i));  // without iterations every claim holds
    const int64_t places[kPoints] = {0, n - 1, n / 2, n / 3};
    v.at[i] = places[i];
  }
}

void Samples::learn(ExprId condition) {
  const Values v = values(condition);
  for (size_t i = 0; i < kPoints; ++i)
    if ((v.valid >> i & 1) == 0 || v.at[i] == 0) alive_ &= static_cast<uint8_t>(~(1u << i));
}

bool Samples::exceeds(ExprId sum, int64_t bound) {
  if (alive_ == 0) return false;
  const Values v = values(sum);
  for (size_t i = 0; i < kPoints; ++i)
    if ((v.valid & alive_) >> i & 1 && v.at[i] > bound) return true;
  return false;
}

Samples::Values Samples::values(ExprId e) {
  if (e.index >= memo_.size()) memo_.resize(std::max(pool_.size(), memo_.size() * 2));
  if (memo_[e.index].known) return memo_[e.index];
  Values v = evaluate(e);
  v.known = true;
  memo_[e.index] = v;
  return v;
}

Samples::Values Samples::evaluate(ExprId e) {
  const Kind kind = pool_[e].kind;
  if (kind == Kind::Var) return of_var(pool_.var_of(e));
  Values out;
  if (kind == Kind::Const) {
    out.at.fill(pool_[e].value);
    if (in_reach(pool_[e].value)) out.valid = (1 << kPoints) - 1;
    return out;
  }
  if (pool_[e].depth > kMostDepth) return out;
  const std::span<const ExprId> operands = pool_.operands(e);  // evaluation creates no expressions
  out = values(operands[0]);
  for (size_t k = kind == Kind::Not ? 0 : 1; k < operands.size(); ++k) {
    const Values next = values(operands[k]);
    out.valid &= next.valid;
    for (size_t i = 0; i < kPoints; ++i) {
      if ((out.valid >> i & 1) == 0) continue;
      const std::optional<int64_t> value = apply(kind, out.at[i], next.at[i]);
      if (value && in_reach(*value)) {
        out.at[i] = *value;
      } else {
        out.valid &= static_cast<uint8_t>(~(1u << i));
      }
    }
  }
  return out;
}

}  // namespace cresset::sym
