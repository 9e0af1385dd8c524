// A program done once more through autograd, operator by operator, on the tensors that a call was given: autograd then
// has the record that eager mode would have, from which gradients of any order come.
//
// The graph says what was computed, its AutogradRecord which of that autograd has recorded, and how: results computed
// under no_grad() have no history, and functions of Python's in the record (hooks, custom functions) do again what they
// did when the record was run for the capture.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/autograd_record.h"
#include "bridge/captured.h"
#include "bridge/node_ptr.h"

namespace cresset::bridge {

class RecordedForward {
 public:
  using IntegerOf = std::function<int64_t(sym::ExprId)>;
  // inputs: with their history. depends: values that gradients may be wanted of.
  RecordedForward(std::shared_ptr<const graph::Graph> graph, const Backward& backward,
                  const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& constants,
                  const std::vector<bool>& depends, IntegerOf integer);

  // By value: what a pass may look at, when nothing that the call computed was kept.
  static std::vector<bool> reads(const graph::Graph& graph, const Backward& backward);

  void know(graph::ValueId id, const at::Tensor& value) { values_[id.index] = value; }
  // Throws c10::Error where it cannot be done. Gives what was looked at, by value.
  std::vector<bool> run();
  // Of the leaves, by autograd. Some tangents may be undefined.
  std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& tangents) const;

  struct Function;  // of Python's, with what it reads of the program

 private:
  std::vector<graph::NodeId> needed(std::vector<bool>& read) const;
  void run_node(graph::NodeId id);
  void find_recorded();
  void run_steps(const graph::Node& node);
  at::Tensor argument(const RecordedCall* call, graph::ValueId id) const;
  void give_history(graph::ValueId id);
  void add_metadata(torch::autograd::Node& node, const std::optional<graph::ValueId>& of) const;
  void add_hooks();
  std::shared_ptr<Function> bound(const RecordedFunction& function, const torch::autograd::Node& node) const;

  const std::shared_ptr<const graph::Graph> graph_;
  const Backward& backward_;
  const std::vector<bool>& depends_;
  const IntegerOf integer_;
  std::vector<at::Tensor> values_;                              // by ValueId
  std::unordered_set<const RecordedCall*> recorded_;            // though they were called where nothing is
  std::vector<at::Tensor> leaves_;                              // by position in Backward::leaves
  std::unordered_map<const RecordedFunction*, NodePtr> nodes_;  // of custom functions
};

}  // namespace cresset::bridge
