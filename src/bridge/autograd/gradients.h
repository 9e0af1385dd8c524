// Gradients of a compiled call's results, ahead of time.
//
// Capture sits below autograd, which runs for real on trace tensors. At the end of a graph segment there is an autograd
// graph of the results. It is run once, on proxies of the results' gradients (tangents), as an additional subgraph
// (GradientRecorder::record_gradients): forward and backward form a joint graph. The partitioner (passes/partition.h)
// decides which values the forward program saves and which the backward program computes again. A call runs the forward
// program and gives its results a single autograd node, which runs the backward program.
//
// In three cases the call runs eagerly and keeps autograd's own graph. Python functions in the autograd graph do more
// than compute (frontend/feedback/eager_autograd_calls.h). Results share memory without a common base known to
// autograd. Results are views of leaves which the call made.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "bridge/autograd/saved_tensor_use.h"
#include "bridge/capture/autograd_state.h"
#include "bridge/capture/capture.h"
#include "bridge/executor/executor.h"
#include "bridge/executor/result_views.h"

namespace cresset::bridge {

class StagedProgram;    // staged_program.h
class PartialPrograms;  // partial_gradients.h
class DoubleBackward;   // double_backward.h

// Sizes and strides in which a backward program expects the gradient of a result.
struct TangentLayout {
  std::vector<int64_t> sizes, strides;
  c10::ScalarType dtype;
  c10::Device device = c10::kCPU;
};

// Roots which several results share. Gives for each root its position among the program's outputs when several results
// are views of this output; nullopt when the result itself is the root.
std::vector<std::optional<uint32_t>> shared_roots(const Backward& backward, const std::vector<OutputSpec>& results);

// The roots which are tensors of the caller.
std::vector<Backward::Place> written_roots(const Backward& backward);

// Chooses strides of images inside of the joint graph (passes::channels_last_joint), also of those that the backward
// program takes from the forward program. Returns the pass with its changed nodes.
std::shared_ptr<const Backward> with_images_laid_out(graph::Graph& forward, std::shared_ptr<const Backward> backward);

// Saved tensors with their versions, as in eager mode.
class SavedTensors {
 public:
  void add(const at::Tensor& t);
  // Throws eager mode's error when a saved tensor was written in place. read: the tensors to check; empty: all.
  void check(const std::vector<bool>& read = {}) const;
  std::vector<at::Tensor> tensors;

 private:
  std::vector<uint32_t> versions_;
};

// Replaces the missing gradient of a result where a tensor is required.
at::Tensor zeros(const TangentLayout& layout);
// Replaces each undefined tangent by zeros.
void fill_with_zeros(std::vector<at::Tensor>& tangents, const std::vector<TangentLayout>& layouts);

// Computes the gradients of the leaves, in order, from the gradients of the roots, which have the promised layouts. An
// undefined gradient is absent; at least one root has a gradient. `saved` holds the only references to tensors which no
// further backward pass needs.
using BackwardRun =
    std::function<std::vector<at::Tensor>(std::vector<at::Tensor> tangents, std::vector<at::Tensor> saved)>;

// The ways to run a pass. compiled: the backward program. recorded: operator by operator; used for double-backward
// passes, for tangents which are not plain tensors (such as batches of several passes), and where an active autocast
// would cast (casts_apart). May be empty. arriving: the gradients at the intermediate outputs
// (`Backward::intermediates`); empty where no caller can request them.
struct BackwardRuns {
  BackwardRun compiled, recorded, arriving;
  std::function<bool()> casts_apart;
  bool takes_any = false;  // `compiled` also runs operator by operator
};

// Makes `roots` results of nodes which run `runs`. The first `fresh` roots have no history; the remaining roots are the
// caller's tensors which were written. `backward` supplies groups and intermediate outputs. use: use of the saved
// tensors.
void set_gradients(const std::vector<at::Tensor>& roots, size_t fresh, const std::vector<at::Tensor>& leaves,
                   const Backward& backward, std::vector<TangentLayout> layouts, SavedTensors saved,
                   std::shared_ptr<const SavedUse> use, BackwardRuns runs);

// Milliseconds spent on code generation in first backward passes of the process.
std::atomic<double>& ms_generated_in_backward();

// Number of double-backward passes (double_backward.h) of the process.
std::atomic<int64_t>& double_backward_fallbacks();

// A program with the positions of its symbols in the call's array.
struct Executable {
  Executable() = default;
  Executable(driver::Compiled compiled, const std::vector<at::Tensor>& constants,
             const std::unordered_map<sym::VarId, uint32_t>& slots);
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, const std::vector<int64_t>& symbols) const;

