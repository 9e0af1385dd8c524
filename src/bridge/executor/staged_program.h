// Programs with data-dependent sizes: a graph cut at the operators which make these sizes.
//
// The size of a `nonzero` result is unknown before the operator has run. Capture represents the result as an additional
// graph input with unbacked symbols as sizes, and records its position in the graph. A call runs in stages: the part of
// the graph needed by the operator's arguments; the operator itself through ATen; the next part, with the new sizes
// bound to their symbols. Every part is an ordinary program: all its sizes are known when it starts, so memory planning
// and kernel launches need no special case. Control-flow operators (control_flow.h) also end stages.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bridge/aten/op_schema.h"
#include "bridge/capture/capture.h"
#include "bridge/executor/executor.h"
#include "compile/compile.h"
#include "sym/size_program.h"

namespace cresset::bridge {

class StagedProgram {
 public:
  // Cuts and compiles the graph. `slots`: index of each symbol's value in the array passed to run().
  StagedProgram(std::unique_ptr<graph::Graph> graph, std::vector<DataDependentCall> calls,
                const std::vector<SymbolBinding>& symbols, size_t real_inputs, const std::vector<at::Tensor>& constants,
                const driver::Options& options, const StagedProgram* around = nullptr);

  // Returns the results of the graph and fills in data-dependent symbols. Throws AssumptionFailed.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, int64_t* symbols);

  Executor& last() { return *stages_.back().executor; }
  const driver::Stats& stats() const { return stats_; }
  size_t size() const { return stages_.size(); }

 private:
  // Location of a tensor at run time: in the constants, or in the table of inputs, made tensors and values kept between
  // stages.
  struct Place {
    bool is_constant = false;
    uint32_t index = 0;
  };
  struct Binding {
    uint32_t slot, place, dim;
    bool element = false;  // an element; else a size
  };
  struct Stage {
    std::unique_ptr<Executor> executor;     // null: no computation before the operator
    std::vector<uint32_t> symbols;          // Program::symbols -> slots
    std::vector<uint32_t> inputs, outputs;  // places in the table
    // The operator after the stage; absent in the last stage.
    std::optional<c10::OperatorHandle> op;
    std::vector<graph::Arg> args;
    std::vector<sym::ExprId> numbers;  // integer arguments of the operator; `values` computes them at a call
    sym::SizeProgram values;
    std::vector<uint32_t> made;
    bool reads_elements = false;
    std::vector<std::unique_ptr<StagedProgram>> parts;  // subgraphs of a control-flow operator; `loops`: it is a loop
    bool loops = false;
    std::vector<uint32_t> given, carried;  // places: values of outer stages used by the subgraphs; carried tensors
    std::vector<Binding> bindings;
    sym::SizeProgram assertions;
    std::vector<std::string> messages;
  };

  class Cutter;
  void end_with(Stage& stage, DataDependentCall call, const std::vector<SymbolBinding>& symbols,
                size_t real_inputs) const;
  void add_parts(Stage& stage, const graph::Graph& graph, std::vector<Subgraph> parts,
                 const std::vector<SymbolBinding>& symbols, size_t real_inputs, const driver::Options& options);
  at::Tensor at(graph::ValueId value, const std::vector<at::Tensor>& table) const;
  void run_parts(const Stage& stage, std::vector<at::Tensor>& table, int64_t* symbols) const;
  void make_assertions(const std::vector<SymbolBinding>& symbols, const std::unordered_map<sym::VarId, uint32_t>& slots,
                       size_t real_inputs);
  bool binds(uint32_t slot) const;
  bool is_bound(uint32_t slot) const;
  static void bind(const Stage& stage, const std::vector<at::Tensor>& table, int64_t* symbols);
  void call(const Stage& stage, std::vector<at::Tensor>& table, int64_t* symbols) const;
  void check(const Stage& stage, const int64_t* symbols) const;

  std::shared_ptr<sym::ShapeEnv> env_;
  const StagedProgram* around_;  // for a subgraph, during construction only: the program around it
  std::vector<at::Tensor> constants_;
  std::unordered_map<graph::ValueId, Place> places_;  // of the operators' arguments
  std::vector<Stage> stages_;
  size_t table_size_ = 0, graph_inputs_ = 0;
  driver::Stats stats_;
};

}  // namespace cresset::bridge
