#include "ops/special_dtypes.h"

#include <algorithm>

#include "ops/op_def.h"

namespace cresset::ops {
namespace {

// Whether a dtype of the arguments, or one that an argument names, is of a category above `highest`.
bool takes_above(DTypeCategory highest, const graph::Graph& graph, const std::vector<graph::Arg>& args) {
  const auto above = [&](graph::ValueId v) { return category(graph.type(v).dtype) > highest; };
  return std::any_of(args.begin(), args.end(), [&](const graph::Arg& arg) {
    if (const auto* v = std::get_if<graph::ValueId>(&arg)) return above(*v);
    if (const auto* dtype = std::get_if<DType>(&arg)) return category(*dtype) > highest;
    const auto* list = std::get_if<std::vector<graph::OptionalValue>>(&arg);
    return list != nullptr &&
           std::any_of(list->begin(), list->end(), [&](const graph::OptionalValue& v) { return v && above(*v); });
  });
}

bool touches_above(DTypeCategory highest, const graph::Graph& graph, const graph::Node& node) {
  return takes_above(highest, graph, node.args) ||
         std::any_of(node.results.begin(), node.results.end(),
                     [&](graph::ValueId v) { return category(graph.type(v).dtype) > highest; });
}

}  // namespace

bool takes_special(const graph::Graph& graph, const std::vector<graph::Arg>& args) {
  return takes_above(DTypeCategory::Float, graph, args);
}

bool kernels_hold(const graph::Graph& graph, const graph::Node& node) {
  if (!touches_above(DTypeCategory::Float, graph, node)) return true;
  if (touches_above(DTypeCategory::Float8, graph, node)) return false;
  const OpDef* def = find(node.op);
  return def != nullptr && (def->op_class == OpClass::View || def->traits.elements == Elements::Kept);
}

}  // namespace cresset::ops
