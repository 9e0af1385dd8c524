// What values of an open capture are for the very tensors that it is captured with: computed by ATen, operator by
// operator, and apart from the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

class ValuesNow {
 public:
  // Of a capture, whose they are: it outlives this.
  ValuesNow(const graph::Graph& graph, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& constants)
      : graph_(graph), inputs_(inputs), constants_(constants) {}

  // The values, in elements that operators read and make where nothing is known yet. nullopt: they cannot be known,
  // since random numbers or sizes of data are on the way, or tensors that are on no CPU.
  std::optional<int64_t> work(const std::vector<graph::ValueId>& values);
  // Of what work() said something. Throws what operators throw. Operators must run for real (Capture::StepAside).
  at::Tensor of(graph::ValueId value);
  std::optional<int64_t> integer(sym::ExprId e) const;  // of sizes and other numbers
  int64_t elements(graph::ValueId value) const;
  void forget_large();  // values that are cheap to keep stay

 private:
  bool is_known(graph::ValueId value) const;
  // The nodes to run, in their order.
  std::optional<std::vector<graph::NodeId>> needed(std::vector<graph::ValueId> values) const;
  at::Tensor known(graph::ValueId value) const;

  const graph::Graph& graph_;
  const std::vector<at::Tensor>&inputs_, &constants_;
  std::unordered_map<uint32_t, at::Tensor> made_;  // by ValueId
};

}  // namespace cresset::bridge
