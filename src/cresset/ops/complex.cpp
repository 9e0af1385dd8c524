#include "ops/complex.h"

#include <algorithm>

namespace cresset::ops {
namespace {

bool is_complex(DType dtype) { return category(dtype) == DTypeCategory::Complex; }

}  // namespace

bool takes_complex(const graph::Graph& graph, const std::vector<graph::Arg>& args) {
  const auto is_complex_value = [&](graph::ValueId v) { return is_complex(graph.type(v).dtype); };
  return std::any_of(args.begin(), args.end(), [&](const graph::Arg& arg) {
    if (const auto* v = std::get_if<graph::ValueId>(&arg)) return is_complex_value(*v);
    if (const auto* dtype = std::get_if<DType>(&arg)) return is_complex(*dtype);
    const auto* list = std::get_if<std::vector<graph::OptionalValue>>(&arg);
    return list != nullptr && std::any_of(list->begin(), list->end(),
                                          [&](const graph::OptionalValue& v) { return v && is_complex_value(*v); });
  });
}

bool touches_complex(const graph::Graph& graph, const graph::Node& node) {
  return takes_complex(graph, node.args) ||
         std::any_of(node.results.begin(), node.results.end(),
                     [&](graph::ValueId v) { return is_complex(graph.type(v).dtype); });
}

}  // namespace cresset::ops
