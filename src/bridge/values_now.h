// What values of an open capture are for the very tensors that it is captured with: computed by ATen, operator by
// operator, and apart from the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

class ValuesNow {
 public:
  struct Element {
    graph::ValueId of;
    int64_t index;
  };
  // What a symbol stands for, if that is a number in data.
  using ElementOf = std::function<std::optional<Element>(sym::VarId)>;

  // Of a capture, whose they are: it outlives this.
  ValuesNow(const graph::Graph& graph, const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& constants,
            ElementOf element)
      : graph_(graph), inputs_(inputs), constants_(constants), element_(std::move(element)) {}

  // The values, in elements that operators read and make where nothing is known yet. nullopt: they cannot be known,
  // since random numbers or sizes of data are on the way, or tensors that are on no CPU.
  std::optional<int64_t> work(const std::vector<graph::ValueId>& values);
  // Of what work() said something. Throws what operators throw. Operators must run for real (Capture::StepAside).
  at::Tensor of(graph::ValueId value);
  std::optional<int64_t> integer(sym::ExprId e) const;  // of sizes and other numbers
  // The values that its numbers in data are read from; nullopt where it has others that nobody knows.
  std::optional<std::vector<graph::ValueId>> elements_in(sym::ExprId e) const;
  std::optional<int64_t> number(sym::ExprId e);  // likewise, of which work() said something
  int64_t elements(graph::ValueId value) const;
  void forget_large();  // values that are cheap to keep stay

 private:
  bool is_known(graph::ValueId value) const;
  bool add_numbers(const std::vector<graph::Arg>& args, std::vector<graph::ValueId>& values) const;
  // The nodes to run, in their order.
  std::optional<std::vector<graph::NodeId>> needed(std::vector<graph::ValueId> values) const;
  at::Tensor known(graph::ValueId value) const;

  const graph::Graph& graph_;
  const std::vector<at::Tensor>&inputs_, &constants_;
  ElementOf element_;
  std::unordered_map<uint32_t, at::Tensor> made_;  // by ValueId
};

}  // namespace cresset::bridge
