#include "fuse/materialize.h"

#include <algorithm>

#include "fuse/cost_model.h"
#include "fuse/read_whole.h"
#include "fuse/strided_view.h"
#include "fuse/uses.h"
#include "ops/scan.h"

namespace cresset::fuse {
namespace {

// Inlined expressions beyond these limits are cut, since kernels have limits on buffers and code size.
constexpr size_t kMostReads = 12;
constexpr uint32_t kMostOperations = 60;
// Each reshape between a value and memory may multiply the length of the index.
constexpr uint32_t kMostReshapes = 12;

struct Cost {
  uint32_t operations = 0;
  uint32_t reshapes = 0;       // the most reshapes on a path to memory
  uint32_t heavy = 0;          // operations of many instructions
  std::vector<ValueId> reads;  // distinct bases
  ValueId concat;              // a concatenation without memory which is read element by element
};

class Materializer {
 public:
  Materializer(const Graph& graph, const driver::Options& options, const std::unordered_set<ValueId>& stored,
               Memory& memory)
      : graph_(graph), options_(options), stored_(stored), memory_(memory) {}

  Sections run() {
    for (graph::NodeId id : graph_.order) own_results(id);
    for (graph::NodeId id : graph_.order)
      if (const ops::OpDef* def = native(graph_, id); def == nullptr || def->window)
        Graph::for_each_value(graph_.node(id).args, [&](const ValueId& v) { demand(v); });
    for (graph::NodeId id : graph_.order) own_from_elsewhere(id);
    for (const graph::Mutation& mutation : graph_.mutations) demand(mutation.value);
    for (ValueId v : graph_.outputs) demand_output(v);
    own_what_reports();
    uses_ = count_uses(graph_, [&](ValueId v) { return memory_.owns(v); });
    costs_.resize(graph_.value_count());
    for (graph::NodeId id : graph_.order) weigh(id);
    return std::move(sections_);
  }

 private:
  void own_results(graph::NodeId id) {
    const ops::OpDef* def = native(graph_, id);
    const bool decided_later = def != nullptr && def->op_class != ops::OpClass::Reduction && !ops::is_scan(*def);
    if (decided_later) return;
    // ATen decides the strides of tensors which it allocates.
    for (ValueId v : graph_.node(id).results)
      def == nullptr ? memory_.own(v, {graph_.type(v).strides, graph_.pool().constant(0)}) : memory_.own(v);
  }

  // Eager mode raises for all indices out of range. A value with reports of indices is stored, and so computed whole,
  // unless its readers need all of it in any case.
  void own_what_reports() {
    std::vector<graph::NodeId> reporting;
    for (graph::NodeId id : graph_.order) {
      const ops::OpDef* def = native(graph_, id);
      if (def != nullptr && def->op_class == ops::OpClass::Extern && memory_.data_indices().has_reports(id))
        reporting.push_back(id);
    }
    if (reporting.empty()) return;
    const std::vector<bool> whole = read_whole(graph_, memory_);
    for (const graph::NodeId id : reporting)
      for (const ValueId v : graph_.node(id).results)
        if (!whole[v.index]) memory_.own(v);
  }

  // A kernel takes an argument of another device by value, so the argument is an element in memory of its own.
  void own_from_elsewhere(graph::NodeId id) {
    if (native(graph_, id) == nullptr) return;
    const graph::Node& node = graph_.node(id);
    Graph::for_each_value(node.args, [&](const ValueId& v) {
      if (graph_.type(v).device != graph_.type(node.results[0]).device && !memory_.owns(v)) memory_.own(v);
    });
  }

  // Puts `value` in memory at arbitrary strides. The value at the root of its views is stored, and a view which is not
  // a strided tensor becomes a copy. Returns the layout of the value.
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
    while (is_view(graph_, value) && !memory_.owns(value)) value = viewed(value);
    return value;
  }

