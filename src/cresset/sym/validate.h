// Translation validation: proofs, after the fact, that the rewrites of the sizes of a program were right.
//
// Every step in the environment's log is proved under the assumptions present when the step was made. The guards that a
// call checks are proved equivalent to the recorded guards. docs/validation.md tells how to read a report.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sym/shape_env.h"

namespace cresset::sym {

struct ValidationLimits {
  int query_ms = 200;   // a longer proof counts as "not proved"
  double total_s = 10;  // steps left after this time count as "not proved"
  size_t most_reports = 8;
};

struct ValidationReport {
  int64_t proved = 0, not_proved = 0, refuted = 0;
  double ms = 0;
  bool guards_proved = false;
  // The first wrong steps, in order, or "the guards checked are not the guards asked for". Each failure has values that
  // show it. Later steps build on earlier steps: mend the first.
  std::vector<std::string> failures;
  std::vector<std::string> unproved;  // a sample

  bool ok() const { return refuted == 0; }
  std::string text() const;
};

// `checked`: the conditions of the guard program, where a division by zero has SizeProgram's meaning. The environment
// must keep a log.
ValidationReport validate(ShapeEnv& env, std::span<const SizeGuard> checked, const ValidationLimits& limits = {});

// Validates only the steps of a log; for tests of rules.
ValidationReport validate_steps(ExprPool& pool, const RewriteLog& log, const VarNames& names,
                                const ValidationLimits& limits = {});

}  // namespace cresset::sym
