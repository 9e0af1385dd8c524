// Numbers that a program read from tensor data: a part of the graph that computes one, compiled apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/capture.h"
#include "bridge/executor.h"

namespace cresset::bridge {

// Computes the number for given arguments; says whether it is the one that was captured.
class DataGuard {
 public:
  // `slots`: where each symbol's value is in the array given to holds().
  DataGuard(DataRead read, const std::vector<at::Tensor>& constants,
            const std::unordered_map<sym::VarId, uint32_t>& slots);

  at::Scalar value(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const;
  bool holds(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const;
  const std::string& location() const { return location_; }

 private:
  std::unique_ptr<Executor> executor_;
  std::vector<uint32_t> symbol_slots_;
  at::Scalar expected_;
  std::string location_;
};

bool is_random(graph::OpId op);
// Whether the node gives something else when it is run again. Attention without dropout draws nothing.
bool draws_again(const graph::Node& node);

// The graph cut down to one output. Nothing in it may draw random numbers: reading twice would draw twice.
std::unique_ptr<graph::Graph> cut_to(const graph::Graph& graph, graph::ValueId value);

}  // namespace cresset::bridge
