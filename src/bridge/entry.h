// One compiled variant of a function: the guards over its tensor arguments, and the program behind them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bridge/capture.h"
#include "bridge/constant_marks.h"
#include "bridge/data_read.h"
#include "bridge/executor.h"
#include "bridge/result_views.h"
#include "bridge/visible_strides.h"
#include "compile/compile.h"
#include "sym/size_program.h"
#include "sym/validate.h"

namespace cresset::bridge {

class FrozenWeights;
class GradientProgram;
class StagedProgram;  // stages.h, which needs torch's dispatcher: few include it

// A decision that was taken while capturing, and that data made at run time contradicts. Nothing has been written yet:
// the call is run by eager, which also raises what there is to raise.
class AssumptionFailed : public c10::Error {
 public:
  using c10::Error::Error;
};

// What is demanded of one tensor, beside its sizes' relations.
struct TensorGuard {
  std::string name;
  uint64_t dispatch_keys = 0;  // device, autograd, subclass, conj and neg bits at once
  c10::ScalarType dtype = c10::kFloat;
  c10::Device device = c10::kCPU;
  std::vector<int64_t> sizes;    // -1: symbolic
  std::vector<int64_t> strides;  // when not dense: -1: symbolic
  InputLayout layout;
  int32_t same_as = -1;  // the very tensor of an earlier position
  bool mutated = false;
  bool rebased = false;  // autograd notes the write
  std::optional<bool> requires_grad;
  std::optional<bool> is_leaf;  // of one that requires gradients: what made it was there before the call
};

class Entry {
 public:
  // Compiles a finished capture. `inputs`: the real tensors it was captured with. Throws InternalError when code
  // generation fails.
  // numbers: what is asked of sizes beside the results.
  Entry(Captured captured, const std::vector<at::Tensor>& inputs, const driver::Options& options,
        bool keep_text = false, const std::vector<sym::ExprId>& numbers = {});
  ~Entry();

  // Of forward-mode differentiation: programs compute none. Asked where a level of it is open.
  bool any_tangent(c10::ArrayRef<at::Tensor> inputs) const;
  // Fills `symbols` (symbol_count() values) and says whether this entry serves these tensors and integers. On a miss
  // and when `why` is given, it receives the first guard that fails, for people.
  bool matches(c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<int64_t> ints, int64_t* symbols, std::string* why) const;
  size_t symbol_count() const { return symbols_.size(); }

  // Runs with what matches() filled in. Result i is captured output i.
  // Fills in the symbols that data gives. Throws AssumptionFailed when data contradicts what was assumed of them: eager
  // must run the call; nothing was written.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, int64_t* symbols);
  // Whether input i is not needed behind the last step that uses it: no result is it or a view of it, and no such call
  // can have to be done again by eager, once its assumptions hold.
  bool lets_go_of(size_t i) const { return lets_go_[i]; }
  void check_assumptions(const int64_t* symbols) const;  // throws AssumptionFailed
  // The same, without checking them; of inputs that are let go of, `inputs` has no reference afterwards.
  std::vector<at::Tensor> run_releasing(std::span<at::Tensor> inputs, int64_t* symbols);

  // Output i is this input, the very tensor; -1 when it is not.
  int32_t returned_input(size_t i) const { return returned_input_[i]; }
  size_t output_count() const { return outputs_.size(); }
  // Whether a call was not served since a decision on floats that its tensors hold goes otherwise; since a number is
  // another one, or a truth value, than the only one that is served.
  bool data_went_otherwise() const { return data_went_otherwise_; }
  bool pins_went_otherwise() const { return pins_went_otherwise_; }
  // Whether a run that raised may be done again by eager: it wrote nothing, drew no random numbers (or what draws them
  // has been put back), and all operators are torch's own.
  bool may_run_again(bool put_back = false) const { return is_of_torch_ && (put_back || !draws_); }
  bool draws() const { return draws_; }
  // Whether autograd records the calls, and what its backward program took to make.
  bool has_gradients() const { return gradients_ != nullptr; }
  const driver::Stats& backward_stats() const;

