// Accumulators of reductions, across lanes, loops and levels.
#pragma once

#include <functional>
#include <unordered_map>

#include "codegen/common/emit_scalar.h"

namespace cresset::codegen {

// The running value of a reduction for a number of lanes. It is kept in stack slots, which mem2reg removes.
struct Accumulator {
  ScalarId reduce;
  int lanes = 1;
  llvm::AllocaInst* value = nullptr;
  llvm::AllocaInst* index = nullptr;  // ArgMax, ArgMin: i64; joined reductions: the sum
  llvm::AllocaInst* base = nullptr;   // joined reductions: the maximum, or 0 in the place of an infinite one
  // Float Sum: the sums of finished runs of `value`, and the sums of finished runs of these. No chain of additions is
  // long, so rounding errors are those of a blocked sum.
  std::vector<llvm::AllocaInst*> totals;
};

class ReduceEmitter {
 public:
  ReduceEmitter(EmitState& state, ScalarEmitter& scalars) : s_(state), scalars_(scalars) {}

  // A running value on its way to the result: ArgMax and ArgMin have an index beside it.
  struct Pair {
    llvm::Value* value;
    llvm::Value* index;
  };

  // Computes `sum`, a Sum of exp(x - max), together with `max`, a Max of x, in one pass: where the maximum grows, which
  // is rare, the sum is scaled down. A Pair of `max` then holds the sum in `index`. Folds wait until end_round(), so
  // that no load waits behind the branch.
  void join(ScalarId max, ScalarId sum, std::function<llvm::Value*(llvm::Value*)> exp);
  ScalarId joined_sum(ScalarId max) const;  // invalid: none
  // Of the sum; `has_points`: a row is not empty.
  llvm::Value* joined_result(Pair v, llvm::Value* has_points);
  void end_round(const Accumulator& accumulator);

  Accumulator start(ScalarId reduce, int lanes);
  // Folds the operand's current value (lanes as in the state, masked lanes excluded) at `position`.
  void fold(const Accumulator& accumulator, llvm::Value* position);
  void end_run(const Accumulator& accumulator, size_t level);  // 0: of values, 1: of totals
  static bool wants_runs(const loop::Kernel& kernel, ScalarId reduce);

  // The result over all lanes of the accumulators of a reduction (with different numbers of lanes).
  Pair across_lanes(const std::vector<Accumulator>& parts);
  // The result in each lane.
  Pair in_lanes(const Accumulator& accumulator) { return read(accumulator); }
  llvm::Value* result(ScalarId reduce, Pair v);
  enum class Ties { GoToTheFirst, ComeLater };  // ComeLater: b's indices are known to be greater
  Pair combine(const loop::Scalar& reduce, Pair a, Pair b, Ties ties = Ties::GoToTheFirst);
  Pair identity(ScalarId reduce, int lanes);
  // Folds in what other threads have made; values have the accumulator's lanes.
  void put(const Accumulator& accumulator, Pair v);

  llvm::AllocaInst* slot(llvm::Type* type);  // on the stack, until mem2reg

 private:
  Pair read(const Accumulator& accumulator);
  Pair halve(const loop::Scalar& reduce, Pair v);
  llvm::Value* beats(const loop::Scalar& reduce, Pair a, Pair b, Ties ties);
  Pair first_of_the_best(const loop::Scalar& reduce, Pair v);
  llvm::Constant* identity(const loop::Scalar& reduce, llvm::Type* type);
  bool is_joined(const loop::Scalar& reduce) const;
  void fold_joined(const Accumulator& accumulator);
  void scale_down(const Accumulator& accumulator, const std::vector<llvm::Value*>& points);
  Pair combine_joined(const loop::Scalar& max, Pair a, Pair b);
  llvm::Value* less_than_both(const loop::Scalar& max, llvm::Value* a, llvm::Value* b);
  llvm::Value* exp_of(const loop::Scalar& max, llvm::Value* x);
  DType operand_dtype(const loop::Scalar& reduce) const { return s_.scalar(reduce.a).dtype; }

  EmitState& s_;
  ScalarEmitter& scalars_;
  struct Joined {
    ScalarId sum;
    std::function<llvm::Value*(llvm::Value*)> exp;
  };
  std::unordered_map<ScalarId, Joined> joined_;                               // by maximum
  std::unordered_map<llvm::AllocaInst*, std::vector<llvm::Value*>> pending_;  // by Accumulator::value, of a round
};

}  // namespace cresset::codegen
