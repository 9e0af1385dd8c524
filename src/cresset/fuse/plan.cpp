#include "fuse/plan.h"

#include <algorithm>

#include "fuse/materialize.h"

namespace cresset::fuse {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, const driver::Options& options) : graph_(graph), options_(options) {
    plan_.memory = std::make_unique<Memory>(graph);
  }

  Plan run() {
    materialize(graph_, options_, *plan_.memory);
    for (graph::NodeId id : graph_.order) add_units(id);
    const Build build{graph_, *plan_.memory, options_};
    for (Unit& unit : plan_.units) complete(build, unit);
    if (options_.fuse) merge_units(build, plan_.units);
    sort_units(graph_, plan_.units);
    return std::move(plan_);
  }

 private:
  Layout layout_of(ValueId value) { return plan_.memory->find(value)->layout; }

  void add_units(graph::NodeId id) {
    const graph::Node& node = graph_.node(id);
    const ops::OpDef* def = native(graph_, id);
    if (def == nullptr) {
      plan_.units.push_back({.node = id, .group = {}, .reads = {}, .writes = node.results});
      return;
    }
    if (def->op_class == ops::OpClass::Concat) return add_windows(node);
    for (ValueId v : node.results)
      if (plan_.memory->owns(v)) plan_.units.push_back({.node = {}, .group = group_of(graph_, v, layout_of(v)), .reads = {}, .writes = {}});
  }

  // Each argument of a concatenation is a kernel that writes its window.
  void add_windows(const graph::Node& node) {
    sym::ExprPool& pool = graph_.pool();
    const ops::OpArgs args(graph_, node.args);
    const ValueId whole = node.results[0];
    const Layout layout = layout_of(whole);
    const size_t rank = graph_.type(whole).rank();
    int64_t dim = args.constant(1);
    if (dim < 0) dim += static_cast<int64_t>(rank);
    ExprId start = pool.constant(0);
    for (const graph::OptionalValue& part : args.values(0)) {
      const std::vector<ExprId>& sizes = graph_.type(*part).sizes;
      if (sizes.size() != rank) continue;  // ATen lets an empty 1-d tensor stand anywhere
      const size_t d = static_cast<size_t>(dim);
      const Layout window{layout.strides, pool.add(layout.offset, pool.mul(start, layout.strides[d]))};
      plan_.units.push_back({.node = {}, .group = window_group(graph_, *part, whole, window), .reads = {}, .writes = {}});
      start = pool.add(start, sizes[d]);
    }
  }

  void complete(const Build& build, Unit& unit) {
    if (unit.node.valid()) {
      Graph::for_each_value(graph_.node(unit.node).args, [&](const ValueId& v) {
        const ValueId base = plan_.memory->find(v)->base;
        if (std::find(unit.reads.begin(), unit.reads.end(), base) == unit.reads.end()) unit.reads.push_back(base);
      });
      return;
    }
    std::optional<BuiltKernel> built = build_kernel(build, unit.group, nullptr);
    CRESSET_CHECK(built.has_value(), "a value by itself is always a kernel");
    unit.reads = std::move(built->reads);
    for (const Root& root : unit.group.roots) unit.writes.push_back(root.into);
  }

  const Graph& graph_;
  const driver::Options& options_;
  Plan plan_;
};

}  // namespace

Plan plan(const Graph& graph, const driver::Options& options) { return Planner(graph, options).run(); }

bool may_alias_arguments(const graph::Node& node) {
  const ops::OpDef* def = ops::find(node.op);
  return def == nullptr || def->schema.find("(a") != std::string_view::npos;
}

}  // namespace cresset::fuse
