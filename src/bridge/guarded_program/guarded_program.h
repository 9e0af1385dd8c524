// A cache entry (`GuardedProgram`): the guards on a function's tensor arguments, and the program behind them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/guard_failure.h"
#include "bridge/capture/capture.h"
#include "bridge/executor/assumption_failed.h"
#include "bridge/executor/constant_marks.h"
#include "bridge/executor/data_guard.h"
#include "bridge/executor/executor.h"
#include "bridge/executor/result_views.h"
#include "bridge/executor/visible_strides.h"
#include "compile/compile.h"
#include "sym/size_program.h"
#include "sym/validate.h"

namespace cresset::bridge {

class FrozenWeights;
class GradientProgram;
class StagedProgram;  // staged_program.h needs torch's dispatcher: few files include it

// The guards on a single tensor, without relations between sizes.
struct TensorGuard {
  std::string name;
  uint64_t dispatch_keys = 0;  // device, autograd, subclass, conj and neg bits at once
  c10::ScalarType dtype = c10::kFloat;
  c10::Device device = c10::kCPU;
  std::vector<int64_t> sizes;    // -1: symbolic
  std::vector<int64_t> strides;  // when not dense: -1: symbolic
  InputLayout layout;
  int32_t same_as = -1;  // must be identical to the tensor at this earlier position
  bool mutated = false;
  bool rebased = false;  // autograd records the write
  std::optional<bool> requires_grad;
  std::optional<bool> is_leaf;  // for a tensor which requires gradients; false: its grad_fn existed before the call
};

class GuardedProgram {
 public:
  // Compiles a finished capture. `inputs` are the real tensors of the capture. `numbers` are expressions of sizes to be
  // computed beside the results. Throws InternalError when code generation fails.
  GuardedProgram(Captured captured, const std::vector<at::Tensor>& inputs, const driver::Options& options,
                 bool keep_text = false, const std::vector<sym::ExprId>& numbers = {});
  ~GuardedProgram();

  // Whether an input or constant has a forward-mode tangent, which programs cannot compute. Checked where a
  // forward-mode level is open.
  bool any_tangent(c10::ArrayRef<at::Tensor> inputs) const;
  // Fills `symbols` (symbol_count() values) and tells whether this entry serves these tensors and integers. On a miss,
  // `why` (if not null) receives the first failed guard.
  bool matches(c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<int64_t> ints, int64_t* symbols,
               GuardFailure* why) const;
  size_t symbol_count() const { return symbols_.size(); }

  // Runs with the symbols from matches(). Result i is captured output i. Fills in data-dependent symbols. Throws
  // AssumptionFailed when data contradicts an assumption: then nothing was written, and eager mode must run the call.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, int64_t* symbols);
  // Whether input i can be released after the last step which uses it: no result is the input or a view of it, and no
  // step can raise, so eager mode never repeats the call.
  bool lets_go_of(size_t i) const { return lets_go_[i]; }
  void check_assumptions(const int64_t* symbols) const;  // throws AssumptionFailed
  // As run(), without check_assumptions(). `inputs` holds no reference to released inputs afterwards.
  std::vector<at::Tensor> run_releasing(std::span<at::Tensor> inputs, int64_t* symbols);

  // The input which output i is identical to; -1: none.
  int32_t returned_input(size_t i) const { return returned_input_[i]; }
  size_t output_count() const { return outputs_.size(); }
  // Whether a call missed this entry because of data: a float decision on tensor contents had a different answer
  // (first); a specialized number or bool had a different value (second).
  bool data_went_otherwise() const { return data_went_otherwise_; }
  bool specializations_went_otherwise() const { return specializations_went_otherwise_; }
  // Whether eager mode may repeat a run which raised. The run wrote nothing, drew no random numbers (or the generator
  // was restored), and all operators belong to torch.
  bool may_run_again(bool put_back = false) const { return is_of_torch_ && (put_back || !draws_); }
  bool draws() const { return draws_; }
  // Whether autograd records the calls, and the compile statistics of the backward program.
  bool has_gradients() const { return gradients_ != nullptr; }
  const driver::Stats& backward_stats() const;

