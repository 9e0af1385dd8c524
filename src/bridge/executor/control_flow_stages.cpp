// Control-flow operators at run time.
#include <algorithm>

#include "bridge/capture/control_flow.h"
#include "bridge/executor/staged_program.h"

namespace cresset::bridge {

// Compiles the subgraphs. Their inputs are the table's entries for graph inputs, then the values computed by
// surrounding stages.
void StagedProgram::add_parts(Stage& stage, const graph::Graph& graph, std::vector<Subgraph> parts,
                              const std::vector<SymbolBinding>& symbols, size_t real_inputs,
                              const driver::Options& options) {
  std::vector<graph::ValueId> given;
  for (const Subgraph& part : parts)
    for (const graph::ValueId v : used_from_outside(graph, part))
      if (graph.value(v).kind == graph::Value::Kind::Result && std::find(given.begin(), given.end(), v) == given.end())
        given.push_back(v);
  for (const graph::ValueId v : given) stage.given.push_back(places_.at(v).index);
  for (Subgraph& part : parts) {
    std::unique_ptr<graph::Graph> own = graph_of(graph, part, given);
    stage.parts.push_back(std::make_unique<StagedProgram>(std::move(own), std::move(part.calls), symbols, real_inputs,
                                                          constants_, options, this));
  }
}

void StagedProgram::run_parts(const Stage& stage, std::vector<at::Tensor>& table, int64_t* symbols) const {
  const auto run = [&](size_t part) {
    std::vector<at::Tensor> inputs(table.begin(), table.begin() + static_cast<long>(graph_inputs_));
    for (const uint32_t place : stage.given) inputs.push_back(table[place]);
    return stage.parts[part]->run(inputs, symbols);
  };
  const auto operand = [&](size_t i) { return at(std::get<graph::ValueId>(stage.args[i]), table); };
  std::vector<at::Tensor> results;
  if (!stage.loops) {
    results = run(at::is_nonzero(operand(0)) ? 0 : 1);
  } else {
    for (size_t i = 0; i < stage.carried.size(); ++i) results.push_back(operand(i));
    for (;;) {
      for (size_t i = 0; i < stage.carried.size(); ++i) table[stage.carried[i]] = results[i];
      if (!at::is_nonzero(run(0)[0])) break;
      results = run(1);
    }
  }
  for (size_t i = 0; i < stage.made.size(); ++i) table[stage.made[i]] = std::move(results[i]);
}

}  // namespace cresset::bridge
