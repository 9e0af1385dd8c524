// A few sample points at which all learned conditions hold. A claim which is false at a point needs no proof attempt.
//
// Most claims about facts are "not provable", and otherwise only an exhausted search gives this answer. A sample point
// answers at once. A size has its hint at the points; a loop index has its first, its last or a middle value. A point
// is dropped when a learned condition does not hold at it. A claim refuted here therefore has a counterexample under
// all facts. Answers depend on the points only through the limits of a search, since a claim with a counterexample has
// no proof.
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
  // Returns whether `sum` is greater than `bound` at some point.
  bool exceeds(ExprId sum, int64_t bound);

 private:
  static constexpr size_t kPoints = 4;
  struct Values {
    std::array<int64_t, kPoints> at{};
    uint8_t valid = 0;   // bit i: there is a value at point i
    bool known = false;  // already evaluated
  };

  Values values(ExprId e);
  Values evaluate(ExprId e);
  Values& of_var(VarId var);

  const ExprPool& pool_;
  std::vector<Values> vars_, memo_;
  uint8_t alive_ = (1 << kPoints) - 1;
};

}  // namespace cresset::sym
