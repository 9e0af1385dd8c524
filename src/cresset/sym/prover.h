// Z3 as an oracle about expressions: proves, or finds values that show the opposite. Used by validation, by tests, and
// by the solver where its own search gives up; nothing that a product depends on waits for it.
//
// Meaning is that of expr.h: integers without bound, // rounds down, % has the divisor's sign, an expression that
// divides by zero has no value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "sym/expr.h"
#include "sym/interval.h"
#include "sym/rewrite_log.h"

namespace cresset::sym {

enum class Verdict : uint8_t { Proved, Refuted, Unknown };  // Unknown: time was up, or Z3 is not built in

using Assignment = std::unordered_map<VarId, int64_t>;

// How a division by zero counts.
enum class Division : uint8_t {
  Partial,  // it has no value: the condition holds for no such values
  Program,  // it is 0, as in a SizeProgram
};

class Prover {
 public:
  explicit Prover(const ExprPool& pool);
  ~Prover();
  Prover(const Prover&) = delete;

  static bool available();  // false when cresset was built without Z3

  void set_timeout(int milliseconds);
  void push();
  void pop();
  void assume(ExprId condition, Division division = Division::Partial);
  void assume(const Assumption& assumption);

  // Under what was assumed: `after` has the value of the builder's operation (or of a) wherever that has one.
  Verdict proves(const RewriteStep& step);
  // The conditions of `left` and those of `right` hold for the same values.
  Verdict equivalent(std::span<const ExprId> left, Division left_division, std::span<const ExprId> right,
                     Division right_division);
  // Values for every variable met so far that satisfy what was assumed. `decided`: false when time was up.
  std::optional<Assignment> model(bool* decided = nullptr);
  // Of the last refutation.
  const Assignment& counterexample() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cresset::sym
