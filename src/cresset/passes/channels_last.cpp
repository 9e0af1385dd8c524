// Image networks are computed in channels-last format. The libraries' convolutions are up to 4x faster in it, and a
// conversion at the entry is paid once. Only values inside the graph change their strides; outputs keep eager mode's
// strides. A single convolution between values which keep their strides is not converted, since two conversions may
// cost more than they save. Whether they save is measured at the call (bridge/extern_kernels/cpu/convolution.cpp).
#include <algorithm>

#include "base/check.h"
#include "base/device_traits.h"
#include "ops/context.h"
#include "ops/effects.h"
#include "ops/result_types.h"
#include "ops/shape_memo.h"
#include "ops/strides.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::passes {
namespace {

using graph::MemoryFormat;
using graph::TensorType;

class ChannelsLast {
 public:
  explicit ChannelsLast(Graph& graph) : graph_(graph) {
    for (const ValueId v : graph.outputs) pinned_.insert(memory_of(graph, v));
    for (const graph::Mutation& m : graph.mutations) pinned_.insert(memory_of(graph, m.value));
    for (const NodeId id : graph.order) {
      if (!ops::follows_memory_order(graph.node(id))) continue;
      Graph::for_each_value(graph.node(id).args, [&](ValueId v) { pinned_.insert(memory_of(graph, v)); });
    }
  }

  bool run() {
    std::vector<NodeId> order = std::move(graph_.order);
    graph_.order.clear();
    for (const NodeId id : order) {
      if (is_image_convolution(graph_.node(id))) convert_input(id);
      graph_.order.push_back(id);
      if (reads_changed(graph_.node(id))) {
        keep_format(id);
        restride(id);
      }
    }
    undo_lone();
    const bool changed =
        std::any_of(conversions_.begin(), conversions_.end(), [&](const Conversion& c) { return !is_lone(c.group); });
    if (changed) convert_filters();
    return changed;
  }

 private:
  // The consequences of a conversion. Conversions whose consequences meet form a group.
  struct Group {
    size_t joined;  // the group which absorbed this group, or itself
    int convolutions = 0;
    bool leaves = false;  // pinned memory is computed from it
  };
  struct Conversion {
    NodeId convolution;
    ValueId before, after;
    size_t group;
  };
  struct Change {
    ValueId value;
    std::vector<graph::ExprId> strides;  // before
    size_t group;
  };

  bool is_image_convolution(const graph::Node& node) const {
    static const graph::OpId plain = graph::op_id("aten::convolution"),
                             with_epilogue = graph::op_id("prim::convolution_epilogue");
    if (node.op != plain && node.op != with_epilogue) return false;
    const TensorType& input = graph_.type(std::get<ValueId>(node.args[0]));
    const bool transposed = std::get<bool>(node.args[6]);
    return input.rank() == 4 && !transposed &&
           traits_of(input.device.kind).channels_last_convolutions.contains(input.dtype);
  }

  void convert_input(NodeId id) {
    const ValueId input = std::get<ValueId>(graph_.node(id).args[0]);
    if (is_channels_last(input)) return;
    ValueId& converted = converted_[input];
    if (!converted.valid()) {
      graph_.current_location = graph_.node(id).location;
      converted = ops::GraphBuilder(graph_).call("aten::clone", {input, MemoryFormat::ChannelsLast});
      changed_.emplace(converted, groups_.size());
      groups_.push_back({.joined = groups_.size()});
    }
    graph_.node(id).args[0] = converted;
    conversions_.push_back({id, input, converted, changed_.at(converted)});
  }

  // An operator that is told a format or strides, inside of the graph, would take the image out of the format that the
  // next convolution reads: a copy in row-major format keeps the image's format, a reshape with strides takes the
  // strides of the changed image.
  void keep_format(NodeId id) {
    static const graph::OpId clone = graph::op_id("aten::clone"), reshape = graph::op_id("aten::_reshape_alias"),
                             view = graph::op_id("aten::view");
    graph::Node& node = graph_.node(id);
    if (node.op != clone && node.op != reshape) return;
    if (pinned_.count(memory_of(graph_, node.results[0])) != 0) return;
    if (node.op == reshape) {
      node.op = view;
      node.args.resize(2);  // the sizes stay, the strides go
      return;
    }
    const auto* format = std::get_if<MemoryFormat>(&node.args[1]);
    const bool in_rows = format != nullptr && *format == MemoryFormat::Contiguous;
    if (in_rows && is_channels_last(std::get<ValueId>(node.args[0]))) node.args[1] = MemoryFormat::Preserve;
  }

