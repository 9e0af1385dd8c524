// A few points at which all that was learned holds: what is false at one of them needs no proof attempt.
//
// Most questions asked of facts have the answer "not provable", and only an exhausted search says so. A point answers
// at once: a size has its hint there, a loop index the first, the last or a middle one of its values. A point is
// dropped when something is learned that does not hold at it, so a claim refuted here has a counterexample under all
// facts. Answers never depend on it but for the searches' limits: a claim with a counterexample has no proof.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sym/expr.h"
#include "sym/interval.h"

namespace cresset::sym {

class Samples {
 public:
  explicit Samples(const ExprPool& pool) : pool_(pool) {}

  void declare(VarId var, Interval range, std::optional<int64_t> hint);
  void declare_index(VarId var, ExprId extent);
  void learn(ExprId condition);
  // Whether `sum` is greater than `bound` at some point.
  bool exceeds(ExprId sum, int64_t bound);

 private:
  static constexpr size_t kPoints = 4;
  struct Values {
    std::array<int64_t, kPoints> at{};
    uint8_t valid = 0;   // bit i: there is a value at point i
    bool known = false;  // evaluated already
  };

  Values values(ExprId e);
  Values evaluate(ExprId e);
  Values& of_var(VarId var);

  const ExprPool& pool_;
  std::vector<Values> vars_, memo_;
  uint8_t alive_ = (1 << kPoints) - 1;
};

}  // namespace cresset::sym
