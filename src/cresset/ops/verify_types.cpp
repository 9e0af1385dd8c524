#include "ops/verify_types.h"

#include <fmt/format.h>

#include "ops/op_def.h"
#include "ops/result_types.h"

namespace cresset::ops {
namespace {

std::string difference(graph::Graph& graph, const graph::TensorType& got, const graph::TensorType& want) {
  if (got.dtype != want.dtype)
    return fmt::format("is {}, its rule says {}", to_string(got.dtype), to_string(want.dtype));
  if (got.rank() != want.rank()) return fmt::format("has {} dimensions, its rule says {}", got.rank(), want.rank());
  for (size_t d = 0; d < got.rank(); ++d) {
    if (got.sizes[d] == want.sizes[d] || graph.env().known_equal(got.sizes[d], want.sizes[d])) continue;
    return fmt::format("has size {} in dimension {}, its rule says {}", graph.env().to_string(got.sizes[d]), d,
                       graph.env().to_string(want.sizes[d]));
  }
  return "";
}

}  // namespace

std::string verify_types(graph::Graph& graph, DType default_dtype) {
  for (const graph::NodeId id : graph.order) {
    const graph::Node& node = graph.node(id);
    const OpDef* def = find(node.op);
    if (def == nullptr || def->shape == nullptr) continue;
    ShapeContext shapes(graph, name_of(*def));
    shapes.default_dtype = default_dtype;
    // A node without coverage by the rule was captured by the generic rule.
    const Result<Types> types = result_types(shapes, *def, node.args);
    if (!types.ok()) continue;
    if (types->size() != node.results.size())
      return fmt::format("{} has {} results, its rule says {}", name_of(*def), node.results.size(), types->size());
    for (size_t i = 0; i < types->size(); ++i) {
      const std::string found = difference(graph, graph.type(node.results[i]), (*types)[i]);
      if (!found.empty()) return fmt::format("result {} of {} {}", i, name_of(*def), found);
    }
  }
  return "";
}

}  // namespace cresset::ops
