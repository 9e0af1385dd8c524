#include "bridge/float_guard.h"

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

FloatGuard::FloatGuard(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right,
                       std::string location)
    : left_(left),
      right_(right),
      relation_(relation),
      expected_(compare(left->number, relation, right->number)),
      location_(std::move(location)),
      left_step_(program_.add(left)),
      right_step_(program_.add(right)) {}

bool FloatGuard::same(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right) const {
  const auto equal = [](const FloatExpr::Ref& a, const FloatExpr::Ref& b) {
    if (a == b) return true;
    const bool leaves = a->op == nullptr && b->op == nullptr && a->input == b->input && a->size == b->size &&
                        a->divisor == b->divisor && a->factor == b->factor;
    return leaves && a->number == b->number && std::signbit(a->number) == std::signbit(b->number);
  };
  return relation == relation_ && equal(left, left_) && equal(right, right_);
}

bool FloatGuard::holds(c10::ArrayRef<at::Tensor> inputs, const int64_t* sizes) const {
  c10::SmallVector<double, 16> values(program_.value_count());
  program_.run(inputs, sizes, values.data());
  return compare(values[left_step_], relation_, values[right_step_]) == expected_;
}

std::string FloatGuard::text(c10::ArrayRef<std::string> names, const FloatExpr::SizeText& size_text) const {
  const std::string condition =
      fmt::format("{} {} {}", left_->text(names, size_text), sign(relation_), right_->text(names, size_text));
  return (expected_ ? condition : "not " + condition) + (location_.empty() ? "" : " (at " + location_ + ")");
}

}  // namespace cresset::bridge
