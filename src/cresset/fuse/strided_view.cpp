#include "fuse/strided_view.h"

#include "fuse/domain.h"

namespace cresset::fuse {
namespace {

// Runs view rules outside a kernel: they map indices and never read elements.
class ViewContext final : public ops::ElementContext {
 public:
  ViewContext(const Graph& graph, const graph::Node& node) : graph_(graph), node_(node) {}
  loop::ScalarId element(ValueId, const Index&) override { return refuse<loop::ScalarId>(); }
  loop::ScalarBuilder& scalars() override { return *refuse<loop::ScalarBuilder*>(); }
  const Graph& graph() override { return graph_; }
  const TensorType& result_type(size_t result) override { return graph_.type(node_.results[result]); }

 private:
  template <class T>
  T refuse() {
    CRESSET_CHECK(false, "a view rule read an element");
    return T{};
  }
  const Graph& graph_;
  const graph::Node& node_;
};

// Splits and merges runs of dimensions. A run of argument dimensions which is contiguous in memory takes any shape.
std::optional<Layout> strided_reshape(sym::ShapeEnv& env, const std::vector<ExprId>& from, const Layout& base,
                                      const std::vector<ExprId>& to) {
  sym::ExprPool& pool = env.pool();
  std::optional<Refinement> parts = refine(env, from, to);
  if (!parts) return std::nullopt;
  // The strides of the parts in the argument.
  std::vector<ExprId> strides(parts->extents.size(), pool.constant(0));
  for (size_t d = 0; d < from.size(); ++d) {
    ExprId stride = base.strides[d];
    for (auto p = parts->of_a[d].rbegin(); p != parts->of_a[d].rend(); ++p) {
      strides[*p] = stride;
      stride = pool.mul(stride, parts->extents[*p]);
    }
  }
  Layout out{std::vector<ExprId>(to.size(), pool.constant(1)), base.offset};
  for (size_t d = 0; d < to.size(); ++d) {
    const std::vector<size_t>& run = parts->of_b[d];
    if (run.empty()) continue;
    for (size_t i = 0; i + 1 < run.size(); ++i)
      if (!env.known_equal(strides[run[i]], pool.mul(strides[run[i + 1]], parts->extents[run[i + 1]])))
        return std::nullopt;
    out.strides[d] = env.simplify(strides[run.back()]);
  }
  // A size-1 dimension gets the stride of a contiguous tensor.
  for (size_t d = to.size(); d-- > 0;)
    if (parts->of_b[d].empty() && d + 1 < to.size())
      out.strides[d] = env.simplify(pool.mul(out.strides[d + 1], to[d + 1]));
  return out;
}

std::optional<Layout> probe(const Graph& graph, const graph::Node& node, size_t result, const Layout& base) {
  sym::ShapeEnv& env = graph.env();
  sym::ExprPool& pool = env.pool();
  ViewContext context(graph, node);
  Index index;
  for (ExprId size : graph.type(node.results[result]).sizes) index.push_back(env.new_index_var(size));
  ExprId rest = address(env, base, view_index(context, graph, node, result, index));
  Layout out;
  for (ExprId var : index) {
    sym::ExprPool::Affine affine;
    if (!pool.affine_in(rest, pool.var_of(var), affine)) return std::nullopt;
    out.strides.push_back(affine.coefficient);
    rest = affine.rest;
  }
  for (ExprId& stride : out.strides) {
    for (ExprId var : index)
      if (pool.uses_var(stride, pool.var_of(var))) return std::nullopt;
    stride = env.simplify(stride);
  }
  out.offset = env.simplify(rest);
  return out;
}

// No index moves along a dimension with a single element, so every stride is correct for cresset. But ATen reads all
// strides to determine the order of dimensions (channels last). Where the other strides are those of eager mode, these
// are set to eager mode's strides too.
Layout with_strides_of_ones(const Graph& graph, const TensorType& type, Layout layout) {
  sym::ShapeEnv& env = graph.env();
  const ExprId one = env.pool().constant(1);
  std::vector<size_t> ones;
  for (size_t d = 0; d < type.sizes.size(); ++d)
    if (layout.strides[d] != type.strides[d] && env.known_equal(type.sizes[d], one)) ones.push_back(d);
  if (!ones.empty() && equal_strides(env, type.sizes, layout.strides, type.strides))
    for (const size_t d : ones) layout.strides[d] = type.strides[d];
  return layout;
}

}  // namespace

bool is_reshape(graph::OpId op) { return ops::traits(op).elements == ops::Elements::Reshaped; }

Index view_index(ops::ElementContext& context, const Graph& graph, const graph::Node& node, size_t result,
                 const Index& index) {
  const ops::OpDef* def = ops::find(node.op);
  Index mapped = def->view(context, ops::OpArgs(graph, node.args), result, index);
  for (ExprId& e : mapped) e = graph.env().simplify(e);
  return mapped;
}

std::optional<Layout> strided_view(const Graph& graph, graph::NodeId id, size_t result, const Layout& base) {
  const graph::Node& node = graph.node(id);
  const TensorType& type = graph.type(node.results[result]);
  std::optional<Layout> layout;
  if (is_reshape(node.op)) {
    const TensorType& from = graph.type(std::get<ValueId>(node.args[0]));
    layout = strided_reshape(graph.env(), from.sizes, base, type.sizes);
  }
  if (!layout) layout = probe(graph, node, result, base);
  if (layout) layout = with_strides_of_ones(graph, type, std::move(*layout));
  return layout;
}

}  // namespace cresset::fuse
