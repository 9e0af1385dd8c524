#include "fuse/materialize.h"

#include <algorithm>

#include "fuse/strided_view.h"
#include "fuse/uses.h"

namespace cresset::fuse {
namespace {

// Cheaper to recompute than to store and load again.
constexpr uint32_t kCheapOperations = 3;
constexpr uint32_t kCheapOperationsWithoutReads = 8;
// An inlined expression beyond these is cut: kernels have limits on buffers and code size.
constexpr size_t kMostReads = 12;
constexpr uint32_t kMostOperations = 60;

struct Cost {
  uint32_t operations = 0;
  bool heavy = false;
  std::vector<ValueId> reads;  // distinct bases
};

class Materializer {
 public:
  Materializer(const Graph& graph, const driver::Options& options, Memory& memory)
      : graph_(graph), options_(options), memory_(memory) {}

  void run() {
    for (graph::NodeId id : graph_.order) own_results(id);
    for (graph::NodeId id : graph_.order)
      if (native(graph_, id) == nullptr)
        Graph::for_each_value(graph_.node(id).args, [&](const ValueId& v) { demand(v); });
    for (const graph::Mutation& mutation : graph_.mutations) demand(mutation.value);
    for (ValueId v : graph_.outputs) demand_output(v);
    uses_ = count_uses(graph_, [&](ValueId v) { return memory_.owns(v); });
    costs_.resize(graph_.value_count());
    for (graph::NodeId id : graph_.order) weigh(id);
  }

 private:
  void own_results(graph::NodeId id) {
    const ops::OpDef* def = native(graph_, id);
    const bool inlines = def != nullptr && (def->op_class == ops::OpClass::Pointwise || def->op_class == ops::OpClass::View);
    if (inlines) return;
    // ATen decides the strides of what it allocates.
    for (ValueId v : graph_.node(id).results)
      def == nullptr ? memory_.own(v, {graph_.type(v).strides, graph_.pool().constant(0)}) : memory_.own(v);
  }

  // `value` must be in memory at some strides: the value at the root of its views is stored, and a view that is no
  // strided tensor becomes a copy. Returns the layout it has.
  Layout demand(ValueId value) {
    if (memory_.owns(value)) return memory_.layout(value);
    if (is_view(graph_, value)) {
      const graph::Value& v = graph_.value(value);
      const Layout from = demand(std::get<ValueId>(graph_.node(v.node).args[0]));
      if (auto layout = strided_view(graph_, v.node, v.result, from)) return *layout;
    }
    memory_.own(value);
    return memory_.layout(value);
  }

  ValueId root_of(ValueId value) const {
    while (is_view(graph_, value) && !memory_.owns(value))
      value = std::get<ValueId>(graph_.node(graph_.value(value).node).args[0]);
    return value;
  }

  // An output has exactly eager's strides. A view of memory that exists anyway stays a view; a view of something
  // computed only for it is stored directly, when dense.
  void demand_output(ValueId value) {
    if (memory_.owns(value)) return;
    const TensorType& type = graph_.type(value);
    const Layout exact{type.strides, graph_.pool().constant(0)};
    if (!is_view(graph_, value)) return memory_.own(value, exact);
    const bool dense = dense_order(graph_.env(), type.sizes, type.strides).has_value();
    if (dense && !memory_.owns(root_of(value))) return memory_.own(value, exact);
    const Layout layout = demand(value);
    if (!memory_.owns(value) && !equal_strides(graph_.env(), type.sizes, layout.strides, type.strides))
      memory_.own(value, exact);
  }

  void weigh(graph::NodeId id) {
    const ops::OpDef* def = native(graph_, id);
    if (def == nullptr) return;
    if (def->op_class != ops::OpClass::Pointwise) return;
    const graph::Node& node = graph_.node(id);
    Cost cost{.operations = 1, .heavy = def->heavy, .reads = {}};
    Graph::for_each_value(node.args, [&](const ValueId& v) { add_argument(cost, v); });
    for (ValueId result : node.results) {
      costs_[result.index] = cost;
      if (!memory_.owns(result) && is_worth_storing(cost, uses_[result.index])) memory_.own(result);
    }
  }
  void add_argument(Cost& cost, ValueId value) {
    const ValueId root = root_of(value);
    if (memory_.owns(root)) {
      if (std::find(cost.reads.begin(), cost.reads.end(), root) == cost.reads.end()) cost.reads.push_back(root);
      return;
    }
    const Cost& inlined = costs_[root.index];
    cost.operations += inlined.operations;
    cost.heavy |= inlined.heavy;
    for (ValueId v : inlined.reads)
      if (std::find(cost.reads.begin(), cost.reads.end(), v) == cost.reads.end()) cost.reads.push_back(v);
  }
  bool is_worth_storing(const Cost& cost, const Use& use) const {
    if (!options_.fuse) return use.count > 0;
    if (cost.reads.size() > kMostReads || cost.operations > kMostOperations) return true;
    if (cost.heavy && use.expanded) return true;
    if (use.count < 2) return false;
    if (cost.heavy || cost.reads.size() > 1) return true;
    return cost.operations > (cost.reads.empty() ? kCheapOperationsWithoutReads : kCheapOperations);
  }

  const Graph& graph_;
  const driver::Options& options_;
  Memory& memory_;
  std::vector<Use> uses_;
  std::vector<Cost> costs_;
};

}  // namespace

void materialize(const Graph& graph, const driver::Options& options, Memory& memory) {
  Materializer(graph, options, memory).run();
}

}  // namespace cresset::fuse
