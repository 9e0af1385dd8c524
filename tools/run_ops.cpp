// Runs operators through their shape rules and the reference interpreter, for tests/python/harness/check_ops.py.
//
// Standard input contains cases separated by lines "---": a graph whose last node states no results, then "return". The
// file named by the first argument contains the inputs' contents, row-major, one after another. Each case writes a line
// to standard output. "ok <guards>" is followed, tab separated, by each result's type under the hints; the contents are
// appended to the file named by the second argument. "shape <guards>" is the same without contents, for operators
// computed only by ATen. Otherwise the line is "fallback <reason>".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "base/check.h"
#include "ops/interpret.h"
#include "ops/op_def.h"

namespace {

using namespace cresset;

std::vector<int64_t> hints(const graph::Graph& graph, const std::vector<sym::ExprId>& exprs) {
  std::vector<int64_t> out;
  for (const sym::ExprId e : exprs) out.push_back(graph.env().hint_or(e, -1));
  return out;
}

std::string describe_type(const graph::Graph& graph, const graph::TensorType& type) {
  return fmt::format("{} {} {}", to_string(type.dtype), fmt::join(hints(graph, type.sizes), ","),
                     fmt::join(hints(graph, type.strides), ","));
}

// Gives the last node the results of its shape rule.
Result<bool> infer(graph::Graph& graph) {
  const graph::Node bare = graph.node(graph.order.back());
  graph.order.pop_back();
  const ops::OpDef* def = ops::find(bare.op);
  if (def == nullptr) return Fallback{FallbackReason::UnsupportedOperator, "no row", ""};
  ops::ShapeContext shapes(graph, ops::name_of(*def));
  CRESSET_TRY(ops::Types types, def->shape(shapes, ops::OpArgs(graph, bare.args)));
  const graph::NodeId id = graph.add_node(bare.op, bare.args, std::move(types));
  graph.outputs = graph.node(id).results;
  return true;
}

std::string run(std::string_view text, std::istream& contents, std::ostream& results) {
  Result<std::unique_ptr<graph::Graph>> parsed = graph::parse(text);
  if (!parsed.ok()) return "error " + describe(parsed.fallback());
  graph::Graph& graph = **parsed;
  std::vector<ops::HostTensor> inputs;
  for (const graph::ValueId v : graph.inputs) {
    const graph::TensorType& type = graph.type(v);
    ops::HostTensor tensor = ops::HostTensor::zeros(type.dtype, hints(graph, type.sizes));
    contents.read(reinterpret_cast<char*>(tensor.data.data()), static_cast<std::streamsize>(tensor.data.size()));
    inputs.push_back(std::move(tensor));
  }
  const Result<bool> inferred = infer(graph);
  if (!inferred.ok()) return "fallback " + describe(inferred.fallback());
  const size_t guards = graph.env().minimized_guards().size();
  const Result<ops::Interpreted> done = ops::interpret(graph, inputs);
  std::string line = fmt::format("{} {}", done.ok() ? "ok" : "shape", guards);
  for (const graph::ValueId v : graph.outputs) line += "\t" + describe_type(graph, graph.type(v));
  for (size_t i = 0; done.ok() && i < done->outputs.size(); ++i) {
    const std::vector<std::byte>& data = done->outputs[i].data;
    results.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  }
  return line;
}

std::string run_checked(std::string_view text, std::istream& contents, std::ostream& results) {
  try {
    return run(text, contents, results);
  } catch (const std::exception& error) {
    return std::string("error ") + error.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: run_ops <contents of inputs> <contents of results> < cases\n";
    return 2;
  }
  std::ifstream contents(argv[1], std::ios::binary);
  std::ofstream results(argv[2], std::ios::binary);
  std::string text, line;
  while (std::getline(std::cin, line)) {
    if (line != "---") {
      text += line + "\n";
      continue;
    }
    std::cout << run_checked(text, contents, results) << "\n";
    text.clear();
  }
}
