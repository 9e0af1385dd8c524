#include "bridge/float_guard.h"

#include <c10/util/SmallVector.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cresset::bridge {

namespace float_ops {
const FloatOp kAdd{[](double a, double b) { return a + b; }, "+"};
const FloatOp kSubtract{[](double a, double b) { return a - b; }, "-"};
const FloatOp kMultiply{[](double a, double b) { return a * b; }, "*"};
const FloatOp kDivide{[](double a, double b) { return a / b; }, "/"};
const FloatOp kPower{[](double a, double b) { return std::pow(a, b); }, "**"};
// As Python compares them, where one is no number.
const FloatOp kMin{[](double a, double b) { return b < a ? b : a; }, "min"};
const FloatOp kMax{[](double a, double b) { return b > a ? b : a; }, "max"};
const FloatOp kSqrt{[](double a, double) { return std::sqrt(a); }, "sqrt"};
const FloatOp kFloor{[](double a, double) { return std::floor(a); }, "floor"};
const FloatOp kCeil{[](double a, double) { return std::ceil(a); }, "ceil"};
const FloatOp kTruncate{[](double a, double) { return std::trunc(a); }, "int"};
}  // namespace float_ops

namespace {

constexpr uint32_t kDeepest = 256;

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

bool is_infix(const FloatOp* op) {
  using namespace float_ops;
  return op == &kAdd || op == &kSubtract || op == &kMultiply || op == &kDivide || op == &kPower;
}

std::string to_text(const FloatExpr& expr, c10::ArrayRef<std::string> names, const FloatGuard::SizeText& size_text,
                    int room) {
  if (expr.input >= 0) return names[static_cast<size_t>(expr.input)];
  if (expr.size.valid()) {
    std::string text = size_text(expr.size);
    if (expr.divisor.valid()) text = fmt::format("({} / {})", text, size_text(expr.divisor));
    return expr.factor == 1 ? text : fmt::format("({} * {})", text, expr.factor);
  }
  if (expr.op == nullptr) return fmt::format("{}", expr.number);
  if (room == 0) return "...";
  const std::string a = to_text(*expr.a, names, size_text, room - 1), b = to_text(*expr.b, names, size_text, room - 1);
  if (is_infix(expr.op)) return fmt::format("({} {} {})", a, expr.op->name, b);
  return expr.a == expr.b ? fmt::format("{}({})", expr.op->name, a) : fmt::format("{}({}, {})", expr.op->name, a, b);
}

}  // namespace

FloatExpr::Ref FloatExpr::constant(double number) {
  auto made = std::make_shared<FloatExpr>();
  made->number = number;
  return made;
}

FloatExpr::Ref FloatExpr::argument(double number, size_t input) {
  auto made = std::make_shared<FloatExpr>();
  made->number = number;
  made->input = static_cast<int64_t>(input);
  return made;
}

FloatExpr::Ref FloatExpr::of_sizes(double number, sym::ExprId size, sym::ExprId divisor, double factor) {
  auto made = std::make_shared<FloatExpr>();
  made->number = number;
  made->size = size;
  made->divisor = divisor;
  made->factor = factor;
  return made;
}

FloatExpr::Ref FloatExpr::make(const FloatOp& op, const Ref& a, const Ref& b) {
  if (a == nullptr || b == nullptr || std::max(a->depth, b->depth) >= kDeepest) return nullptr;
  auto made = std::make_shared<FloatExpr>();
  made->number = op.apply(a->number, b->number);
  made->op = &op;
  made->a = a;
  made->b = b;
  made->depth = std::max(a->depth, b->depth) + 1;
  return made;
}

FloatGuard::FloatGuard(const FloatExpr::Ref& left, FloatRelation relation, const FloatExpr::Ref& right,
                       std::string location)
    : left_(left),
      right_(right),
      relation_(relation),
      expected_(compare(left->number, relation, right->number)),
      location_(std::move(location)),
      left_step_(add(left)),
      right_step_(add(right)) {}

uint32_t FloatGuard::add(const FloatExpr::Ref& expr) {
  const auto found = std::find(placed_.begin(), placed_.end(), expr.get());
  if (found != placed_.end()) return static_cast<uint32_t>(found - placed_.begin());
  Step step{expr->number, expr->input, -1, -1, expr->op, 0, 0};
  if (expr->size.valid()) {
    step.number = expr->factor;
    step.size = add_size(expr->size);
    if (expr->divisor.valid()) step.divisor = add_size(expr->divisor);
  } else if (expr->op != nullptr) {
    step.a = add(expr->a);
    step.b = add(expr->b);
  }
  placed_.push_back(expr.get());
  steps_.push_back(step);
  return static_cast<uint32_t>(steps_.size() - 1);
}

int32_t FloatGuard::add_size(sym::ExprId size) {
  const auto found = std::find(sizes_.begin(), sizes_.end(), size);
  const auto place = static_cast<int32_t>(found - sizes_.begin());
  if (found == sizes_.end()) sizes_.push_back(size);
  return place;
}

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
  c10::SmallVector<double, 16> values(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.op != nullptr)
      values[i] = step.op->apply(values[step.a], values[step.b]);
    else if (step.size >= 0)
      values[i] = static_cast<double>(sizes[step.size]) /
                  (step.divisor < 0 ? 1.0 : static_cast<double>(sizes[step.divisor])) * step.number;
    else
      values[i] = step.input < 0 ? step.number : *inputs[static_cast<size_t>(step.input)].const_data_ptr<double>();
  }
  return compare(values[left_step_], relation_, values[right_step_]) == expected_;
}

std::string FloatGuard::text(c10::ArrayRef<std::string> names, const SizeText& size_text) const {
  constexpr int kRoom = 4;
  const auto side = [&](const FloatExpr::Ref& expr) { return to_text(*expr, names, size_text, kRoom); };
  const std::string condition = fmt::format("{} {} {}", side(left_), sign(relation_), side(right_));
  return (expected_ ? condition : "not " + condition) + (location_.empty() ? "" : " (at " + location_ + ")");
}

}  // namespace cresset::bridge
