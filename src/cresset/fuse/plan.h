// Decides what is stored and what is fused: the graph cut into kernels and extern calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuse/kernel_builder.h"

namespace cresset::fuse {

// One step: an extern call (node is valid) or a kernel.
struct Unit {
  graph::NodeId node;
  Group group;
  std::vector<ValueId> reads, writes;  // bases
  BuiltKernel built;
};

struct Plan {
  std::unique_ptr<Memory> memory;
  std::vector<Unit> units;  // in execution order
};

// Every output, mutation value and extern argument of the plan has a place in memory; outputs have eager's strides.
Plan plan(const Graph& graph, const driver::Options& options);

// Greedy best-first merging of kernels by bytes of memory traffic saved.
void merge_units(const Build& build, std::vector<Unit>& units);

// Orders units by their dependences, keeping to the graph's order where free and where it does not cost much memory.
void sort_units(const Graph& graph, Memory& memory, std::vector<Unit>& units);

// For people and golden tests: one line a kernel.
//   kernel 0 (s0, 64 | 32) = {aten::relu, aten::sum} reads x writes %3
std::string print(const Graph& graph, const Plan& plan);

// Whether running an operator through ATen may return a tensor that shares memory with an argument.
bool may_alias_arguments(const graph::Node& node);

}  // namespace cresset::fuse
