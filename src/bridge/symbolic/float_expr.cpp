#include "bridge/symbolic/float_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_set>

namespace cresset::bridge {

namespace {

constexpr uint32_t kDeepest = 256;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// From CPython's float_floor_div() and float_rem().
double floor_divide(double a, double b) {
  const double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}
double remainder(double a, double b) {
  const double out = std::fmod(a, b);
  if (out == 0) return std::copysign(0.0, b);
  return (b < 0) != (out < 0) ? out + b : out;
}

bool is_exact(double number) {
  constexpr double kExact = 1LL << 53;
  return std::abs(number) < kExact && number == std::trunc(number);
}
template <class F>
double of_ints(double a, double b, F&& f) {
  if (!is_exact(a) || !is_exact(b)) return kNoNumber;
  const double out = f(static_cast<int64_t>(a), static_cast<int64_t>(b));
  return is_exact(out) ? out : kNoNumber;
}
double as_double(int64_t number) { return static_cast<double>(number); }

double int_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return kNoNumber;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : as_double(base);
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  double out = 1;
  for (int64_t i = 0; i < exponent && is_exact(out); ++i) out *= as_double(base);
  return out;
}
double int_root(int64_t number) {
  if (number < 0) return kNoNumber;
  auto root = static_cast<int64_t>(std::sqrt(as_double(number)));
  while (root * root > number) --root;
  while ((root + 1) * (root + 1) <= number) ++root;
  return as_double(root);
}
double shift_left(int64_t number, int64_t by) {
  return by < 0 || by > 62 ? kNoNumber : std::ldexp(as_double(number), static_cast<int>(by));
}
double shift_right(int64_t number, int64_t by) {
  return by < 0 ? kNoNumber : as_double(number >> std::min<int64_t>(by, 63));
}

}  // namespace

namespace float_ops {
const FloatOp kAdd{[](double a, double b) { return a + b; }, "+"};
const FloatOp kSubtract{[](double a, double b) { return a - b; }, "-"};
const FloatOp kMultiply{[](double a, double b) { return a * b; }, "*"};
const FloatOp kDivide{[](double a, double b) { return a / b; }, "/"};
const FloatOp kPower{[](double a, double b) { return std::pow(a, b); }, "**"};
// Python's comparison order, which matters for NaN.
const FloatOp kMin{[](double a, double b) { return b < a ? b : a; }, "min"};
const FloatOp kMax{[](double a, double b) { return b > a ? b : a; }, "max"};
const FloatOp kSqrt{[](double a, double) { return std::sqrt(a); }, "sqrt"};
const FloatOp kFloor{[](double a, double) { return std::floor(a); }, "floor"};
const FloatOp kCeil{[](double a, double) { return std::ceil(a); }, "ceil"};
const FloatOp kTruncate{[](double a, double) { return std::trunc(a); }, "int"};
const FloatOp kFloorDivide{&floor_divide, "//"};
const FloatOp kRemainder{&remainder, "%"};
const FloatOp kSingle{[](double a, double) { return static_cast<double>(static_cast<float>(a)); }, "float32"};
const FloatOp kIntPower{[](double a, double b) { return of_ints(a, b, int_power); }, "**"};

const FloatOp* whole_op(std::string_view name) {
#define CRESSET_OF_INTS(name, text, expression)                                                               \
  {                                                                                                           \
    name, {                                                                                                   \
      [](double a, double b) { return of_ints(a, b, [](int64_t m, int64_t n) { return expression; }); }, text \
    }                                                                                                         \
  }
  static const std::pair<std::string_view, FloatOp> table[] = {
      {"round", {[](double a, double) { return std::nearbyint(a); }, "round"}},  // to even, as in Python
      CRESSET_OF_INTS("and", "&", as_double(m & n)),
      CRESSET_OF_INTS("or", "|", as_double(m | n)),
      CRESSET_OF_INTS("xor", "^", as_double(m ^ n)),
      CRESSET_OF_INTS("lshift", "<<", shift_left(m, n)),
      CRESSET_OF_INTS("rshift", ">>", shift_right(m, n)),
      CRESSET_OF_INTS("gcd", "gcd", as_double(std::gcd(m, n))),
      CRESSET_OF_INTS("isqrt", "isqrt", (static_cast<void>(n), int_root(m))),
      CRESSET_OF_INTS("bit_length", "bit_length",
                      (static_cast<void>(n), as_double(std::bit_width(static_cast<uint64_t>(std::abs(m)))))),
  };
#undef CRESSET_OF_INTS
  for (const auto& [known, op] : table)
    if (known == name) return &op;
  return nullptr;
}
}  // namespace float_ops

