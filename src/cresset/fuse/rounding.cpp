#include "fuse/rounding.h"

#include <algorithm>

#include "fuse/memory.h"
#include "ops/op_def.h"

namespace cresset::fuse {
namespace {

using graph::Graph;
using graph::ValueId;

bool is_narrow(DType dtype) { return compute_dtype(dtype) != dtype && is_float(compute_dtype(dtype)); }

bool has_narrow_values(const Graph& graph) {
  return std::any_of(graph.order.begin(), graph.order.end(), [&](graph::NodeId id) {
    const auto& results = graph.node(id).results;
    return std::any_of(results.begin(), results.end(), [&](ValueId v) { return is_narrow(graph.type(v).dtype); });
  });
}

// Whether a minimal change of an argument may change the result by a whole step. This includes every operator with
// boolean or integer results (a position beside a maximum), native or extern.
bool decides(const Graph& graph, const graph::Node& node) {
  const ops::OpDef* def = ops::find(node.op);
  if (def != nullptr && (def->op_class == ops::OpClass::View || def->op_class == ops::OpClass::Concat)) return false;
  return (def != nullptr && def->steps) || std::any_of(node.results.begin(), node.results.end(), [&](ValueId v) {
           const DType dtype = graph.type(v).dtype;
           return dtype == DType::Bool || is_integral(dtype);
         });
}

}  // namespace

RoundedValues values_that_decide(const Graph& graph) {
  RoundedValues out;
  if (!has_narrow_values(graph)) return out;
  std::unordered_set<ValueId> seen;
  // Backwards, so that the readers of a value are visited before its producer.
  for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id) {
    const graph::Node& node = graph.node(*id);
    const auto leads = [&](ValueId v) { return seen.count(v) != 0; };
    const bool leads_on = native(graph, *id) != nullptr && std::any_of(node.results.begin(), node.results.end(), leads);
    if (!leads_on && !decides(graph, node)) continue;
    Graph::for_each_value(node.args, [&](const ValueId& v) {
      const DType dtype = graph.type(v).dtype;
      if (!is_float(compute_dtype(dtype)) || !seen.insert(v).second) return;
      if (is_narrow(dtype)) out.insert(v);
    });
  }
  return out;
}

}  // namespace cresset::fuse
