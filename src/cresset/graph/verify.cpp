#include <fmt/format.h>

#include "graph/graph.h"

namespace cresset::graph {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), defined_(graph.value_count(), false) {}

  std::string run() {
    leaves(graph_.inputs, Value::Kind::Input, "input");
    leaves(graph_.constants, Value::Kind::Constant, "constant");
    for (const NodeId id : graph_.order) node(id);
    for (size_t i = 0; i < graph_.outputs.size(); ++i)
      require(is_defined(graph_.outputs[i]), [&] { return fmt::format("output {} is not defined", i); });
    for (const Mutation& m : graph_.mutations) mutation(m);
    return std::move(problem_);
  }

 private:
  template <class Message>
  void require(bool holds, Message&& message) {
    if (!holds && problem_.empty()) problem_ = message();
  }
  bool is_defined(ValueId v) const { return v.index < defined_.size() && defined_[v.index]; }

  void leaves(const std::vector<ValueId>& ids, Value::Kind kind, std::string_view what) {
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool exists = ids[i].index < graph_.value_count();
      require(exists, [&] { return fmt::format("{} {} names no value", what, i); });
      if (!exists) continue;
      const Value& value = graph_.value(ids[i]);
      require(value.kind == kind && value.result == i,
              [&] { return fmt::format("{} {} does not know its position", what, i); });
      define(ids[i], what, i);
    }
  }

  void define(ValueId v, std::string_view what, size_t position) {
    require(!defined_[v.index], [&] { return fmt::format("value {} is defined twice", v.index); });
    defined_[v.index] = true;
    const TensorType& type = graph_.type(v);
    require(type.sizes.size() == type.strides.size(), [&] {
      return fmt::format("{} {} has {} sizes and {} strides", what, position, type.sizes.size(), type.strides.size());
    });
    const size_t exprs = graph_.pool().size();
    for (const auto& list : {type.sizes, type.strides})
      for (const ExprId e : list)
        require(e.index < exprs,
                [&] { return fmt::format("{} {} has a size or stride that is none", what, position); });
  }

  void node(NodeId id) {
    const bool exists = id.index < graph_.node_count();
    require(exists, [&] { return fmt::format("the order names node {}, which does not exist", id.index); });
    if (!exists) return;
    const Node& node = graph_.node(id);
    const std::string_view name = op_name(node.op);
    Graph::for_each_value(node.args, [&](ValueId v) {
      require(is_defined(v), [&] { return fmt::format("{} uses value {} before its definition", name, v.index); });
    });
    require(node.location < graph_.locations.size(), [&] { return fmt::format("{} has no location", name); });
    for (size_t i = 0; i < node.results.size(); ++i) result(node, id, i);
  }

  void result(const Node& node, NodeId id, size_t i) {
    const ValueId v = node.results[i];
    const std::string_view name = op_name(node.op);
    const bool exists = v.index < graph_.value_count();
    require(exists, [&] { return fmt::format("result {} of {} names no value", i, name); });
    if (!exists) return;
    const Value& value = graph_.value(v);
    require(value.kind == Value::Kind::Result && value.node == id && value.result == i,
            [&] { return fmt::format("result {} of {} does not know its node", i, name); });
    define(v, name, i);
  }

  void mutation(const Mutation& m) {
    const std::vector<ValueId>& targets = m.is_constant ? graph_.constants : graph_.inputs;
    require(m.input < targets.size(),
            [&] { return fmt::format("a mutation of leaf {}, which does not exist", m.input); });
    require(is_defined(m.value), [&] { return fmt::format("the mutation of leaf {} has no value", m.input); });
    if (m.input >= targets.size() || !is_defined(m.value)) return;
    const TensorType& target = graph_.type(targets[m.input]);
    const TensorType& value = graph_.type(m.value);
    require(target.dtype == value.dtype && target.rank() == value.rank(),
            [&] { return fmt::format("the mutation of leaf {} changes its type", m.input); });
    for (size_t d = 0; d < std::min(target.rank(), value.rank()); ++d)
      require(target.sizes[d] == value.sizes[d] || graph_.env().known_equal(target.sizes[d], value.sizes[d]),
              [&] { return fmt::format("the mutation of leaf {} changes its size in dimension {}", m.input, d); });
  }

  const Graph& graph_;
  std::vector<bool> defined_;
  std::string problem_;
};

}  // namespace

std::string verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace cresset::graph
