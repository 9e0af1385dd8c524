// The double-backward fallback: runs a program once more through autograd, operator by operator, on the tensors of a
// call. Autograd then has eager mode's graph, from which gradients of any order follow.
//
// The captured graph gives the computation. Its AutogradRecord gives the recorded parts and their form. Results
// computed under no_grad() have no history. Python functions in the autograd graph (hooks, custom functions) repeat
// their actions from the capture.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/aten/node_ptr.h"
#include "bridge/autograd/autograd_record.h"
#include "bridge/capture/captured.h"

namespace cresset::bridge {

class RecordedForward {
 public:
  using IntegerOf = std::function<int64_t(sym::ExprId)>;
  // inputs: with their history. depends: values of which gradients may be wanted, as flags by value.
  RecordedForward(std::shared_ptr<const graph::Graph> graph, const Backward& backward,
                  const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& constants,
                  const std::vector<bool>& depends, IntegerOf integer);

  // By value: what a pass may look at, when nothing that the call computed was kept.
  static std::vector<bool> reads(const graph::Graph& graph, const Backward& backward);

  void know(graph::ValueId id, const at::Tensor& value) { values_[id.index] = value; }
  // Contents at the call: the inputs may have been written since, and eager mode's formulas hold results of operators.
  void keep(graph::ValueId id, at::Tensor contents) { contents_[id] = std::move(contents); }
  // Whether the formulas of the run read values of which the backward subgraph has the contents: those in `known`, and
  // those that do not depend on changed tensors (flags by value).
  bool follows_formulas(const std::vector<bool>& changed, const std::unordered_set<graph::ValueId>& known) const;
  // Throws c10::Error when the run is impossible. Returns the values which were read, as flags by value.
  std::vector<bool> run();
  // Gradients of the leaves, by autograd. Tangents may be undefined.
  std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& tangents) const;

  struct Function;  // a Python function, with the program's values which it reads

 private:
  std::vector<graph::NodeId> needed(std::vector<bool>& read) const;
  void run_node(graph::NodeId id);
  void find_recorded();
  void restore_inputs();
  void restore(graph::ValueId id, const at::Tensor& result) const;
  std::vector<at::Tensor> run_strided(const graph::Node& node, const at::Tensor& view) const;
  void run_steps(const graph::Node& node);
  at::Tensor argument(const RecordedCall* call, graph::ValueId id) const;
  bool is_made_on_record(graph::ValueId id) const;
  void keep_history(const RecordedCall* call, graph::ValueId id);
  void give_history(graph::ValueId id);
  void add_metadata(torch::autograd::Node& node, const std::optional<graph::ValueId>& of) const;
  void add_hooks();
  bool add_hooks_of_parts(const RecordedFunction& function);
  std::shared_ptr<Function> bound(const RecordedFunction& function, const torch::autograd::Node& node) const;

  const std::shared_ptr<const graph::Graph> graph_;
  const Backward& backward_;
  const std::vector<bool>& depends_;
  const IntegerOf integer_;
  std::vector<at::Tensor> values_;  // by ValueId
  std::unordered_map<graph::ValueId, at::Tensor> contents_;
  std::vector<at::Tensor> memory_of_call_;            // inputs and constants
  std::unordered_set<const RecordedCall*> recorded_;  // calls made in no_grad mode which must be recorded nevertheless
  std::vector<at::Tensor> leaves_;                    // by position in Backward::leaves
  std::unordered_map<const RecordedFunction*, NodePtr> nodes_;  // of custom functions
};

}  // namespace cresset::bridge
