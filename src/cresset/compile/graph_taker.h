// Another compiler in place of this one: it takes each graph before the passes.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace cresset::driver {

class GraphTaker {
 public:
  virtual ~GraphTaker() = default;
  // Replaces the nodes of the graph by a call of the other compiler's code. Inputs, outputs and writes stay the same
  // values.
  virtual void take(graph::Graph& graph) = 0;
};

// What the nodes of a graph need and make.
struct Boundary {
  std::vector<graph::ValueId> values;   // inputs and constants which the nodes read
  std::vector<graph::ExprId> symbols;   // variables of the sizes which they need
  std::vector<graph::ValueId> results;  // their results which are outputs, or written to inputs
};
Boundary boundary(const graph::Graph& graph);

// One node takes the place of all: op(id, values, symbols) -> results.
void replace_nodes(graph::Graph& graph, std::string_view op, int64_t id, const Boundary& boundary);

}  // namespace cresset::driver