  std::unique_ptr<Executor> executor;
  std::vector<uint32_t> program_slots;
};

// The backward program of a cache entry. It is lowered with the forward program and adds to the entry's guards. The
// first backward pass, if any, generates its code.
class GradientProgram {
 public:
  // Adds the saved values to the graph's outputs. Throws InternalError when the program cannot be compiled.
  GradientProgram(graph::Graph& graph, std::shared_ptr<const Backward> backward, const std::vector<OutputSpec>& results,
                  size_t real_inputs, const std::vector<SymbolBinding>& symbols,
                  const std::vector<at::Tensor>& constants, const driver::Options& options);

  // Called after a run of the forward program: `outputs` are the program's, `results` are the call's and get their
  // gradients.
  void attach(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& outputs, const ResultViews& views,
              std::vector<at::Tensor>& results, const int64_t* symbols, const std::vector<at::Tensor>& before) const;

  // Before a run of the forward program: copies of overwritten tensors which double-backward passes read. attach()
  // takes them as `before`.
  std::vector<at::Tensor> before_writes(c10::ArrayRef<at::Tensor> inputs) const;

  // The entry's guards are final: later knowledge of the environment is not guarded.
  void seal();

  const driver::Stats& stats() const { return code_->stats; }
  // The caller's tensors which are written and become results of the call's node.
  std::vector<Backward::Place> written() const;
  // Sizes which the backward program mentions.
  const std::vector<sym::ExprId>& numbers() const { return numbers_; }

 private:
  struct Given {
    bool is_input;  // an input of the call; else an output of the forward program
    uint32_t position;
  };
  struct Code {  // shared by the nodes
    Code();
    ~Code();
    std::unique_ptr<driver::Deferred> deferred;  // until the first backward pass, which generates the code
    std::once_flag generated;
    std::unordered_map<sym::VarId, uint32_t> slots;
    Executable whole;
    std::unique_ptr<StagedProgram> staged;     // replaces `whole` where sizes depend on data
    std::unique_ptr<PartialPrograms> partial;  // where results may have no gradients
    ResultViews gradients;
    std::vector<at::Tensor> constants;
    std::vector<uint32_t> used_constants;
    size_t symbol_count;
    driver::Stats stats;
    // `layouts` of the tangents, which come first among the inputs.
    struct Written {
      at::Tensor tensor;
      bool unseen;
    };
    std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, const std::vector<TangentLayout>& layouts,
                                std::vector<int64_t> symbols, const std::vector<Written>& live);
    void generate();
  };
  class Builder;
  void keep_for_partial(const graph::Graph& program, const driver::Options& options);
  void compile(std::unique_ptr<graph::Graph> program, std::vector<DataDependentCall> calls,
               const std::vector<SymbolBinding>& symbols, const driver::Options& options);

  std::shared_ptr<const Backward> backward_;
  std::vector<std::optional<uint32_t>> shared_roots_;
  std::vector<Given> given_;
  std::shared_ptr<Code> code_;
  sym::SizeProgram layouts_;  // sizes and strides of the tangents, in sequence
  std::vector<TangentLayout> layout_kinds_;
  std::vector<sym::ExprId> numbers_;
  std::shared_ptr<const SavedUse> use_;
  std::shared_ptr<DoubleBackward> recorded_;  // nullptr: double-backward passes are impossible
};

}  // namespace cresset::bridge
