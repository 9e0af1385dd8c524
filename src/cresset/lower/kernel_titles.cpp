#include "lower/kernel_titles.h"

#include <algorithm>
#include <unordered_set>

#include "ops/op_def.h"

namespace cresset::lower {
namespace {

using graph::ValueId;

// "aten::add.Tensor" is "add".
std::string short_name(graph::OpId op) {
  std::string_view name = graph::op_name(op);
  name.remove_prefix(name.find("::") + 2);
  while (name.starts_with('_')) name.remove_prefix(1);
  return std::string(name.substr(0, name.find('.')));
}

// "/home/me/model.py:12 in f" without folders.
std::string short_location(std::string_view location) {
  location = location.substr(0, location.find('\n'));
  const size_t colon = location.rfind(':');
  const size_t slash = location.rfind('/', colon);
  return std::string(slash == std::string_view::npos ? location : location.substr(slash + 1));
}

// The nodes between the unit's results and the values in memory which it reads.
std::unordered_set<graph::NodeId> nodes_of(const graph::Graph& graph, const fuse::Unit& unit) {
  std::unordered_set<graph::NodeId> nodes;
  const auto is_read = [&](ValueId v) {
    return std::find(unit.reads.begin(), unit.reads.end(), v) != unit.reads.end();
  };
  std::vector<ValueId> open = unit.writes;
  while (!open.empty()) {
    const graph::Value& value = graph.value(open.back());
    open.pop_back();
    if (value.kind != graph::Value::Kind::Result || !nodes.insert(value.node).second) continue;
    graph::Graph::for_each_value(graph.node(value.node).args, [&](const ValueId& v) {
      if (!is_read(v)) open.push_back(v);
    });
  }
  return nodes;
}

}  // namespace

std::string kernel_title(const graph::Graph& graph, const fuse::Unit& unit) {
  constexpr size_t kMostNames = 6;
  std::vector<std::string> names;
  std::string location;
  const std::unordered_set<graph::NodeId> nodes = nodes_of(graph, unit);
  for (const graph::NodeId id : graph.order) {
    if (!nodes.contains(id)) continue;
    const graph::Node& node = graph.node(id);
    const ops::OpDef* const def = ops::find(node.op);
    if (def != nullptr && def->op_class == ops::OpClass::View) continue;
    const std::string name = short_name(node.op);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    location = short_location(graph.locations.at(node.location));
  }
  std::string title;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) title += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNames) title += ", ...";
  return location.empty() ? title : title + " at " + location;
}

}  // namespace cresset::lower
