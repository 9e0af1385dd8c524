// Runs a captured graph operator by operator with ATen, for sizes' hints: what a piece that runs once is done by. Slow
// beside a compiled program, but nothing has to be compiled; bit for bit what eager computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <unordered_map>
#include <vector>

#include "bridge/capture.h"

namespace cresset::bridge {

// One operator by ATen. Its results are at the places of node.results, with the strides that the graph says; undefined
// where it gave none. `integer` may throw.
std::vector<at::Tensor> run_by_aten(const graph::Graph& graph, const graph::Node& node,
                                    const std::function<at::Tensor(graph::ValueId)>& value,
                                    const std::function<int64_t(sym::ExprId)>& integer);

// Likewise, and what it gave as it gave it.
torch::jit::Stack call_by_aten(const graph::Node& node, const std::function<at::Tensor(graph::ValueId)>& value,
                               const std::function<int64_t(sym::ExprId)>& integer);

// aten::as_strided_scatter by operators that have derivatives, and rules for several passes at once; undefined where it
// cannot be.
at::Tensor write_by_positions(const graph::Graph& graph, const graph::Node& node,
                              const std::function<at::Tensor(graph::ValueId)>& value,
                              const std::function<int64_t(sym::ExprId)>& integer);

class Interpreter {
 public:
  // The tensors that the graph was captured with. They must outlive the interpreter.
  // number: what sizes are, when not what hints say.
  Interpreter(const Captured& captured, const std::vector<at::Tensor>& inputs,
              std::function<std::optional<int64_t>(sym::ExprId)> number = nullptr);

  // Runs every node, then writes to inputs. When an operator raises, what does not depend on it is still done, and the
  // first such exception is kept.
  void run();
  std::exception_ptr error() const { return error_; }

  // Instead of run(): nothing but these values, without effects. Throws c10::Error where they need some. Gives what was
  // looked at, by value.
  std::vector<bool> compute(const std::vector<graph::ValueId>& wanted);
  void know(graph::ValueId id, const at::Tensor& value) { values_[id.index] = value; }
  const at::Tensor& known(graph::ValueId id) const { return values_[id.index]; }  // undefined: not computed

  // Undefined when what it needs could not be computed.
  at::Tensor output(const OutputSpec& spec);
  // The result that is a view of `base`. Throws what says that it cannot be.
  at::Tensor view(const OutputSpec& spec, const at::Tensor& base) const;
  // After run(): the backward part. Undefined tangents only where it is linear and makes no sizes of data.
  std::vector<at::Tensor> gradients(const Backward& backward, const std::vector<at::Tensor>& tangents);
  // From now on operators of the backward part are cast for as on a thread that excludes these keys of autocast.
  void cast_in_part(c10::DispatchKeySet excluded) { excluded_casts_ = excluded; }
  // Likewise, what arrives at the roots that others were computed from. No tangent is undefined.
  std::vector<at::Tensor> arriving(const Backward& backward, const std::vector<at::Tensor>& tangents);

 private:
  struct Missing {};  // a value that could not be computed is needed

  void attempt(const std::function<void()>& step);
  void run_node(const graph::Node& node);
  void run_call(const DataDependentCall& call);
  void read_elements(const DataDependentCall& call);
  void run_control_flow(const DataDependentCall& call);
  void run_nodes(const GraphPart& part);
  void run_with_casts(graph::NodeId id);
  std::vector<at::Tensor> run_part(const GraphPart& part);
  std::vector<at::Tensor> gradients(const Backward& backward, const GraphPart& part, const std::vector<bool>& absent);
  void write_inputs();
  at::Tensor value(graph::ValueId id) const;
  int64_t integer(sym::ExprId e) const;
  std::vector<int64_t> integers(const std::vector<sym::ExprId>& es) const;
  bool shares_memory(const at::Tensor& tensor, graph::ValueId except) const;

  const Captured& captured_;
  const std::function<std::optional<int64_t>(sym::ExprId)> number_;
  graph::Graph& graph_;
  const std::vector<at::Tensor>&inputs_, &constants_;
  std::vector<at::Tensor> values_;  // by ValueId
  std::exception_ptr error_;
  std::optional<c10::DispatchKeySet> excluded_casts_;
};

}  // namespace cresset::bridge
