// Image networks are computed in channels-last format. The libraries' convolutions are up to 4x faster in it, and a
// conversion at the entry is paid once. Only values inside the graph change their strides; outputs keep eager mode's
// strides. A single convolution between values which keep their strides is not converted, since two conversions may
// cost more than they save. Whether they save is measured at the call (bridge/extern_kernels/cpu/convolution.cpp).
//
// Of a joint graph, the values saved between forward and backward program are inside. The pass runs before the split,
// so both programs agree on their strides; later passes derive strides from those of arguments, so a value that keeps
// its strides is a copy of its own there.
#include <algorithm>
#include <array>

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
    pin(graph.outputs);
    for (const graph::Mutation& m : graph.mutations) pin({m.value});
    pin_arguments_by_memory(graph.order);
  }

  bool run() {
    visit_all(graph_.order);
    undo_lone(graph_.order);
    const bool changed = has_changed();
    if (changed) convert_filters();
    return changed;
  }

  bool run_joint(std::vector<NodeId>& backward, const std::vector<ValueId>& kept) {
    pin(kept);
    pin_arguments_by_memory(backward);
    copies_of_pinned_ = true;
    visit_all(graph_.order);
    visit_all(backward);
    undo_lone(graph_.order);
    undo_lone(backward);
    return has_changed();
  }

 private:
  void pin(const std::vector<ValueId>& values) {
    for (const ValueId v : values) pinned_.insert(memory_of(graph_, v));
  }
  void pin_arguments_by_memory(const std::vector<NodeId>& order) {
    for (const NodeId id : order) {
      if (!ops::follows_memory_order(graph_.node(id))) continue;
      Graph::for_each_value(graph_.node(id).args, [&](ValueId v) { pin({v}); });
    }
  }

  // Nodes are added to the order around the visited nodes.
  void visit_all(std::vector<NodeId>& order) {
    std::vector<NodeId> apart = std::exchange(graph_.order, {});
    std::vector<NodeId> visited = &order == &graph_.order ? std::move(apart) : std::exchange(order, {});
    for (const NodeId id : visited) {
      for (const size_t image : images_of(graph_.node(id)).arguments) convert_input(id, image);
      graph_.order.push_back(id);
      if (reads_changed(graph_.node(id))) {
        keep_format(id);
        restride(id);
      }
    }
    if (&order == &graph_.order) return;
    order = std::exchange(graph_.order, std::move(apart));
  }

  bool has_changed() const {
    return std::any_of(conversions_.begin(), conversions_.end(),
                       [&](const Conversion& c) { return !is_lone(c.group); });
  }

  // The consequences of a conversion. Conversions whose consequences meet form a group.
  struct Group {
    size_t joined;  // the group which absorbed this group, or itself
    int convolutions = 0;
    bool leaves = false;   // pinned memory is computed from it
    bool refused = false;  // pinned memory would lose its strides
  };
  struct Conversion {
    NodeId convolution;
    size_t argument;
    ValueId before, after;
    size_t group;
  };
  // A pinned result: `kept` is a copy, in eager mode's strides, of what the node computes now.
  struct Copied {
    NodeId node, copy;
    size_t result;
    ValueId kept;
    size_t group;
  };
  struct Change {
    ValueId value;
    std::vector<graph::ExprId> strides;  // before
    size_t group;
  };

  // Positions of arguments.
  struct Images {
    std::vector<size_t> arguments;  // empty: no convolution of images
    size_t filter = 0;
  };
  Images images_of(const graph::Node& node) const {
    static const graph::OpId plain = graph::op_id("aten::convolution"),
                             with_epilogue = graph::op_id("prim::convolution_epilogue"),
                             backward = graph::op_id("aten::convolution_backward");
    const bool is_backward = node.op == backward;
    if (node.op != plain && node.op != with_epilogue && !is_backward) return {};
    const TensorType& input = graph_.type(std::get<ValueId>(node.args[is_backward ? 1 : 0]));
    const bool transposed = std::get<bool>(node.args[is_backward ? 7 : 6]);
    const DeviceTraits& traits = traits_of(input.device.kind);
    if (input.rank() != 4 || transposed || !traits.channels_last_convolutions.contains(input.dtype)) return {};
    if (!is_backward) return {.arguments = {0}, .filter = 1};
    return traits.channels_last_gradients ? Images{.arguments = {0, 1}, .filter = 2} : Images{};
  }

  void convert_input(NodeId id, size_t argument) {
    const ValueId input = std::get<ValueId>(graph_.node(id).args[argument]);
    if (is_channels_last(input)) return;
    ValueId& converted = converted_[input];
    if (!converted.valid()) {
      graph_.current_location = graph_.node(id).location;
      converted = ops::GraphBuilder(graph_).call("aten::clone", {input, MemoryFormat::ChannelsLast});
      changed_.emplace(converted, groups_.size());
      groups_.push_back({.joined = groups_.size()});
    }
    graph_.node(id).args[argument] = converted;
    conversions_.push_back({id, argument, input, converted, changed_.at(converted)});
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
      if (const Images images = images_of(node); !images.arguments.empty()) {
        const ValueId input = std::get<ValueId>(node.args[images.arguments.back()]),
                      filter = std::get<ValueId>(node.args[images.filter]);
        const bool reads_images = traits_of(graph_.type(input).device.kind).filters_as_images;
        if (reads_images && is_channels_last(input) && !is_channels_last(filter)) {
          graph_.current_location = node.location;
          ValueId& copy = copies[filter];
          if (!copy.valid()) copy = ops::GraphBuilder(graph_).call("aten::clone", {filter, MemoryFormat::ChannelsLast});
          graph_.node(id).args[images.filter] = copy;
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
    groups_[a].refused |= groups_[b].refused;
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
    return found.refused || (found.convolutions == 1 && found.leaves);
  }

  void undo_lone(std::vector<NodeId>& order) {
    std::unordered_set<NodeId> dropped;  // nodes, not results: a node of the order may have none (an assertion)
    for (const Conversion& conversion : conversions_) {
      if (!is_lone(conversion.group)) continue;
      graph_.node(conversion.convolution).args[conversion.argument] = conversion.before;
      dropped.insert(graph_.value(conversion.after).node);
    }
    for (const Copied& copied : copied_) {
      if (!is_lone(copied.group)) continue;
      place_result(copied.kept, copied.node, copied.result);
      dropped.insert(copied.copy);
    }
    std::erase_if(order, [&](NodeId id) { return dropped.contains(id); });
    for (Change& change : changes_)
      if (is_lone(change.group)) graph_.value(change.value).type.strides = change.strides;
  }

  void place_result(ValueId v, NodeId node, size_t result) {
    graph_.node(node).results[result] = v;
    graph_.value(v).node = node;
    graph_.value(v).result = static_cast<uint32_t>(result);
  }

  // The node computes a result in other strides than the pinned ones: the pinned value becomes a copy of it.
  // false: no copy has the pinned strides.
  bool copy_of_pinned(NodeId id, size_t result, const TensorType& type, size_t group) {
    const ValueId kept = graph_.node(id).results[result];
    const TensorType pinned = graph_.type(kept);
    for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
      if (format == MemoryFormat::ChannelsLast && pinned.rank() != 4) continue;
      const ValueId made = ops::GraphBuilder(graph_).call("aten::clone", {kept, format});
      const NodeId copy = graph_.value(made).node;
      if (graph_.type(made).strides != pinned.strides) {
        graph_.order.pop_back();
        continue;
      }
      place_result(made, id, result);
      graph_.value(made).type = type;
      place_result(kept, copy, 0);
      graph_.node(copy).args[0] = made;
      changed_.emplace(made, group);
      copied_.push_back({id, copy, result, kept, group});
      return true;
    }
    return false;
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
    if (!images_of(node).arguments.empty()) ++group.convolutions;
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
        if (copies_of_pinned_ && !copy_of_pinned(id, r, types[r], group.joined)) group.refused = true;
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
  std::vector<Copied> copied_;
  bool copies_of_pinned_ = false;
  ops::ShapeMemo memo_;
};

}  // namespace

bool channels_last(Graph& graph) { return ChannelsLast(graph).run(); }

bool channels_last_joint(Graph& forward, std::vector<NodeId>& backward, const std::vector<ValueId>& kept) {
  static const graph::OpId gradients = graph::op_id("aten::convolution_backward");
  const auto is_wanted = [&](NodeId id) {
    const graph::Node& node = forward.node(id);
    return node.op == gradients &&
           traits_of(forward.type(std::get<ValueId>(node.args[1])).device.kind).channels_last_gradients;
  };
  return std::any_of(backward.begin(), backward.end(), is_wanted) && ChannelsLast(forward).run_joint(backward, kept);
}

}  // namespace cresset::passes
