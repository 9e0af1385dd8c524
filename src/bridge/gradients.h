// Gradients of what a compiled call returns, ahead of time.
//
// Capture sits below autograd, which runs for real on trace tensors: when a piece ends, it has a record of how the
// results came about. That record is run once, on stand-ins of the results' gradients (tangents), as one more part of
// the graph (Capture::record_gradients): forward and backward are one joint graph. A partition (passes/partition.h)
// says which values the forward program saves and which the backward program computes again. A call runs the forward
// program and gives its results one node of autograd's, which runs the backward program.
//
// Left to autograd's own record, with the call running natively: custom functions and hooks of Python's (they may do
// more than compute), results that share memory though autograd knows of no common base, inputs written in place that
// want gradients, leaves that the call made.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bridge/capture.h"
#include "bridge/executor.h"
#include "bridge/result_views.h"

namespace cresset::bridge {

class StagedProgram;  // stages.h

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

// Eager saves tensors and remembers their versions; so does a node of ours.
class SavedTensors {
 public:
  void add(const at::Tensor& t);
  void check() const;  // throws what eager throws when one was written in place
  std::vector<at::Tensor> tensors;

 private:
  std::vector<uint32_t> versions_;
};

// Gradients of the leaves, in order, from those of the roots, all of which are given and lie as was promised.
// `saved` is the only reference to what no other backward pass needs.
using BackwardRun =
    std::function<std::vector<at::Tensor>(std::vector<at::Tensor> tangents, std::vector<at::Tensor> saved)>;

// Makes `roots`, fresh tensors without a history, the results of a node that runs `run`.
void set_gradients(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& leaves,
                   std::vector<TangentLayout> layouts, SavedTensors saved, BackwardRun run);

// The backward program of one compiled variant.
class GradientProgram {
 public:
  // Adds what it will be given to the graph's outputs. Throws InternalError when it cannot be compiled.
  GradientProgram(graph::Graph& graph, std::shared_ptr<const Backward> backward, const std::vector<OutputSpec>& results,
                  size_t real_inputs, const std::vector<SymbolBinding>& symbols,
                  const std::vector<at::Tensor>& constants, const driver::Options& options);

  // After a run of the forward program: its outputs, and `results` of the call, which get their gradients.
  void attach(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& outputs, const ResultViews& views,
              std::vector<at::Tensor>& results, const int64_t* symbols) const;

  const driver::Stats& stats() const;
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
    std::unique_ptr<Executor> executor;
    std::vector<uint32_t> program_slots;
    std::unique_ptr<StagedProgram> staged;  // instead, where sizes depend on data
    ResultViews gradients;
    std::vector<at::Tensor> constants;
    std::vector<uint32_t> used_constants;
    size_t symbol_count;
    std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, std::vector<int64_t> symbols) const;
  };
  class Builder;
  void compile(std::unique_ptr<graph::Graph> program, std::vector<DataDependentCall> calls,
               const std::vector<SymbolBinding>& symbols, const driver::Options& options);

  std::shared_ptr<const Backward> backward_;
  std::vector<std::optional<uint32_t>> shared_roots_;
  std::vector<Given> given_;
  std::shared_ptr<Code> code_;
  sym::SizeProgram layouts_;  // of the tangents: sizes and strides, one after the other
  std::vector<TangentLayout> layout_kinds_;
  std::vector<sym::ExprId> numbers_;
};

}  // namespace cresset::bridge
