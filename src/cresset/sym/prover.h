// Z3 as an oracle about expressions: it proves a claim or finds values which refute it. Validation and tests use it,
// and the solver uses it when its own search gives up. No compilation depends on Z3: its library is opened at the first
// proof, and without it every answer is Unknown.
//
// Semantics are those of expr.h: unbounded integers, // rounds down, % has the divisor's sign. An expression that
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

enum class Verdict : uint8_t { Proved, Refuted, Unknown };  // Unknown: a timeout, or there is no Z3

using Assignment = std::unordered_map<VarId, int64_t>;

// The meaning of a division by zero.
enum class Division : uint8_t {
  Partial,  // no value: the condition does not hold for these numbers
  Program,  // 0, as in a SizeProgram
};

class Prover {
 public:
  explicit Prover(const ExprPool& pool);
  ~Prover();
  Prover(const Prover&) = delete;

  static bool available();  // false without Z3: its headers when cresset was built, its library now

  void set_timeout(int milliseconds);
  void push();
  void pop();
  void assume(ExprId condition, Division division = Division::Partial);
  void assume(const Assumption& assumption);

  // Proves under the assumptions that `after` equals the result of the builder's operation (or `a`) wherever this
  // result has a value.
  Verdict proves(const RewriteStep& step);
  // Proves that the conditions of `left` and of `right` hold for the same values.
  Verdict equivalent(std::span<const ExprId> left, Division left_division, std::span<const ExprId> right,
                     Division right_division);
  // Returns values for all variables met so far which satisfy the assumptions. `decided` is false after a timeout.
  std::optional<Assignment> model(bool* decided = nullptr);
  // Returns the counterexample of the last refutation.
  const Assignment& counterexample() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cresset::sym