  // Libraries which read filters in the format of the image would copy them inside of each call.
  void convert_filters() {
    std::unordered_map<ValueId, ValueId> copies;
    std::vector<NodeId> order = std::move(graph_.order);
    graph_.order.clear();
    for (const NodeId id : order) {
      const graph::Node& node = graph_.node(id);
      if (is_image_convolution(node)) {
        const ValueId input = std::get<ValueId>(node.args[0]), filter = std::get<ValueId>(node.args[1]);
        const bool reads_images = traits_of(graph_.type(input).device.kind).filters_as_images;
        if (reads_images && is_channels_last(input) && !is_channels_last(filter)) {
          graph_.current_location = node.location;
          ValueId& copy = copies[filter];
          if (!copy.valid()) copy = ops::GraphBuilder(graph_).call("aten::clone", {filter, MemoryFormat::ChannelsLast});
          graph_.node(id).args[1] = copy;
        }
      }
      graph_.order.push_back(id);
    }
  }
  bool is_channels_last(ValueId v) { return ops::is_channels_last_contiguous(graph_.env(), graph_.type(v)); }

  size_t root(size_t group) const {
    while (groups_[group].joined != group) group = groups_[group].joined;
    return group;
  }

  size_t join(size_t a, size_t b) {
    a = root(a);
    b = root(b);
    if (a == b) return a;
    groups_[b].joined = a;
    groups_[a].convolutions += groups_[b].convolutions;
    groups_[a].leaves |= groups_[b].leaves;
    return a;
  }

  // The group of a node which reads changed values.
  Group& group_of(const graph::Node& node) {
    std::optional<size_t> group;
    Graph::for_each_value(node.args, [&](ValueId v) {
      const auto found = changed_.find(v);
      if (found != changed_.end()) group = group ? join(*group, found->second) : root(found->second);
    });
    CRESSET_CHECK(group.has_value(), "a node that reads nothing changed has no group");
    return groups_[*group];
  }

  bool is_lone(size_t group) const {
    const Group& found = groups_[root(group)];
    return found.convolutions == 1 && found.leaves;
  }

  void undo_lone() {
    std::unordered_set<NodeId> dropped;  // nodes, not results: a node of the order may have none (an assertion)
    for (const Conversion& conversion : conversions_) {
      if (!is_lone(conversion.group)) continue;
      graph_.node(conversion.convolution).args[0] = conversion.before;
      dropped.insert(graph_.value(conversion.after).node);
    }
    std::erase_if(graph_.order, [&](NodeId id) { return dropped.contains(id); });
    for (Change& change : changes_)
      if (is_lone(change.group)) graph_.value(change.value).type.strides = std::move(change.strides);
  }

  bool reads_changed(const graph::Node& node) const {
    bool found = false;
    Graph::for_each_value(node.args, [&](ValueId v) { found = found || changed_.count(v) != 0; });
    return found;
  }

  // Sets the strides which eager mode would give now. If a rule refuses the new strides (a view is impossible), the
  // result keeps its strides; its meaning does not depend on them.
  void restride(NodeId id) {
    const graph::Node& node = graph_.node(id);
    Group& group = group_of(node);
    if (is_image_convolution(node)) ++group.convolutions;
    const ops::OpDef* def = ops::find(node.op);
    if (def == nullptr || def->shape == nullptr) return;
    graph_.current_location = node.location;
    const ops::Types& types = types_of(*def, node);
    if (types.size() != node.results.size()) return;
    for (size_t r = 0; r < types.size(); ++r) {
      TensorType& type = graph_.value(node.results[r]).type;
      if (types[r].strides == type.strides) continue;
      if (pinned_.count(memory_of(graph_, node.results[r])) != 0) {
        group.leaves = true;
        continue;
      }
      changes_.push_back({node.results[r], std::exchange(type.strides, types[r].strides), group.joined});
      changed_.emplace(node.results[r], group.joined);
    }
  }

  // Returns an empty list where the rule refuses. The memo pays because layers repeat, and comparing strides of mixed
  // layouts takes proofs.
  const ops::Types& types_of(const ops::OpDef& def, const graph::Node& node) {
    if (const ops::ShapeMemo::Entry* known = memo_.find(graph_, node.op, node.args)) return known->types;
    ops::ShapeContext shapes(graph_, ops::name_of(def), ops::ShapeContext::Demands::KnownOnly);
    const Result<ops::Types> types = ops::result_types(shapes, def, node.args);
    memo_.add({.types = types.ok() ? *types : ops::Types(), .refused = !types.ok()});
    return memo_.find(graph_, node.op, node.args)->types;
  }

  Graph& graph_;
  std::unordered_set<ValueId> pinned_;           // memory given to the caller, or whose order is visible
  std::unordered_map<ValueId, size_t> changed_;  // values whose strides differ from eager mode's, with their groups
  std::unordered_map<ValueId, ValueId> converted_;
  std::vector<Group> groups_;
  std::vector<Conversion> conversions_;
  std::vector<Change> changes_;
  ops::ShapeMemo memo_;
};

}  // namespace

bool channels_last(Graph& graph) { return ChannelsLast(graph).run(); }

}  // namespace cresset::passes
