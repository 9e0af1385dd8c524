// Subgraphs which run conditionally or repeatedly (control_flow.h), and the backward subgraph. A subgraph is recorded
// by begin_subgraph(), its operators, and end_subgraph(); abandon_subgraph() undoes it.
//
// Invariants: subgraphs nest. A flush is impossible while a subgraph is recorded: a request for data throws, and
// subgraph_failure() gives the reason. After the end of a subgraph, outer tensors have the contents from before it.
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

  bool in_subgraph() const { return !recordings_.empty(); }
  size_t depth() const { return recordings_.size(); }
  void begin_subgraph();
  Subgraph end_subgraph(const std::vector<at::Tensor>& outputs);  // throws CaptureAbort; the subgraph stays open
  void abandon_subgraph();
  [[gnu::cold]] void fail_subgraph(BreakReason why);  // the first reason counts
  BreakReason take_subgraph_failure() { return std::exchange(subgraph_failure_, {}); }
  const BreakReason& subgraph_failure() const { return subgraph_failure_; }
  // Appends an operator to a finished subgraph.
  graph::ValueId append_to(Subgraph& part, graph::OpId op, std::vector<graph::Arg> args);

  // Return the results of the operator. Throw CaptureAbort when the subgraphs do not fit together.
  std::vector<at::Tensor> add_cond(const at::Tensor& predicate, Subgraph if_true, Subgraph if_false);
  // The placeholders of the carried tensors in both subgraphs of a loop.
  std::vector<at::Tensor> add_carried(const std::vector<at::Tensor>& initial, std::vector<uint32_t>& positions);
  std::vector<at::Tensor> add_while(const std::vector<at::Tensor>& initial, std::vector<uint32_t> carried,
                                    Subgraph condition, Subgraph body);

 private:
  struct Recording;  // of a subgraph
  void restore(Recording& recording);
  void own_outputs(Subgraph& part);
  void unify_outputs(Subgraph& a, Subgraph& b);
  void include_writes(Subgraph& a, Subgraph& b);
  std::vector<at::Tensor> add_control_flow(DataDependentCall call, size_t results);

  Capture& capture_;
  std::vector<std::shared_ptr<Recording>> recordings_;
  BreakReason subgraph_failure_;
};

}  // namespace cresset::bridge
