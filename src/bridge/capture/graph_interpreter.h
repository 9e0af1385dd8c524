// Runs a captured graph operator by operator with ATen at the sizes' hints, for a graph segment which runs only once.
// The interpreter is slower than a compiled program but needs no compilation. Its results are bit for bit eager mode's.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <unordered_map>
#include <vector>

#include "bridge/capture/capture.h"

namespace cresset::bridge {

// Runs an operator by ATen. Its results stand at the positions of node.results, with the strides of the graph; a
// missing result is undefined. `integer` may throw.
std::vector<at::Tensor> run_by_aten(const graph::Graph& graph, const graph::Node& node,
                                    const std::function<at::Tensor(graph::ValueId)>& value,
                                    const std::function<int64_t(sym::ExprId)>& integer);

// As run_by_aten(), but returns the unmodified stack.
torch::jit::Stack call_by_aten(const graph::Node& node, const std::function<at::Tensor(graph::ValueId)>& value,
                               const std::function<int64_t(sym::ExprId)>& integer);

// aten::as_strided_scatter by operators that have derivatives, and rules for several passes at once; undefined where it
// cannot be.
at::Tensor write_by_positions(const graph::Graph& graph, const graph::Node& node,
                              const std::function<at::Tensor(graph::ValueId)>& value,
                              const std::function<int64_t(sym::ExprId)>& integer);

class Interpreter {
 public:
  // Takes the tensors of the capture, which must outlive the interpreter. `number` supplies sizes in place of hints.
  Interpreter(const Captured& captured, const std::vector<at::Tensor>& inputs,
              std::function<std::optional<int64_t>(sym::ExprId)> number = nullptr);

  // Runs every node, then writes to inputs. When an operator raises, independent operators still run, and the first
  // exception is kept.
  void run();
  std::exception_ptr error() const { return error_; }

  // Alternative to run(): computes only these values, without side effects. Throws c10::Error where they need side
  // effects. Returns the values which were read, as flags by value.
  std::vector<bool> compute(const std::vector<graph::ValueId>& wanted);
  void know(graph::ValueId id, const at::Tensor& value) { values_[id.index] = value; }
  const at::Tensor& known(graph::ValueId id) const { return values_[id.index]; }  // undefined: not computed

  // Undefined when the output's operands could not be computed.
  at::Tensor output(const OutputSpec& spec);
  // The result as a view of `base`. Throws an explanation when this is impossible.
  at::Tensor view(const OutputSpec& spec, const at::Tensor& base) const;
  // After run(): computes the backward subgraph. Tangents may be undefined only where it is linear and makes no
  // data-dependent sizes.
  std::vector<at::Tensor> gradients(const Backward& backward, const std::vector<at::Tensor>& tangents);
  // From now on the backward subgraph follows autocast as on a thread which excludes these autocast keys.
  void cast_in_subgraph(c10::DispatchKeySet excluded) { excluded_casts_ = excluded; }
  // After run(): the gradients arriving at intermediate outputs. No tangent is undefined.
  std::vector<at::Tensor> arriving(const Backward& backward, const std::vector<at::Tensor>& tangents);

 private:
  struct Missing {};  // a needed value could not be computed

  void attempt(const std::function<void()>& step);
  void run_node(const graph::Node& node);
  void run_call(const DataDependentCall& call);
  void read_elements(const DataDependentCall& call);
  void run_control_flow(const DataDependentCall& call);
  void run_nodes(const Subgraph& part);
  void run_with_casts(graph::NodeId id);
  std::vector<at::Tensor> run_subgraph(const Subgraph& part);
  std::vector<at::Tensor> gradients(const Backward& backward, const Subgraph& part, const std::vector<bool>& absent);
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
