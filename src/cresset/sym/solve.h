// From guards to sizes: the smallest accepted sizes, random accepted sizes, the range of each size, and sizes that
// other guards reject.
//
// The solver searches over the variables in the order of declaration and narrows ranges (box.h) after every choice. The
// search is bounded. Where it gives up, Z3 is asked if it is built in.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "sym/box.h"
#include "sym/prover.h"

namespace cresset::sym {

struct SolveLimits {
  int64_t choices = 20000;  // values tried in a search
  int64_t tries = 512;      // values tried for a variable under one choice of the earlier variables
  int z3_ms = 1000;         // 0: Z3 is not asked
};

struct Solution {
  enum class Status : uint8_t { Found, None, GaveUp } status = Status::GaveUp;
  Assignment values;
  bool by_z3 = false;

  bool found() const { return status == Status::Found; }
};

// The known range of a variable. An end is attained when its `exact` flag is set, and x = remainder (mod step).
struct ValidRange {
  Interval ends;
  bool exact_low = false, exact_high = false;
  int64_t step = 1, remainder = 0;
};

class Solver {
 public:
  explicit Solver(ExprPool& pool, SolveLimits limits = {}) : pool_(pool), limits_(limits) {}

  void declare(VarId var, Interval range);
  void require(ExprId condition) { conditions_.push_back(condition); }
  // At least one of these conditions, the guards of another cache entry, must be false.
  void exclude(std::span<const ExprId> conditions);

  // Returns the lexicographically smallest solution in the order of declaration: the first variable is minimal, then
  // the second, ...
  Solution smallest();
  // Returns random values near the low end of each range. The ends and 0, 1, 2 occur often.
  Solution sample(uint64_t seed, int64_t spread = 64);
  ValidRange valid_range(VarId var);

 private:
  enum class Order : uint8_t { Up, Down, Random };

  Solution search(std::span<const VarId> order, Order how, uint64_t seed, int64_t spread);
  Solution ask_z3();
  Box start() const;

  ExprPool& pool_;
  SolveLimits limits_;
  std::vector<VarId> vars_;
  std::vector<Interval> ranges_;
  std::vector<ExprId> conditions_;
};

}  // namespace cresset::sym