  // Whether the program writes to tensors which are not arguments.
  bool writes_state() const;
  // The work is so small that releasing the GIL would cost more than it gains.
  bool is_small() const { return small_; }
  const driver::Stats& stats() const { return stats_; }
  const Captured& captured() const { return captured_; }
  const std::string& graph_text() const { return graph_text_; }
  std::vector<std::string> guard_texts() const;
  std::vector<std::string> input_names() const;
  // Identity guards: the position of the earlier tensor which a later input must be identical to. -1: none.
  int32_t same_as(size_t input) const { return tensor_guards_[input].same_as; }
  std::vector<std::string> float_guard_texts() const;
  const sym::ValidationReport& validation() const { return validation_; }  // empty unless CRESSET_VALIDATE=1
  const std::vector<SymbolBinding>& symbols() const { return symbols_; }
  size_t tensor_count() const { return tensor_guards_.size(); }  // of a call
  const std::shared_ptr<sym::ShapeEnv>& env() const { return env_; }
  const std::vector<sym::SizeGuard>& guards() const { return guards_; }  // the guards checked by a call
  Executor& executor();

 private:
  void make_tensor_guards(const std::vector<at::Tensor>& inputs);
  void make_shape_guards();
  void make_assertions();
  void make_outputs();
  void make_executor(std::unique_ptr<graph::Graph> graph, const driver::Options& options);
  void validate();
  bool tensor_matches(const TensorGuard& guard, const at::Tensor& t, c10::ArrayRef<at::Tensor> inputs,
                      GuardFailure* why) const;
  GuardFailure failure_of(const sym::SizeGuard& guard, const int64_t* symbols) const;
  void fill_symbols(c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<int64_t> ints, int64_t* symbols) const;
  const sym::Symbol* failed_computation(c10::ArrayRef<at::Tensor> inputs, int64_t* symbols) const;
  FloatExpr::Names names_in_floats() const;
  void find_specialized();
  // `guard` is the failed guard.
  bool wants_other_data(size_t guard, c10::ArrayRef<at::Tensor> inputs) const;
  int64_t failed_float_guard(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const;
  bool constants_are_apart() const;
  const TensorGuard* overlapping_constant(c10::ArrayRef<at::Tensor> inputs) const;
  bool overlaps_another(size_t i, c10::ArrayRef<at::Tensor> inputs) const;
  void choose_released();
  c10::SmallVector<int64_t, 16> program_symbols(const int64_t* symbols) const;

  void count_writes(c10::ArrayRef<at::Tensor> inputs) const;

  Captured captured_;  // the graph was moved out
  std::shared_ptr<sym::ShapeEnv> env_;
  std::vector<TensorGuard> tensor_guards_, constant_guards_;
  const bool records_gradients_ = c10::GradMode::is_enabled();
  ConstantMarks constant_marks_;  // fast form of constant_guards_
  // Storages of constants, if the program writes some of them under the assumption of distinct storages.
  std::vector<const c10::StorageImpl*> memories_;
  std::vector<SymbolBinding> symbols_;
  std::vector<sym::SizeGuard> guards_;
  sym::SizeProgram guard_program_;
  FloatGuards float_guards_;
  sym::SizeProgram float_sizes_;  // sizes needed by float_guards_
  // derived integers: slot, and the sizes for each, in order
  std::vector<std::pair<uint32_t, sym::SizeProgram>> computed_;
  std::vector<std::pair<size_t, uint32_t>> specialized_;  // guards which specialize such a number: guard, slot
  sym::SizeProgram assertions_;                           // on the caller's sizes; stages check the assertions on data
  std::vector<std::string> assertion_texts_;
  std::vector<uint32_t> program_slots_;  // Program::symbols -> our slots
  bool program_slots_identity_ = true;
  ResultViews outputs_;
  std::unique_ptr<GradientProgram> gradients_;  // nullptr: no result requires gradients
  std::vector<int32_t> returned_input_;
  std::vector<bool> lets_go_;
  std::vector<DataGuard> data_guards_;
  bool mutates_ = false, is_of_torch_ = false, draws_ = false;
  mutable std::atomic<bool> data_went_otherwise_ = false, specializations_went_otherwise_ = false;
  bool small_ = false;
  driver::Stats stats_;
  std::string graph_text_;
  sym::ValidationReport validation_;
  std::unique_ptr<FrozenWeights> frozen_;  // nullptr: freezing was not requested
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<StagedProgram> staged_;    // replaces executor_ when sizes depend on data
  std::unique_ptr<VisibleStrides> visible_;  // nullptr: the captured strides are exact
};

}  // namespace cresset::bridge
