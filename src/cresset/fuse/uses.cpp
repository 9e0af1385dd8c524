#include "fuse/uses.h"

namespace cresset::fuse {
namespace {

int64_t numel_hint(const Graph& graph, ValueId value) {
  int64_t n = 1;
  for (ExprId size : graph.type(value).sizes) n *= graph.env().typical_or(size, 64);
  return n;
}

class Counter {
 public:
  Counter(const Graph& graph, const std::function<bool(ValueId)>& copied)
      : graph_(graph), copied_(copied), uses_(graph.value_count()), domain_(graph.value_count(), 0) {}

  std::vector<Use> run() {
    for (auto it = graph_.order.rbegin(); it != graph_.order.rend(); ++it) visit(graph_.node(*it), native(graph_, *it));
    return std::move(uses_);
  }

 private:
  void visit(const graph::Node& node, const ops::OpDef* def) {
    if (def == nullptr) return;  // extern calls read memory
    switch (def->op_class) {
      case ops::OpClass::View:
        return visit_view(node);
      case ops::OpClass::Pointwise:
      case ops::OpClass::Extern:  // reads at indices
        for_each_argument(node, [&](ValueId v) { add(v, 1, numel_hint(graph_, node.results[0])); });
        return;
      case ops::OpClass::Reduction:
      case ops::OpClass::Concat:
        for_each_argument(node, [&](ValueId v) { add(v, 1, numel_hint(graph_, v)); });
        return;
      case ops::OpClass::Composite:
        return;
    }
  }
  template <class F>
  static void for_each_argument(const graph::Node& node, F&& f) {
    Graph::for_each_value(node.args, [&](const ValueId& v) { f(v); });
  }
  // Readers of a view read its argument.
  void visit_view(const graph::Node& node) {
    const ValueId from = std::get<ValueId>(node.args[0]);
    for (ValueId result : node.results) {
      if (copied_(result))
        add(from, 1, numel_hint(graph_, result));
      else
        add(from, uses_[result.index].count, domain_[result.index]);
    }
  }
  void add(ValueId value, uint32_t count, int64_t domain) {
    Use& use = uses_[value.index];
    use.count += count;
    domain_[value.index] = std::max(domain_[value.index], domain);
    use.expanded |= domain > numel_hint(graph_, value);
  }

  const Graph& graph_;
  const std::function<bool(ValueId)>& copied_;
  std::vector<Use> uses_;
  std::vector<int64_t> domain_;  // greatest number of elements of a reader
};

}  // namespace

std::vector<Use> count_uses(const Graph& graph, const std::function<bool(ValueId)>& copied) {
  return Counter(graph, copied).run();
}

}  // namespace cresset::fuse