  // Gives an output exactly eager mode's strides. A view of memory which exists anyway stays a view. If the viewed
  // value would be computed only for this view, the view is stored directly, when dense.
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
    const graph::Node& node = graph_.node(id);
    switch (def->op_class) {
      case ops::OpClass::Pointwise:
        return weigh_pointwise(node, *def);
      case ops::OpClass::Concat:
        Graph::for_each_value(node.args, [&](const ValueId& v) { store_concat_of(v); });
        return weigh_concat(node);
      case ops::OpClass::Reduction:
        return weigh_fold(node);
      case ops::OpClass::View:  // a copy, or an element of another value
        for (ValueId result : node.results)
          if (memory_.owns(result)) store_concat_of(std::get<ValueId>(node.args[0]));
        return;
      case ops::OpClass::Extern:  // reads at indices from tensors, which are in no part of a concatenation for certain
        if (ops::is_scan(*def)) return weigh_fold(node);
        Graph::for_each_value(node.args, [&](const ValueId& v) { store_concat_of(v); });
        return weigh_pointwise(node, *def);
      case ops::OpClass::Composite:
        return;
    }
  }
  void weigh_fold(const graph::Node& node) {
    Graph::for_each_value(node.args, [&](const ValueId& v) {
      reshapes_below(v);
      store_concat_of(v);
    });
  }
  void weigh_concat(const graph::Node& node) {
    const ValueId value = node.results[0];
    if (memory_.owns(value)) return;
    if (!options_.fuse || uses_[value.index].count != 1 || stored_.count(value) != 0) return memory_.own(value);
    Cost cost{.operations = 1, .heavy = 0, .reads = {}, .concat = value};
    Graph::for_each_value(node.args, [&](const ValueId& part) {  // a section has a single part
      const Cost& inlined = costs_[root_of(part).index];
      cost.operations = std::max(cost.operations, inlined.operations + 1);
      cost.heavy = std::max(cost.heavy, inlined.heavy);
    });
    cost.reads.push_back(value);
    costs_[value.index] = std::move(cost);
  }
  void weigh_pointwise(const graph::Node& node, const ops::OpDef& def) {
    Cost cost{.operations = 1, .heavy = def.heavy ? 1u : 0u, .reads = {}, .concat = {}};
    Graph::for_each_value(node.args, [&](const ValueId& v) { add_argument(cost, v); });
    for (ValueId result : node.results) {
      const bool owned = memory_.owns(result) || is_worth_storing(cost, result);
      if (owned && !memory_.owns(result)) memory_.own(result);
      if (owned && cost.concat.valid()) add_sections(result, cost.concat);
      costs_[result.index] = cost;
    }
  }
  void add_sections(ValueId value, ValueId concat) {
    const auto &sizes = graph_.type(value).sizes, &parts = graph_.type(concat).sizes;
    const auto is_same = [this](sym::ExprId a, sym::ExprId b) { return graph_.env().known_equal(a, b); };
    if (node_results(value) == 1 && std::equal(sizes.begin(), sizes.end(), parts.begin(), parts.end(), is_same))
      sections_[value] = concat;
    else
      memory_.own(concat);
  }
  size_t node_results(ValueId value) const { return graph_.node(graph_.value(value).node).results.size(); }
  // Stores the concatenation, if any, which the element of `value` would read.
  void store_concat_of(ValueId value) {
    const ValueId root = root_of(value);
    if (memory_.owns(root)) return;
    const ValueId concat = costs_[root.index].concat;
    if (concat.valid()) memory_.own(concat);
  }
  // Returns the number of reshapes between the value and the root of its views. A view through too many reshapes
  // becomes a copy.
  uint32_t reshapes_below(ValueId value) {
    std::vector<ValueId> views;
    for (; is_view(graph_, value) && !memory_.owns(value); value = viewed(value)) views.push_back(value);
    uint32_t count = 0;
    for (; !views.empty(); views.pop_back()) {
      count += reshapes(views.back());
      if (count <= kMostReshapes) continue;
      store_concat_of(viewed(views.back()));
      memory_.own(views.back());
      count = 0;
    }
    return count;
  }
  ValueId viewed(ValueId view) const { return std::get<ValueId>(graph_.node(graph_.value(view).node).args[0]); }
  // A reshape from several dimensions to several different dimensions counts twice.
  uint32_t reshapes(ValueId view) const {
    if (!is_reshape(graph_.node(graph_.value(view).node).op)) return 0;
    const auto beside_ones = [&](ValueId v) {
      std::vector<sym::ExprId> sizes = graph_.type(v).sizes;
      std::erase_if(sizes, [&](sym::ExprId size) { return graph_.pool().is_const(size, 1); });
      return sizes;
    };
    const std::vector<sym::ExprId> from = beside_ones(viewed(view)), to = beside_ones(view);
    if (from == to) return 0;
    return from.size() > 1 && to.size() > 1 ? 2 : 1;
  }
  void add_argument(Cost& cost, ValueId value) {
    const uint32_t reshapes = reshapes_below(value);
    const ValueId root = root_of(value);
    cost.reshapes = std::max(cost.reshapes, reshapes + (memory_.owns(root) ? 0 : costs_[root.index].reshapes));
    if (memory_.owns(root)) return add_read(cost, root);
    const Cost& inlined = costs_[root.index];
    cost.operations += inlined.operations;
    cost.heavy += inlined.heavy;
    for (ValueId v : inlined.reads) add_read(cost, v);
    if (!inlined.concat.valid() || memory_.owns(inlined.concat)) return;
    if (cost.concat.valid() || root != value)
      memory_.own(inlined.concat);  // a single concatenation at a time, and not through views
    else
      cost.concat = inlined.concat;
  }
  static void add_read(Cost& cost, ValueId base) {
    if (std::find(cost.reads.begin(), cost.reads.end(), base) == cost.reads.end()) cost.reads.push_back(base);
  }
  // Whether the bytes read are few at the sizes of the hints. Results do not depend on the answer.
  bool is_spread(const Cost& cost, ValueId result) const {
    int64_t bytes = 0;
    for (const ValueId v : cost.reads) bytes += bytes_of(v);
    return bytes > 0 && 100 * bytes <= bytes_of(result) * model_of(result).inputs_percent;
  }
  // Whether the value is a few numbers of arguments, such as a number for each channel. A value of computed values is
  // stored by the kernel that computes them.
  bool is_small(const Cost& cost, ValueId result) const {
    const int64_t bytes = bytes_of(result);
    return bytes > 0 && bytes <= model_of(result).small_bytes &&
           std::none_of(cost.reads.begin(), cost.reads.end(), [&](ValueId v) { return graph_.value(v).node.valid(); });
  }
  const CostModel& model_of(ValueId v) const { return cost_model_of(graph_.type(v).device.kind); }
  int64_t bytes_of(ValueId v) const {
    const TensorType& type = graph_.type(v);
    const int64_t elements = graph_.env().typical_or(graph::numel(graph_.pool(), type.sizes), 0);
    return elements * static_cast<int64_t>(byte_size(type.dtype));
  }
  bool is_worth_storing(const Cost& cost, ValueId result) const {
    const Use& use = uses_[result.index];
    const CostModel& model = model_of(result);
    if (!options_.fuse) return use.count > 0;
    if (cost.reads.size() > kMostReads || cost.operations > kMostOperations) return true;
    if (cost.reshapes > kMostReshapes) return true;
    if (cost.heavy > model.heavy_again && use.expanded) return true;
    if (use.count < 2) return false;
    if (cost.concat.valid()) return true;
    const bool small = is_small(cost, result);
    if (cost.heavy > (small ? model.heavy_again : 0)) return true;
    if (cost.reads.size() > 1) return cost.operations > model.cheap_operations || !(small || is_spread(cost, result));
    return cost.operations > (cost.reads.empty() ? model.cheap_operations_without_reads : model.cheap_operations);
  }

  const Graph& graph_;
  const driver::Options& options_;
  const std::unordered_set<ValueId>& stored_;
  Memory& memory_;
  Sections sections_;
  std::vector<Use> uses_;
  std::vector<Cost> costs_;
};

}  // namespace

Sections materialize(const Graph& graph, const driver::Options& options, const std::unordered_set<ValueId>& stored,
                     Memory& memory) {
  return Materializer(graph, options, stored, memory).run();
}

}  // namespace cresset::fuse
