// Programs with data-dependent sizes: a graph cut at the operators that make them.
//
// `nonzero` and its kin cannot say how large their result is before they ran. Capture gives the result as one more
// graph input whose sizes are unbacked symbols, and notes where in the graph it is made. A call then runs in stages:
// the part of the graph that the operator's arguments need, the operator itself through ATen, its sizes bound to their
// symbols, the next part. Every part is an ordinary program: within it all sizes are known when it starts, so memory is
// planned and kernels are launched as ever. Operators of control flow (control_flow.h) end stages, too.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bridge/capture.h"
#include "bridge/executor.h"
#include "bridge/op_entry.h"
#include "compile/compile.h"
#include "sym/size_program.h"

namespace cresset::bridge {

// Whether the operator's result sizes depend on data, in a way that stages can serve.
bool makes_data_dependent_sizes(graph::OpId op);
// Types of its results, with fresh unbacked symbols; `fresh` receives (result, dimension) of each. Aborts the capture
// when an argument's kind is not served.
std::vector<graph::TensorType> data_dependent_types(graph::Graph& graph, graph::OpId op,
                                                    const std::vector<graph::Arg>& args,
                                                    std::vector<std::pair<uint32_t, uint32_t>>& fresh);

// Whether the call reads the elements of its argument, which are then `made`.
bool reads_elements(const DataDependentCall& call);
int64_t element(const at::Tensor& tensor, uint32_t which);

// Calls the operator with arguments found by `tensor` and `integer`; its results in the layout that their types
// promise.
std::vector<at::Tensor> call_data_dependent(const c10::OperatorHandle& op, const std::vector<graph::Arg>& args,
                                            const std::function<at::Tensor(graph::ValueId)>& tensor,
                                            const std::function<int64_t(sym::ExprId)>& integer);

// Takes away the calls that nothing needs: no value of theirs, and no size or number that they give, which `kept` may
// mention. What only they fed goes with them.
void drop_unused_calls(graph::Graph& graph, std::vector<DataDependentCall>& calls,
                       const std::vector<SymbolBinding>& symbols, size_t real_inputs, std::vector<sym::ExprId> kept);

// The same for a part: nodes and calls that its outputs and `kept` do not need.
void drop_unused(graph::Graph& graph, GraphPart& part, const std::vector<SymbolBinding>& symbols,
                 const std::vector<sym::ExprId>& kept);

class StagedProgram {
 public:
  // Cuts and compiles. `slots`: where the value of each symbol stands in the array given to run().
  StagedProgram(std::unique_ptr<graph::Graph> graph, std::vector<DataDependentCall> calls,
                const std::vector<SymbolBinding>& symbols, size_t real_inputs, const std::vector<at::Tensor>& constants,
                const driver::Options& options, const StagedProgram* around = nullptr);

  // Results of the graph; fills in the symbols that data gives. Throws AssumptionFailed.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, int64_t* symbols);

  Executor& last() { return *stages_.back().executor; }
  const driver::Stats& stats() const { return stats_; }
  size_t size() const { return stages_.size(); }

 private:
  // Where a tensor is at run time: constants, or the table of inputs, made tensors and values kept between stages.
  struct Place {
    bool is_constant = false;
    uint32_t index = 0;
  };
  struct Binding {
    uint32_t slot, place, dim;
    bool element = false;  // else a size
  };
  struct Stage {
    std::unique_ptr<Executor> executor;     // null: nothing to compute before the operator
    std::vector<uint32_t> symbols;          // Program::symbols -> slots
    std::vector<uint32_t> inputs, outputs;  // places in the table
    // What follows, except in the last stage.
    std::optional<c10::OperatorHandle> op;
    std::vector<graph::Arg> args;
    std::vector<sym::ExprId> numbers;  // among its arguments, and what they are at a call
    sym::SizeProgram values;
    std::vector<uint32_t> made;
    bool reads_elements = false;
    std::vector<std::unique_ptr<StagedProgram>> parts;  // of an operator of control flow, which `loops` or not
    bool loops = false;
    std::vector<uint32_t> given, carried;  // places: what the parts use beside the table's inputs; what a turn is given
    std::vector<Binding> bindings;
    sym::SizeProgram assertions;
    std::vector<std::string> messages;
  };

  class Cutter;
  void end_with(Stage& stage, DataDependentCall call, const std::vector<SymbolBinding>& symbols,
                size_t real_inputs) const;
  void add_parts(Stage& stage, const graph::Graph& graph, std::vector<GraphPart> parts,
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
  const StagedProgram* around_;  // while it is made: of a part, what that is a part of
  std::vector<at::Tensor> constants_;
  std::unordered_map<graph::ValueId, Place> places_;  // of the operators' arguments
  std::vector<Stage> stages_;
  size_t table_size_ = 0, graph_inputs_ = 0;
  driver::Stats stats_;
};

}  // namespace cresset::bridge
