// Subgraphs which run conditionally or repeatedly (control_flow.h), and the backward subgraph. A subgraph is recorded
// by begin_part(), its operators, and end_part(); abandon_part() undoes it.
//
// Invariants: subgraphs nest. A flush is impossible while a subgraph is recorded: a request for data throws, and
// part_failure() gives the reason. After the end of a subgraph, outer tensors have the contents from before it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "bridge/capture/captured.h"

namespace cresset::bridge {

class Capture;

class SubgraphRecorder {
 public:
  explicit SubgraphRecorder(Capture& capture) : capture_(capture) {}

  bool in_part() const { return !recordings_.empty(); }
  size_t depth() const { return recordings_.size(); }
  void begin_part();
  GraphPart end_part(const std::vector<at::Tensor>& outputs);  // throws CaptureAbort; the subgraph stays open
  void abandon_part();
  [[gnu::cold]] void fail_part(BreakReason why);  // the first reason counts
  BreakReason take_part_failure() { return std::exchange(part_failure_, {}); }
  const BreakReason& part_failure() const { return part_failure_; }
  // Appends an operator to a finished subgraph.
  graph::ValueId append_to(GraphPart& part, graph::OpId op, std::vector<graph::Arg> args);

  // Return the results of the operator. Throw CaptureAbort when the subgraphs do not fit together.
  std::vector<at::Tensor> add_cond(const at::Tensor& predicate, GraphPart if_true, GraphPart if_false);
  // The placeholders of the carried tensors in both subgraphs of a loop.
  std::vector<at::Tensor> add_carried(const std::vector<at::Tensor>& initial, std::vector<uint32_t>& positions);
  std::vector<at::Tensor> add_while(const std::vector<at::Tensor>& initial, std::vector<uint32_t> carried,
                                    GraphPart condition, GraphPart body);

 private:
  struct Recording;  // of a subgraph
  void restore(Recording& recording);
  void own_outputs(GraphPart& part);
  void unify_outputs(GraphPart& a, GraphPart& b);
  void include_writes(GraphPart& a, GraphPart& b);
  std::vector<at::Tensor> add_control_flow(DataDependentCall call, size_t results);

  Capture& capture_;
  std::vector<std::shared_ptr<Recording>> recordings_;
  BreakReason part_failure_;
};

}  // namespace cresset::bridge
