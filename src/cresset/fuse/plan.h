// Decides about storage and fusion: cuts the graph into kernels and extern calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuse/kernel_builder.h"

namespace cresset::fuse {

// A step: an extern call (node is valid) or a kernel.
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

// Every output, mutation value and extern argument of the plan has a place in memory. Outputs have the strides of eager
// mode.
Plan plan(const Graph& graph, const driver::Options& options);

// Merges kernels greedily, best first, by bytes of memory traffic saved.
void merge_units(const Build& build, std::vector<Unit>& units);

// Orders units by their dependences. Among valid orders, the graph's order is preferred unless it costs much memory.
void sort_units(const Graph& graph, Memory& memory, std::vector<Unit>& units);

// Prints a plan for readers and golden tests, with a line for each kernel:
//   kernel 0 (s0, 64 | 32) = {aten::relu, aten::sum} reads x writes %3
std::string print(const Graph& graph, const Plan& plan);

// Whether an operator run through ATen may return a tensor which shares memory with an argument.
bool may_alias_arguments(const graph::Node& node);

}  // namespace cresset::fuse
