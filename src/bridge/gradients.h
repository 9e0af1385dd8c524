// Gradients of what a compiled call returns, ahead of time.
//
// Capture sits below autograd, which runs for real on trace tensors: when a piece ends, it has a record of how the
// results came about. That record is run once, on stand-ins of the results' gradients (tangents), as one more part of
// the graph (Capture::record_gradients): forward and backward are one joint graph. A partition (passes/partition.h)
// says which values the forward program saves and which the backward program computes again. A call runs the forward
// program and gives its results one node of autograd's, which runs the backward program.
//
// Left to autograd's own record, with the call running natively: functions of Python's in it that do more than compute
// (frontend/left_to_autograd.h), results that share memory though autograd knows of no common base, views of leaves
// that the call made.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "bridge/capture.h"
#include "bridge/executor.h"
#include "bridge/result_views.h"
#include "bridge/saved_use.h"

namespace cresset::bridge {

class StagedProgram;    // stages.h
class PartialPrograms;  // partial_gradients.h
class RecordedPass;     // recorded_pass.h

int open_regions_of_autocast();  // of this thread
bool has_tangent(const at::Tensor& tensor);

// A torch.autograd.Function, or a node that runs one's backward.
bool is_python_function(const torch::autograd::Node& node);

// The node that a tensor is a result of; nullptr for leaves.
const void* gradient_node(const at::Tensor& tensor);

// Sizes and strides in which a backward program takes the gradient of a result.
struct TangentLayout {
  std::vector<int64_t> sizes, strides;
  c10::ScalarType dtype;
  c10::Device device = c10::kCPU;
};

// Where the results are roots of the backward pass: by position among the program's outputs when several results are
// views of one, else nullopt, and the result is a root by itself.
std::vector<std::optional<uint32_t>> shared_roots(const Backward& backward, const std::vector<OutputSpec>& results);

// The tensor in that place of a call with these tensors.
const at::Tensor& tensor_at(const Backward::Place& place, c10::ArrayRef<at::Tensor> inputs,
                            const std::vector<at::Tensor>& constants, const std::vector<at::Tensor>& results);

// What a backward pass writes. unseen: autograd is not told.
void write_live(const at::Tensor& tensor, const at::Tensor& value, bool unseen);

// Those roots that are tensors of the caller's.
std::vector<Backward::Place> written_roots(const Backward& backward);

// How often a tensor was written; 0 of those that do not count.
uint32_t version_of(const at::Tensor& t);

// Eager saves tensors and remembers their versions; so does a node of ours.
class SavedTensors {
 public:
  void add(const at::Tensor& t);
  // Throws what eager throws when one was written in place. read: which of them are looked at; empty: all.
  void check(const std::vector<bool>& read = {}) const;
  std::vector<at::Tensor> tensors;

 private:
  std::vector<uint32_t> versions_;
};

// What stands for the gradient of a result that has none, where there must be one.
at::Tensor zeros(const TangentLayout& layout);
// Likewise for each undefined one.
void fill_with_zeros(std::vector<at::Tensor>& tangents, const std::vector<TangentLayout>& layouts);

// Gradients of the leaves, in order, from those of the roots, which lie as was promised. Of either, undefined ones are
// not there; some root's is. `saved` is the only reference to what no other backward pass needs.
using BackwardRun =
    std::function<std::vector<at::Tensor>(std::vector<at::Tensor> tangents, std::vector<at::Tensor> saved)>;

// How a pass may be made. compiled: by the backward program. recorded: operator by operator, where gradients of the
// gradients are wanted, where tangents are more than plain tensors (those of several passes at once), and where
// autocast is on and would cast (casts_apart); may be empty. arriving: what arrives at the roots of `Backward::passed`;
// empty where nobody can ask for it.
struct BackwardRuns {
  BackwardRun compiled, recorded, arriving;
  std::function<bool()> casts_apart;
  bool takes_any = false;  // `compiled` goes operator by operator as well
};

// Makes `roots` the results of nodes that run `runs`: first `fresh` tensors without a history, then those of the
// caller's that were written. `backward`: its groups and passed roots. use: of what was saved.
void set_gradients(const std::vector<at::Tensor>& roots, size_t fresh, const std::vector<at::Tensor>& leaves,
                   const Backward& backward, std::vector<TangentLayout> layouts, SavedTensors saved,
                   std::shared_ptr<const SavedUse> use, BackwardRuns runs);

// Milliseconds of code generation in first backward passes, of the process.
std::atomic<double>& ms_generated_in_backward();

// Backward passes that autograd recorded (recorded_pass.h), of the process.
std::atomic<int64_t>& recorded_passes();

// A program with where its symbols are among the call's.
struct Executable {
  Executable() = default;
  Executable(driver::Compiled compiled, const std::vector<at::Tensor>& constants,
             const std::unordered_map<sym::VarId, uint32_t>& slots);
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, const std::vector<int64_t>& symbols) const;

  std::unique_ptr<Executor> executor;
  std::vector<uint32_t> program_slots;
};

// The backward program of one compiled variant. It is lowered with the forward program, whose guards it adds to; its
// code is generated by the first backward pass, if there is one.
class GradientProgram {
 public:
  // Adds what it will be given to the graph's outputs. Throws InternalError when it cannot be compiled.
  GradientProgram(graph::Graph& graph, std::shared_ptr<const Backward> backward, const std::vector<OutputSpec>& results,
                  size_t real_inputs, const std::vector<SymbolBinding>& symbols,
                  const std::vector<at::Tensor>& constants, const driver::Options& options);

  // After a run of the forward program: its outputs, and `results` of the call, which get their gradients.
  // before: what before_writes() gave.
  void attach(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& outputs, const ResultViews& views,
              std::vector<at::Tensor>& results, const int64_t* symbols, const std::vector<at::Tensor>& before) const;

  // Before a run of the forward program: copies of what it overwrites, where passes that are recorded themselves need
  // it.
  std::vector<at::Tensor> before_writes(c10::ArrayRef<at::Tensor> inputs) const;

  // The guards of the variant are made: what the environment learns from now on is no longer among them.
  void seal();

  const driver::Stats& stats() const { return code_->stats; }
  // Tensors of the caller's that are written and become results of the call's node.
  std::vector<Backward::Place> written() const;
  // What mentions a size of its own.
  const std::vector<sym::ExprId>& numbers() const { return numbers_; }

 private:
  struct Given {
    bool is_input;  // of the call, else an output of the forward program
    uint32_t position;
  };
  struct Code {  // what nodes share
    Code();
    ~Code();
    std::unique_ptr<driver::Deferred> deferred;  // until the first backward pass, which generates the code
    std::once_flag generated;
    std::unordered_map<sym::VarId, uint32_t> slots;
    Executable whole;
    std::unique_ptr<StagedProgram> staged;     // instead, where sizes depend on data
    std::unique_ptr<PartialPrograms> partial;  // where results may be without gradients
    ResultViews gradients;
    std::vector<at::Tensor> constants;
    std::vector<uint32_t> used_constants;
    size_t symbol_count;
    driver::Stats stats;
    // `layouts`: of the tangents, which come first.
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
  sym::SizeProgram layouts_;  // of the tangents: sizes and strides, one after the other
  std::vector<TangentLayout> layout_kinds_;
  std::vector<sym::ExprId> numbers_;
  std::shared_ptr<const SavedUse> use_;
  std::shared_ptr<RecordedPass> recorded_;  // nullptr: there cannot be such passes
};

}  // namespace cresset::bridge
