#include "fuse/read_whole.h"

#include <algorithm>

#include "fuse/strided_view.h"
#include "ops/elementwise.h"
#include "ops/index_reads.h"
#include "ops/scan.h"

namespace cresset::fuse {
namespace {

// Whether a view shows all elements of its argument: it reorders, repeats or adds dimensions. The strides over dense
// memory tell.
bool shows_all(const Graph& graph, graph::NodeId id, size_t result) {
  const graph::Node& node = graph.node(id);
  if (is_reshape(node.op)) return true;
  sym::ShapeEnv& env = graph.env();
  const ExprId zero = env.pool().constant(0), one = env.pool().constant(1);
  const TensorType &from = graph.type(std::get<ValueId>(node.args[0])), &to = graph.type(node.results[result]);
  const Layout base{graph::contiguous_strides(env.pool(), from.sizes), zero};
  const std::optional<Layout> view = strided_view(graph, id, result, base);
  if (!view || !env.known_equal(view->offset, zero)) return false;
  const auto shown = [&](size_t d) {
    for (size_t r = 0; r < to.rank(); ++r)
      if (env.known_equal(view->strides[r], base.strides[d]) && env.known_equal(to.sizes[r], from.sizes[d]))
        return true;
    return env.known_equal(from.sizes[d], one);
  };
  for (size_t d = 0; d < from.rank(); ++d)
    if (!shown(d)) return false;
  return true;
}

class Reader {
 public:
  Reader(const Graph& graph, Memory& memory) : graph_(graph), memory_(memory), whole_(graph.value_count()) {
    for (uint32_t v = 0; v < whole_.size(); ++v) whole_[v] = memory.owns({v});
  }

  std::vector<bool> run() {
    for (auto id = graph_.order.rbegin(); id != graph_.order.rend(); ++id) visit(*id, native(graph_, *id));
    return std::move(whole_);
  }

 private:
  void visit(graph::NodeId id, const ops::OpDef* def) {
    const graph::Node& node = graph_.node(id);
    const bool folds = def != nullptr && (def->op_class == ops::OpClass::Reduction || ops::is_scan(*def));
    if (def == nullptr || folds) return use_all(node);  // it reads memory, or all
    if (def->op_class == ops::OpClass::View) {
      for (size_t r = 0; r < node.results.size(); ++r)
        if (whole_[node.results[r].index] && shows_all(graph_, id, r)) use(std::get<ValueId>(node.args[0]));
      return;
    }
    const bool whole =
        std::all_of(node.results.begin(), node.results.end(), [&](ValueId v) { return whole_[v.index]; });
    if (whole && def->op_class == ops::OpClass::Pointwise && ops::is_elementwise(node.op)) use_all(node);
    if (def->op_class != ops::OpClass::Extern || (!whole && !memory_.data_indices().has_reports(id))) return;
    for (const ops::IndexRead& read : ops::index_reads(graph_, node)) use(read.index);
  }
  void use(ValueId v) { whole_[v.index] = true; }
  void use_all(const graph::Node& node) {
    Graph::for_each_value(node.args, [&](const ValueId& v) { use(v); });
  }

  const Graph& graph_;
  Memory& memory_;
  std::vector<bool> whole_;
};

}  // namespace

std::vector<bool> read_whole(const Graph& graph, Memory& memory) { return Reader(graph, memory).run(); }

}  // namespace cresset::fuse
