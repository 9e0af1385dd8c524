// An activation directly after a matrix product or convolution joins the call as an epilogue: libraries apply it while
// the result is still in registers. This applies only where the activation's result must be stored anyway, for another
// call or for the caller. A kernel which reads the result would compute the activation at no cost.
#include <algorithm>

#include "base/device_traits.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

using graph::Arg;
using graph::OpId;

// Returns the epilogue's name for an activation node, else an empty string.
std::string_view epilogue_of(const Graph& graph, const graph::Node& node) {
  const ops::OpDef* def = ops::find(node.op);
  return def != nullptr && def->epilogue != nullptr ? def->epilogue(ops::OpArgs(graph, node.args)) : "";
}

class ExternEpilogue {
 public:
  explicit ExternEpilogue(Graph& graph) : graph_(graph), users_(graph.value_count()), leaves_(graph.value_count()) {
    for (const NodeId id : graph.order)
      Graph::for_each_value(graph.node(id).args, [&](ValueId v) { users_[v.index].push_back(id); });
    for (const ValueId v : graph.outputs) leaves_[v.index] = true;
    for (const graph::Mutation& m : graph.mutations) leaves_[m.value.index] = true;
  }

  bool run() {
    return rewrite_nodes(graph_, [&](NodeId id, Replacements& replacements) {
      const std::string_view post = epilogue_of(graph_, graph_.node(id));
      if (post.empty() || !stored_anyway(graph_.node(id).results[0])) return;
      const ValueId argument = std::get<ValueId>(graph_.node(id).args[0]);
      if (!lies_alike(argument, graph_.node(id).results[0])) return;
      if (fuse_into_producer(argument, post)) replacements.add(graph_.node(id).results[0], argument);
    });
  }

 private:
  // A view may give a dimension of one element a stride which the activation's result does not have.
  bool lies_alike(ValueId a, ValueId b) const {
    const std::vector<sym::ExprId>&x = graph_.type(a).strides, &y = graph_.type(b).strides;
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [&](sym::ExprId i, sym::ExprId k) { return graph_.env().known_equal(i, k); });
  }

  // Whether every reader, through views, is a call which takes its arguments in memory.
  bool stored_anyway(ValueId v) const {
    for (const NodeId user : users_[v.index]) {
      const graph::Node& node = graph_.node(user);
      const ops::OpDef* def = ops::find(node.op);
      if (def == nullptr || def->op_class == ops::OpClass::Extern) continue;
      // A view may have no result (the parts of an empty dimension), or many.
      if (def->op_class != ops::OpClass::View ||
          !std::all_of(node.results.begin(), node.results.end(), [&](ValueId made) { return stored_anyway(made); }))
        return false;
    }
    return true;
  }

  // Fuses if `v` is the result of a product or convolution, through reshapes without other readers.
  bool fuse_into_producer(ValueId v, std::string_view post) {
    while (users_[v.index].size() == 1 && !leaves_[v.index] && graph_.value(v).node.valid()) {
      graph::Node& producer = graph_.node(graph_.value(v).node);
      if (ops::traits(producer.op).elements != ops::Elements::Reshaped) return fuse(producer, post);
      v = std::get<ValueId>(producer.args[0]);
    }
    return false;
  }

  bool fuse(graph::Node& node, std::string_view post) {
    static const OpId mm = graph::op_id("aten::mm"), addmm = graph::op_id("aten::addmm"),
                      convolution = graph::op_id("aten::convolution");
    const graph::TensorType& type = graph_.type(node.results[0]);
    if (!traits_of(type.device.kind).call_epilogues.contains(type.dtype)) return false;
    if (node.op == convolution) {
      node.op = graph::op_id("prim::convolution_epilogue");
      node.args.emplace_back(std::string(post));
      return true;
    }
    const bool biased = node.op == addmm && is_number(graph_, node.args[3], 1) && is_number(graph_, node.args[4], 1);
    if (!biased && node.op != mm) return false;
    if (node.op == mm) node.args.insert(node.args.begin(), graph::None{});
    node.args.resize(3);
    node.args.emplace_back(std::string(post));
    node.op = graph::op_id("prim::linear_epilogue");
    return true;
  }

  Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> leaves_;  // outputs and final contents of mutated inputs
};

}  // namespace

bool extern_epilogue(Graph& graph) {
  const bool changed = ExternEpilogue(graph).run();
  if (changed) dead_code(graph);
  return changed;
}

}  // namespace cresset::passes
