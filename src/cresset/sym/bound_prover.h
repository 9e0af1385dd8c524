// Proofs of  sum <= bound  from the facts about variables. Each step replaces a part of the sum by an upper bound and
// proves the new goal.
//
// Invariant: the total number of steps is bounded, so an undecidable goal stays cheap. Failed goals are remembered in
// the facts' memo until a new condition is learned.
#pragma once

#include <cstdint>
#include <vector>

#include "sym/expr.h"

namespace cresset::sym {

class Facts;

class BoundProver {
 public:
  explicit BoundProver(Facts& facts) : facts_(facts) {}

  // Cheap checks come first: ranges, sample points, and results of earlier searches.
  bool prove(ExprId sum, int64_t bound, int depth = 0);

 private:
  bool search(ExprId sum, int64_t bound, int depth);
  bool prove_afresh(ExprId sum, int64_t bound);
  bool prove_by_extents(ExprId sum, int64_t bound, int depth);
  bool prove_by_quotients(ExprId sum, int64_t bound, int depth);
  bool prove_by_floors(ExprId sum, int64_t bound, int depth);
  bool is_positive(ExprId c, ExprId x) const;
  ExprId last_quotient(ExprId extent, ExprId c) const;
  bool prove_by_cases(ExprId sum, int64_t bound, int depth);
  bool prove_by_factoring(ExprId sum, int64_t bound);
  bool prove_by_bounds(ExprId sum, int64_t bound, int depth);

  Facts& facts_;
  // State of the current proof: its remaining steps, the goals it met, whether a nested goal was proved.
  int steps_ = 0;
  bool held_ = false;
  std::vector<ExprId> goals_;
};

}  // namespace cresset::sym
