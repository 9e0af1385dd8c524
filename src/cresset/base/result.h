// A function which cannot compile its input returns a value, since this outcome is normal. Result<T> holds a T or a
// Fallback.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace cresset {

enum class FallbackReason {
#define CRESSET_FALLBACK_REASON(name, text) name,
#include "base/fallback_reasons.def"
#undef CRESSET_FALLBACK_REASON
};
std::string_view to_string(FallbackReason reason);

struct Fallback {
  FallbackReason reason;
  std::string attempted;  // the attempted operation, in the user's terms
  std::string hint;       // the remedy for the user; may be empty
};
std::string describe(const Fallback& fallback);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Fallback fallback) : state_(std::move(fallback)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    CRESSET_CHECK(ok(), describe(std::get<1>(state_)));
    return std::get<0>(state_);
  }
  const T& value() const& {
    CRESSET_CHECK(ok(), describe(std::get<1>(state_)));
    return std::get<0>(state_);
  }
  T&& value() && {
    CRESSET_CHECK(ok(), describe(std::get<1>(state_)));
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Fallback& fallback() const {
    CRESSET_CHECK(!ok(), "result holds a value");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Fallback> state_;
};

}  // namespace cresset

// CRESSET_TRY(auto x, f()): declares x from f()'s value, or returns f()'s Fallback from the enclosing function.
#define CRESSET_TRY_CONCAT_(a, b) a##b
#define CRESSET_TRY_NAME_(line) CRESSET_TRY_CONCAT_(cresset_try_, line)
#define CRESSET_TRY(declaration, expression)                                            \
  auto CRESSET_TRY_NAME_(__LINE__) = (expression);                                      \
  if (!CRESSET_TRY_NAME_(__LINE__).ok()) return CRESSET_TRY_NAME_(__LINE__).fallback(); \
  declaration = std::move(CRESSET_TRY_NAME_(__LINE__)).value()
