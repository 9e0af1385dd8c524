// torch.cond and torch.while_loop as operators of the graph.
//
// Their branches and bodies are recorded by running each of them once, as everything is captured: the nodes that they
// append are taken out of the graph's order and kept as a GraphPart. A part is no function: it uses values of the graph
// around it (operands and closures alike) directly, and shares its symbols. What a part writes to tensors from outside
// becomes one more result of the operator.
//
// At run time the operator ends a stage (stages.h). A part is a staged program of its own, whose inputs are all tensors
// of the stages around it; so parts nest, and may make sizes that depend on data. A loop writes what it carries into
// places of that table between turns. The host decides; within a stage nothing does.
#pragma once

#include "bridge/capture.h"

namespace cresset::bridge {

bool is_cond(const DataDependentCall& call);
bool is_while_loop(const DataDependentCall& call);
inline bool is_control_flow(const DataDependentCall& call) { return !call.parts.empty(); }

// Values from outside that the part uses, each once: what it does not compute itself.
std::vector<graph::ValueId> used_from_outside(const graph::Graph& graph, const GraphPart& part);

// The part as a graph: `given`, values that the surrounding graph computes, are its last inputs.
std::unique_ptr<graph::Graph> graph_of(const graph::Graph& graph, const GraphPart& part,
                                       const std::vector<graph::ValueId>& given);

// The graph with its calls and their parts, for people.
std::string print_with_calls(const graph::Graph& graph, const std::vector<DataDependentCall>& calls);

}  // namespace cresset::bridge
