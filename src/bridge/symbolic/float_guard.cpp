#include "bridge/symbolic/float_guard.h"

#include <c10/util/SmallVector.h>
#include <fmt/format.h>

#include <cmath>

namespace cresset::bridge {

namespace {

bool compare(double a, FloatRelation relation, double b) {
  switch (relation) {
    case FloatRelation::Equal:
      return a == b;
    case FloatRelation::NotEqual:
      return a != b;
    case FloatRelation::Less:
      return a < b;
    case FloatRelation::LessOrEqual:
      return a <= b;
    case FloatRelation::Greater:
      return a > b;
    case FloatRelation::GreaterOrEqual:
      return a >= b;
  }
  return false;
}

const char* sign(FloatRelation relation) {
  constexpr const char* kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
  return kSigns[static_cast<size_t>(relation)];
}

}  // namespace

FloatGuard::FloatGuard(const FloatExpr::Ref& l, FloatRelation r, const FloatExpr::Ref& other, std::string where)
    : left(l), right(other), relation(r), expected(compare(l->number, r, other->number)), location(std::move(where)) {}

bool FloatGuard::same(const FloatExpr::Ref& other_left, FloatRelation other, const FloatExpr::Ref& other_right) const {
  const auto equal = [](const FloatExpr::Ref& a, const FloatExpr::Ref& b) {
    return a == b || FloatExpr::same_leaf(*a, *b);
  };
  return relation == other && equal(left, other_left) && equal(right, other_right);
}

std::string FloatGuard::text(const FloatExpr::Names& names) const {
  const std::string condition = fmt::format("{} {} {}", left->text(names), sign(relation), right->text(names));
  return (expected ? condition : "not " + condition) + (location.empty() ? "" : " (at " + location + ")");
}

bool FloatGuard::is_of_other_data(const FloatSources& sources) const {
  return left->is_of_other_data(sources) || right->is_of_other_data(sources);
}

FloatGuards::FloatGuards(const std::vector<FloatGuard>& guards) {
  for (const FloatGuard& guard : guards)
    rows_.push_back({program_.add(guard.left), program_.add(guard.right), guard.relation, guard.expected});
}

int64_t FloatGuards::first_missed(const FloatSources& sources) const {
  c10::SmallVector<double, 32> values(program_.value_count());
  program_.run(sources, values.data());
  for (size_t i = 0; i < rows_.size(); ++i)
    if (compare(values[rows_[i].left], rows_[i].relation, values[rows_[i].right]) != rows_[i].expected)
      return static_cast<int64_t>(i);
  return -1;
}

}  // namespace cresset::bridge
