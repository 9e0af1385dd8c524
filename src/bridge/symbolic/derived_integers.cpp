#include "bridge/symbolic/derived_integers.h"

#include <c10/util/SmallVector.h>

#include <cmath>

namespace cresset::bridge {
namespace {

// steps: remaining number of nodes to compare.
bool alike(const FloatExpr& a, const FloatExpr& b, int& steps) {
  if (&a == &b) return true;
  if (--steps < 0 || a.op != b.op) return false;
  if (a.op == nullptr) return FloatExpr::same_leaf(a, b);
  return alike(*a.a, *b.a, steps) && ((a.a == a.b && b.a == b.b) || alike(*a.b, *b.b, steps));
}

}  // namespace

DerivedInteger::DerivedInteger(FloatExpr::Ref made) : made_(std::move(made)) { program_.add(made_); }

bool DerivedInteger::is_whole(double number) {
  constexpr double kExact = 1LL << 53;
  return std::abs(number) < kExact && number == std::trunc(number);
}

bool DerivedInteger::same(const FloatExpr& other) const {
  int steps = 64;
  return alike(*made_, other, steps);
}

std::optional<int64_t> DerivedInteger::value(const FloatSources& sources) const {
  c10::SmallVector<double, 16> values(program_.value_count());
  program_.run(sources, values.data());
  if (!is_whole(values.back())) return std::nullopt;
  return static_cast<int64_t>(values.back());
}

}  // namespace cresset::bridge
