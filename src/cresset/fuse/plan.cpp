#include "fuse/plan.h"

#include <algorithm>

#include "fuse/materialize.h"
#include "sym/asked.h"

namespace cresset::fuse {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, const driver::Options& options)
      : graph_(graph), options_(options), rounded_(values_that_decide(graph)) {}

  // Computing a value section by section can turn out to be impossible, when a section reads another part of the
  // concatenation. The concatenation is then stored, and planning starts again.
  Plan run() {
    while (!attempt()) {
    }
    sort_units(graph_, *plan_.memory, plan_.units);
    return std::move(plan_);
  }

 private:
  bool attempt() {
    plan_ = {std::make_unique<Memory>(graph_), {}};
    sections_ = materialize(graph_, options_, stored_, *plan_.memory);
    for (graph::NodeId id : graph_.order) add_units(id);
    const size_t before = stored_.size();
    const sym::Asked asked = sym::asked(graph_.env());
    for (Unit& unit : plan_.units) {
      complete(unit);
      // A kernel recorded a guard on a size. Earlier answers about views and stored values may have changed.
      if (sym::asked(graph_.env()) != asked) return false;
    }
    if (stored_.size() != before) return false;
    if (options_.fuse) merge_units({graph_, *plan_.memory, options_, rounded_}, plan_.units);
    return sym::asked(graph_.env()) == asked;  // merged kernels record guards, too
  }

  void add_units(graph::NodeId id) {
    const graph::Node& node = graph_.node(id);
    const ops::OpDef* def = native(graph_, id);
    if (def == nullptr) {
      plan_.units.emplace_back();
      plan_.units.back().node = id;
      plan_.units.back().writes = node.results;
      return;
    }
    for (ValueId v : node.results) {
      if (!plan_.memory->owns(v)) continue;
      const Layout& layout = plan_.memory->layout(v);
      const auto section = sections_.find(v);
      if (def->op_class == ops::OpClass::Concat) {
        for (const ConcatPart& part : concat_parts(graph_, node))
          add_kernel(window_group(graph_, plan_.memory->index_vars(), part, v, layout));
      } else if (section != sections_.end() && !plan_.memory->owns(section->second)) {
        const graph::Node& concat = graph_.node(graph_.value(section->second).node);
        for (const ConcatPart& part : concat_parts(graph_, concat))
          add_kernel(section_group(graph_, plan_.memory->index_vars(), v, part, layout));
      } else {
        add_kernel(group_of(graph_, plan_.memory->index_vars(), v, layout));
      }
    }
  }
  // A group which is provably empty stores nothing.
  void add_kernel(Group group) {
    const auto empty = [&](const loop::Dim& dim) {
      return dim.kind == loop::Dim::Kind::Outer &&
             graph_.env().known_true(graph_.pool().le(dim.extent, graph_.pool().constant(0)));
    };
    if (std::any_of(group.dims.begin(), group.dims.end(), empty)) return;
    plan_.units.emplace_back();
    plan_.units.back().group = std::move(group);
  }

  void complete(Unit& unit) {
    if (unit.node.valid()) {
      Graph::for_each_value(graph_.node(unit.node).args, [&](const ValueId& v) {
        const ValueId base = plan_.memory->find(v)->base;
        if (std::find(unit.reads.begin(), unit.reads.end(), base) == unit.reads.end()) unit.reads.push_back(base);
      });
      return;
    }
    std::optional<BuiltKernel> built = build_kernel({graph_, *plan_.memory, options_, rounded_}, unit.group, nullptr);
    if (!built) {
      const auto section = sections_.find(unit.group.roots[0].value);
      CRESSET_CHECK(section != sections_.end(), "a value by itself is always a kernel");
      stored_.insert(section->second);
      return;
    }
    unit.reads = built->reads;
    unit.built = std::move(*built);
    for (const Root& root : unit.group.roots) unit.writes.push_back(root.into);
  }

  const Graph& graph_;
  const driver::Options& options_;
  const RoundedValues rounded_;
  std::unordered_set<ValueId> stored_;
  Sections sections_;
  Plan plan_;
};

}  // namespace

Plan plan(const Graph& graph, const driver::Options& options) { return Planner(graph, options).run(); }

bool may_alias_arguments(const graph::Node& node) {
  const ops::OpDef* def = ops::find(node.op);
  return def == nullptr || def->schema.find("(a") != std::string_view::npos;
}

}  // namespace cresset::fuse