  // Whether it writes to tensors that are no arguments.
  bool writes_state() const;
  // Little enough work that handing over the GIL would cost more than it gives.
  bool is_small() const { return small_; }
  const driver::Stats& stats() const { return stats_; }
  const Captured& captured() const { return captured_; }
  const std::string& graph_text() const { return graph_text_; }
  std::vector<std::string> guard_texts() const;
  std::vector<std::string> input_names() const;
  // Tensors that must be the very same: a later one by its position, the earlier one. -1: none.
  int32_t same_as(size_t input) const { return tensor_guards_[input].same_as; }
  std::vector<std::string> float_guard_texts() const;
  const sym::ValidationReport& validation() const { return validation_; }  // empty unless CRESSET_VALIDATE=1
  const std::vector<SymbolBinding>& symbols() const { return symbols_; }
  size_t tensor_count() const { return tensor_guards_.size(); }  // of a call
  const std::shared_ptr<sym::ShapeEnv>& env() const { return env_; }
  const std::vector<sym::GuardFact>& guards() const { return guards_; }  // the ones that a call checks
  Executor& executor();

 private:
  void make_tensor_guards(const std::vector<at::Tensor>& inputs);
  void make_shape_guards();
  void make_assertions();
  void make_outputs();
  void make_executor(std::unique_ptr<graph::Graph> graph, const driver::Options& options);
  void validate();
  bool tensor_matches(const TensorGuard& guard, const at::Tensor& t, c10::ArrayRef<at::Tensor> inputs,
                      std::string* why) const;
  void fill_symbols(c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<int64_t> ints, int64_t* symbols) const;
  const sym::Symbol* failed_computation(c10::ArrayRef<at::Tensor> inputs, int64_t* symbols) const;
  FloatExpr::Names names_in_floats() const;
  void find_pinned();
  // Of the guard that failed.
  bool wants_other_data(size_t guard, c10::ArrayRef<at::Tensor> inputs) const;
  int64_t failed_float_guard(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const;
  bool constants_are_apart() const;
  const TensorGuard* overlapping_constant(c10::ArrayRef<at::Tensor> inputs) const;
  bool overlaps_another(size_t i, c10::ArrayRef<at::Tensor> inputs) const;
  void choose_released();
  c10::SmallVector<int64_t, 16> program_symbols(const int64_t* symbols) const;

  void count_writes(c10::ArrayRef<at::Tensor> inputs) const;

  Captured captured_;  // graph moved out
  std::shared_ptr<sym::ShapeEnv> env_;
  std::vector<TensorGuard> tensor_guards_, constant_guards_;
  const bool records_gradients_ = c10::GradMode::is_enabled();
  ConstantMarks constant_marks_;  // what constant_guards_ say
  // Of constants, some of which the program writes, taking them to be apart.
  std::vector<const c10::StorageImpl*> memories_;
  std::vector<SymbolBinding> symbols_;
  std::vector<sym::GuardFact> guards_;
  sym::SizeProgram guard_program_;
  FloatGuards float_guards_;
  sym::SizeProgram float_sizes_;                                 // what those need
  std::vector<std::pair<uint32_t, sym::SizeProgram>> computed_;  // numbers: slot, and what each is made of, in order
  std::vector<std::pair<size_t, uint32_t>> pinned_;  // guards that want one value of such a number: which, its place
  sym::SizeProgram assertions_;                      // on the caller's sizes; those on data are the stages'
  std::vector<std::string> assertion_texts_;
  std::vector<uint32_t> program_slots_;  // Program::symbols -> our slots
  bool program_slots_identity_ = true;
  ResultViews outputs_;
  std::unique_ptr<GradientProgram> gradients_;  // nullptr: no result wants any
  std::vector<int32_t> returned_input_;
  std::vector<bool> lets_go_;
  std::vector<DataGuard> data_guards_;
  bool mutates_ = false, is_of_torch_ = false, draws_ = false;
  mutable std::atomic<bool> data_went_otherwise_ = false, pins_went_otherwise_ = false;
  bool small_ = false;
  driver::Stats stats_;
  std::string graph_text_;
  sym::ValidationReport validation_;
  std::unique_ptr<FrozenWeights> frozen_;  // nullptr: not asked for
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<StagedProgram> staged_;    // instead of executor_, when sizes depend on data
  std::unique_ptr<VisibleStrides> visible_;  // nullptr: the results' strides are right as captured
};

}  // namespace cresset::bridge
