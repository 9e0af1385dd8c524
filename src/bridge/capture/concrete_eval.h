// Concrete evaluation: values of an open capture for the captured call's own tensors, computed by ATen, operator by
// operator, and separately from the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace cresset::bridge {

class ConcreteEval {
 public:
  struct Element {
    graph::ValueId of;
    int64_t index;
  };
  // Maps a symbol to the tensor element which it stands for, if it comes from data.
  using ElementOf = std::function<std::optional<Element>(sym::VarId)>;

  // Takes a capture's graph and tensors, which outlive this object.
  ConcreteEval(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
               const std::vector<at::Tensor>& constants, ElementOf element)
      : graph_(graph), inputs_(inputs), constants_(constants), element_(std::move(element)) {}

  // The cost of computing the values, counted in elements which unevaluated operators read and write. nullopt: the
  // values are unavailable, because they depend on random numbers, data-dependent sizes, or tensors outside the CPU.
  std::optional<int64_t> work(const std::vector<graph::ValueId>& values);
  // The value, after work() accepted it. Throws exceptions of operators. Operators must run for real
  // (Capture::StepAside).
  at::Tensor of(graph::ValueId value);
  std::optional<int64_t> integer(sym::ExprId e) const;  // for sizes and other backed numbers
  // The values from which the expression's data-dependent numbers are read; nullopt where a number has no known source.
  std::optional<std::vector<graph::ValueId>> elements_in(sym::ExprId e) const;
  std::optional<int64_t> number(sym::ExprId e);  // as integer(), including data-dependent numbers accepted by work()
  int64_t elements(graph::ValueId value) const;
  void forget_large();  // keeps values which are cheap to hold

 private:
  bool is_known(graph::ValueId value) const;
  bool add_numbers(const std::vector<graph::Arg>& args, std::vector<graph::ValueId>& values) const;
  // The nodes to run, in order.
  std::optional<std::vector<graph::NodeId>> needed(std::vector<graph::ValueId> values) const;
  at::Tensor known(graph::ValueId value) const;

  const graph::Graph& graph_;
  const std::vector<at::Tensor>&inputs_, &constants_;
  ElementOf element_;
  std::unordered_map<uint32_t, at::Tensor> made_;  // by ValueId
};

}  // namespace cresset::bridge
