// torch.cond and torch.while_loop as operators of the graph.
//
// Capture records each branch and body by running it once. Its nodes leave the graph's order and become a Subgraph. A
// subgraph is not a function: it uses values of the surrounding graph (operands and closures) directly and shares the
// graph's symbols. A write of the subgraph to an outer tensor becomes an additional result of the operator.
//
// At run time the operator ends a stage (staged_program.h). A subgraph is a staged program of its own; its inputs are
// all tensors of the surrounding stages. Subgraphs therefore nest and may make data-dependent sizes. A loop writes its
// carried tensors into places of this table between iterations. Only the host decides; within a stage there is no
// branch.
#pragma once

#include "bridge/capture/capture.h"

namespace cresset::bridge {

bool is_cond(const DataDependentCall& call);
bool is_while_loop(const DataDependentCall& call);
inline bool is_control_flow(const DataDependentCall& call) { return !call.parts.empty(); }

// Outer values which the subgraph uses without computing them, each once.
std::vector<graph::ValueId> used_from_outside(const graph::Graph& graph, const Subgraph& part);

// The subgraph as a graph. `given` lists values of the surrounding graph, which become the last inputs.
std::unique_ptr<graph::Graph> graph_of(const graph::Graph& graph, const Subgraph& part,
                                       const std::vector<graph::ValueId>& given);

// Prints the graph with its calls and their subgraphs.
std::string print_with_calls(const graph::Graph& graph, const std::vector<DataDependentCall>& calls);

}  // namespace cresset::bridge
