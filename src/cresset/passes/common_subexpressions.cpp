#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

struct HashArg {
  template <class T>
  size_t operator()(const Id<T>& id) const {
    return id.index;
  }
  size_t operator()(graph::None) const { return 1; }
  size_t operator()(const std::vector<graph::OptionalValue>& values) const {
    size_t h = 2;
    for (const graph::OptionalValue& v : values) h = h * 31 + (v ? v->index : 7);
    return h;
  }
  size_t operator()(const std::vector<sym::ExprId>& es) const {
    size_t h = 3;
    for (sym::ExprId e : es) h = h * 31 + e.index;
    return h;
  }
  size_t operator()(double number) const { return std::hash<double>{}(number); }
  size_t operator()(bool flag) const { return flag ? 5 : 4; }
  size_t operator()(DType dtype) const { return static_cast<size_t>(dtype); }
  template <class T>
  size_t operator()(const T&) const {
    return 6;
  }  // rare kinds: equality distinguishes them
};

size_t hash_of(const graph::Node& node) {
  size_t h = node.op.index;
  for (const graph::Arg& arg : node.args) h = h * 1000003u + std::visit(HashArg{}, arg) + arg.index();
  return h;
}

}  // namespace

bool common_subexpressions(Graph& graph) {
  std::unordered_multimap<size_t, NodeId> seen;
  Escaping escaping(graph);
  const bool changed = rewrite_nodes(graph, [&](NodeId id, Replacements& replacements) {
    const graph::Node& node = graph.node(id);
    if (has_effects(node)) return;
    const size_t hash = hash_of(node);
    const auto [first, last] = seen.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      const graph::Node& other = graph.node(it->second);
      if (other.op != node.op || other.args != node.args) continue;
      for (size_t r = 0; r < node.results.size(); ++r)
        if (escaping.forbids(node.results[r], other.results[r])) return;
      for (size_t r = 0; r < node.results.size(); ++r) {
        replacements.add(node.results[r], other.results[r]);
        escaping.replaced(node.results[r], other.results[r]);
      }
      return;
    }
    seen.emplace(hash, id);
  });
  if (changed) dead_code(graph);
  return changed;
}

}  // namespace cresset::passes
