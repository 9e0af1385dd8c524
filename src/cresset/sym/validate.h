// Translation validation: proofs, after the fact, that what was done to the sizes of one program was right.
//
// Every step in the environment's log is proved under what was assumed when it was made, and the guards that a call
// checks are proved equivalent to the guards that were asked for. docs/validation.md tells how to read a report.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sym/shape_env.h"

namespace cresset::sym {

struct ValidationLimits {
  int query_ms = 200;   // a proof that takes longer is "not proved"
  double total_s = 10;  // what is left when this is spent is "not proved"
  size_t most_reports = 8;
};

struct ValidationReport {
  int64_t proved = 0, not_proved = 0, refuted = 0;
  double ms = 0;
  bool guards_proved = false;
  // The first wrong steps, in order, or "the guards checked are not the guards asked for"; each with values that show
  // it. Later steps build on earlier ones: the first is the one to mend.
  std::vector<std::string> failures;
  std::vector<std::string> unproved;  // a sample

  bool ok() const { return refuted == 0; }
  std::string text() const;
};

// `checked`: the conditions of the guard program, with SizeProgram's meaning of a division by zero. The environment
// must keep a log.
ValidationReport validate(ShapeEnv& env, std::span<const GuardFact> checked, const ValidationLimits& limits = {});

// Only the steps of a log; for tests of rules.
ValidationReport validate_steps(ExprPool& pool, const RewriteLog& log, const VarNames& names,
                                const ValidationLimits& limits = {});

}  // namespace cresset::sym
