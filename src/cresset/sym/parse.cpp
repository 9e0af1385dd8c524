#include "sym/parse.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

namespace cresset::sym {
namespace {

constexpr int kMaxNesting = 200;

// Recursive descent; each level handles one precedence. The first error is kept, and all later errors are ignored.
class Parser {
 public:
  Parser(ExprPool& pool, std::string_view text, const ResolveName& resolve)
      : pool_(pool), text_(text), resolve_(resolve) {}

  Result<ExprId> parse() {
    const ExprId result = disjunction();
    skip_space();
    if (at_ != text_.size()) fail("unexpected text");
    if (!error_.empty()) return Fallback{FallbackReason::InvalidArguments, error_, ""};
    return result;
  }

 private:
  ExprId disjunction() {
    ExprId result = conjunction();
    while (take_word("or")) result = pool_.logical_or(result, conjunction());
    return result;
  }

  ExprId conjunction() {
    ExprId result = negation();
    while (take_word("and")) result = pool_.logical_and(result, negation());
    return result;
  }

  ExprId negation() {
    bool negate = false;
    while (take_word("not")) negate = !negate;
    const ExprId result = relation();
    return negate ? pool_.logical_not(result) : result;
  }

  ExprId relation() {
    const ExprId lhs = sum();
    if (take("==")) return pool_.eq(lhs, sum());
    if (take("!=")) return pool_.ne(lhs, sum());
    if (take("<=")) return pool_.le(lhs, sum());
    if (take(">=")) return pool_.ge(lhs, sum());
    if (take("<")) return pool_.lt(lhs, sum());
    if (take(">")) return pool_.gt(lhs, sum());
    return lhs;
  }

  ExprId sum() {
    ExprId result = product();
    for (;;) {
      if (take("+")) {
        result = pool_.add(result, product());
      } else if (take("-")) {
        result = pool_.sub(result, product());
      } else {
        return result;
      }
    }
  }

  ExprId product() {
    ExprId result = unary();
    for (;;) {
      if (take("//")) {
        result = pool_.floor_div(result, unary());
      } else if (take("*")) {
        result = pool_.mul(result, unary());
      } else if (take("%")) {
        result = pool_.mod(result, unary());
      } else {
        return result;
      }
    }
  }

  ExprId unary() {
    bool negate = false;
    while (take("-")) negate = !negate;
    const ExprId result = atom(negate);
    return negate && !negated_literal_ ? pool_.neg(result) : result;
  }

  ExprId atom(bool negated) {
    negated_literal_ = false;
    skip_space();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) return number(negated);
    if (take("(")) return parenthesized();
    const std::string_view name = word();
    if (name.empty()) return fail("expected a number, a name or '('");
    if ((name == "min" || name == "max") && take("(")) return extremum(name == "min");
    const std::optional<VarId> var = resolve_(name);
    return var ? pool_.var(*var) : fail(fmt::format("unknown name '{}'", name));
  }

  // The sign is read with the digits, because the smallest number has no positive counterpart.
  ExprId number(bool negated) {
    const size_t start = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::string digits = (negated ? "-" : "") + std::string(text_.substr(start, at_ - start));
    int64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size()) return fail("the number does not fit 64 bits");
    negated_literal_ = negated;
    return pool_.constant(value);
  }

  ExprId parenthesized() {
    if (++nesting_ > kMaxNesting) return fail("nested too deeply");
    const ExprId result = disjunction();
    --nesting_;
    if (!take(")")) return fail("expected ')'");
    negated_literal_ = false;
    return result;
  }

  ExprId extremum(bool is_min) {
    if (++nesting_ > kMaxNesting) return fail("nested too deeply");
    ExprId result = disjunction();
    while (take(",")) {
      const ExprId next = disjunction();
      result = is_min ? pool_.min(result, next) : pool_.max(result, next);
    }
    --nesting_;
    if (!take(")")) return fail("expected ')'");
    negated_literal_ = false;
    return result;
  }

  static bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  std::string_view word() {
    skip_space();
    const size_t start = at_;
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }
  bool take(std::string_view token) {
    skip_space();
    if (!error_.empty() || !text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool take_word(std::string_view expected) {
    const size_t before = at_;
    if (error_.empty() && word() == expected) return true;
    at_ = before;
    return false;
  }
  ExprId fail(std::string_view what) {
    if (error_.empty()) error_ = fmt::format("{} at column {} of '{}'", what, at_ + 1, text_);
    at_ = text_.size();
    return pool_.constant(0);
  }

  ExprPool& pool_;
  std::string_view text_;
  const ResolveName& resolve_;
  size_t at_ = 0;
  int nesting_ = 0;
  bool negated_literal_ = false;  // the value of the last atom already includes its sign
  std::string error_;
};

}  // namespace

Result<ExprId> parse(ExprPool& pool, std::string_view text, const ResolveName& resolve) {
  return Parser(pool, text, resolve).parse();
}

Result<ExprId> parse(ExprPool& pool, std::string_view text, const VarIds& names) {
  const ResolveName resolve = [&](std::string_view name) -> std::optional<VarId> {
    const auto it = names.find(std::string(name));
    return it == names.end() ? std::nullopt : std::optional(it->second);
  };
  return Parser(pool, text, resolve).parse();
}

}  // namespace cresset::sym