namespace {

bool is_infix(const FloatOp* op) {
  const std::string_view name = op->name;
  return !(name[0] >= 'a' && name[0] <= 'z');
}

std::string to_text(const FloatExpr& expr, const FloatExpr::Names& names, int room) {
  if (expr.input >= 0) return names.inputs[static_cast<size_t>(expr.input)];
  if (expr.held >= 0) {
    const std::string& name = names.constants[static_cast<size_t>(expr.held)];
    return name.empty() ? "a tensor" : name;
  }
  if (expr.size.valid()) {
    std::string text = names.size(expr.size);
    if (expr.divisor.valid()) text = fmt::format("({} / {})", text, names.size(expr.divisor));
    return expr.factor == 1 ? text : fmt::format("({} * {})", text, expr.factor);
  }
  if (expr.op == nullptr) return fmt::format("{}", expr.number);
  if (room == 0) return "...";
  const std::string a = to_text(*expr.a, names, room - 1), b = to_text(*expr.b, names, room - 1);
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

FloatExpr::Ref FloatExpr::held_tensor(double number, size_t place) {
  auto made = std::make_shared<FloatExpr>();
  made->number = number;
  made->held = static_cast<int64_t>(place);
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

bool FloatExpr::same_leaf(const FloatExpr& a, const FloatExpr& b) {
  return a.op == nullptr && b.op == nullptr && a.input == b.input && a.held == b.held && a.size == b.size &&
         a.divisor == b.divisor && a.factor == b.factor && a.number == b.number &&
         std::signbit(a.number) == std::signbit(b.number);
}

std::string FloatExpr::text(const Names& names) const {
  constexpr int kRoom = 4;
  return to_text(*this, names, kRoom);
}

double number_in(const at::Tensor& tensor) {
  const auto whole = [](int64_t number) {
    const auto held = static_cast<double>(number);
    return is_exact(held) ? held : kNoNumber;
  };
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return *tensor.const_data_ptr<float>();
    case at::kLong:
      return whole(*tensor.const_data_ptr<int64_t>());
    case at::kInt:
      return *tensor.const_data_ptr<int32_t>();
    case at::kShort:
      return *tensor.const_data_ptr<int16_t>();
    case at::kChar:
      return *tensor.const_data_ptr<int8_t>();
    case at::kByte:
      return *tensor.const_data_ptr<uint8_t>();
    case at::kBool:
      return *tensor.const_data_ptr<bool>() ? 1 : 0;
    default:
      return *tensor.const_data_ptr<double>();
  }
}

std::vector<const FloatExpr*> FloatExpr::leaves() const {
  std::unordered_set<const FloatExpr*> seen{this};
  std::vector<const FloatExpr*> open{this}, found;
  while (!open.empty()) {
    const FloatExpr* const one = open.back();
    open.pop_back();
    if (one->op == nullptr) found.push_back(one);
    for (const Ref& part : {one->a, one->b})
      if (part != nullptr && seen.insert(part.get()).second) open.push_back(part.get());
  }
  return found;
}

bool FloatExpr::is_of_other_data(const FloatSources& sources) const {
  const std::vector<const FloatExpr*> all = leaves();
  return std::any_of(all.begin(), all.end(), [&](const FloatExpr* leaf) {
    if (leaf->input < 0 && leaf->held < 0) return false;
    const bool is_input = leaf->input >= 0;
    const c10::ArrayRef<at::Tensor> among = is_input ? sources.inputs : sources.constants;
    return number_in(among[static_cast<size_t>(is_input ? leaf->input : leaf->held)]) != leaf->number;
  });
}

uint32_t FloatProgram::add(const FloatExpr::Ref& expr) {
  if (const auto found = places_.find(expr); found != places_.end()) return found->second;
  Step step{expr->number, expr->input, expr->held, -1, -1, expr->op, 0, 0};
  if (expr->size.valid()) {
    step.number = expr->factor;
    step.size = add_size(expr->size);
    if (expr->divisor.valid()) step.divisor = add_size(expr->divisor);
  } else if (expr->op != nullptr) {
    step.a = add(expr->a);
    step.b = add(expr->b);
  }
  steps_.push_back(step);
  return places_[expr] = static_cast<uint32_t>(steps_.size() - 1);
}

int32_t FloatProgram::add_size(sym::ExprId size) {
  const auto found = std::find(sizes_.begin(), sizes_.end(), size);
  const auto place = static_cast<int32_t>(found - sizes_.begin());
  if (found == sizes_.end()) sizes_.push_back(size);
  return place;
}

void FloatProgram::run(const FloatSources& sources, double* values) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.op != nullptr)
      values[i] = step.op->apply(values[step.a], values[step.b]);
    else if (step.size >= 0)
      values[i] = static_cast<double>(sources.sizes[step.size]) /
                  (step.divisor < 0 ? 1.0 : static_cast<double>(sources.sizes[step.divisor])) * step.number;
    else if (step.input >= 0)
      values[i] = number_in(sources.inputs[static_cast<size_t>(step.input)]);
    else
      values[i] = step.held < 0 ? step.number : number_in(sources.constants[static_cast<size_t>(step.held)]);
  }
}

}  // namespace cresset::bridge
