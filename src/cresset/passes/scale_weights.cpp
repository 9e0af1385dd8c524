#include "base/device_traits.h"
#include "passes/freeze.h"
#include "passes/passes.h"
#include "passes/unchanging.h"

namespace cresset::passes {
namespace {

using graph::Arg;
using graph::OpId;
using sym::ExprId;

struct Ops {
  OpId mul = graph::op_id("aten::mul.Tensor"), add = graph::op_id("aten::add.Tensor"),
       sub = graph::op_id("aten::sub.Tensor"), view = graph::op_id("aten::view"),
       unsafe_view = graph::op_id("aten::_unsafe_view"), cast = graph::op_id("aten::_to_copy"),
       mm = graph::op_id("aten::mm"), addmm = graph::op_id("aten::addmm"),
       convolution = graph::op_id("aten::convolution");
};
const Ops& ops_here() {
  static const Ops found;
  return found;
}

class ScaleWeights {
 public:
  ScaleWeights(Graph& graph, const std::vector<bool>& fixed)
      : graph_(graph), unchanging_(graph, fixed), builder_(graph) {
    for (const NodeId id : graph.order) Graph::for_each_value(graph.node(id).args, [&](ValueId v) { ++uses_[v]; });
    for (const ValueId v : graph.outputs) ++uses_[v];
    for (const graph::Mutation& m : graph.mutations) ++uses_[m.value];
  }

  bool run() {
    std::vector<NodeId> order = std::move(graph_.order);
    graph_.order.clear();
    for (const NodeId id : order) {
      replacements_.apply(graph_.node(id).args);
      const std::optional<ValueId> instead = absorb(id);
      graph_.order.push_back(id);
      if (instead) replacements_.add(graph_.node(id).results[0], *instead);
    }
    replacements_.apply_to_results(graph_);
    if (!builder_.appended().empty()) dead_code(graph_);
    return !replacements_.empty();
  }

 private:
  // A product or convolution, and the views and casts of its result up to a value.
  struct Producer {
    NodeId node;
    std::vector<NodeId> links;  // the last first
    bool is_convolution;
    ValueId weight;
    std::optional<ValueId> bias;
    ExprId channels;
    size_t from_right;  // the channel dimension of the value, counted from the right
  };

  // Returns a value which may replace the node's result.
  std::optional<ValueId> absorb(NodeId id) {
    const Ops& op = ops_here();
    const graph::Node& node = graph_.node(id);
    const bool multiplies = node.op == op.mul;
    if (!multiplies && ((node.op != op.add && node.op != op.sub) || !is_number(graph_, node.args[2], 1)))
      return std::nullopt;
    const auto *a = std::get_if<ValueId>(&node.args[0]), *b = std::get_if<ValueId>(&node.args[1]);
    if (a == nullptr || b == nullptr) return std::nullopt;
    if (std::optional<ValueId> made = absorb(id, *a, *b)) return made;
    return node.op == op.sub ? std::nullopt : absorb(id, *b, *a);
  }

  std::optional<ValueId> absorb(NodeId id, ValueId x, ValueId factor) {
    const graph::TensorType type = graph_.type(graph_.node(id).results[0]);
    if (!unchanging_.contains(factor) || unchanging_.contains(x)) return std::nullopt;
    const graph::TensorType& given = graph_.type(x);
    if (given.dtype != type.dtype || given.sizes != type.sizes || graph_.type(factor).dtype != type.dtype)
      return std::nullopt;
    std::optional<Producer> producer = producer_of(x);
    if (!producer || !is_of_channels(factor, *producer)) return std::nullopt;
    const bool scales = graph_.node(id).op == ops_here().mul;
    if (!scales && producer->is_convolution && traits_of(type.device.kind).bias_after_convolutions) return std::nullopt;
    graph_.current_location = graph_.node(id).location;
    const size_t before = builder_.appended().size();
    const ValueId made = again(*producer, graph_.node(id).op, by_channel(factor, producer->channels));
    for (size_t i = before; i < builder_.appended().size(); ++i) unchanging_.note(builder_.appended()[i]);
    if (!same_type(graph_.type(made), type)) return std::nullopt;
    uses_[made] = uses_[graph_.node(id).results[0]];
    return made;
  }

  std::optional<Producer> producer_of(ValueId x) const {
    const Ops& op = ops_here();
    Producer out;
    bool viewed = false;
    for (ValueId v = x;; v = std::get<ValueId>(graph_.node(out.links.back()).args[0])) {
      const auto uses = uses_.find(v);
      if (!graph_.value(v).node.valid() || uses == uses_.end() || uses->second != 1) return std::nullopt;
      const NodeId id = graph_.value(v).node;
      const graph::Node& node = graph_.node(id);
      if (node.through_aten) return std::nullopt;
      if (node.op == op.view || node.op == op.unsafe_view) {
        if (!keeps_columns(node)) return std::nullopt;
        viewed = true;
      } else if (node.op != op.cast || !widens(node)) {
        out.node = id;
        return read(out, viewed) ? std::optional(std::move(out)) : std::nullopt;
      }
      out.links.push_back(id);
    }
  }

  bool read(Producer& out, bool viewed) const {
    const Ops& op = ops_here();
    const graph::Node& node = graph_.node(out.node);
    out.is_convolution = node.op == op.convolution;
    if (out.is_convolution) {
      out.weight = std::get<ValueId>(node.args[1]);
      const bool transposed = std::get<bool>(node.args[6]);  // then channels are in another dimension
      if (viewed || transposed || graph_.type(node.results[0]).rank() != graph_.type(out.weight).rank()) return false;
      if (const auto* bias = std::get_if<ValueId>(&node.args[2])) out.bias = *bias;
      out.channels = graph_.type(out.weight).sizes[0];
      out.from_right = graph_.type(node.results[0]).rank() - 2;
    } else {
      const bool biased = node.op == op.addmm;
      if (!biased && node.op != op.mm) return false;
      if (biased && (!is_number(graph_, node.args[3], 1) || !is_number(graph_, node.args[4], 1))) return false;
      out.weight = std::get<ValueId>(node.args[biased ? 2 : 1]);
      if (biased) out.bias = std::get<ValueId>(node.args[0]);
      out.channels = graph_.type(out.weight).sizes[1];
      out.from_right = 0;
    }
    const auto is_vector = [&](ValueId v) {
      return graph_.type(v).rank() == 1 && graph_.type(v).sizes[0] == out.channels;
    };
    return is_float(graph_.type(out.weight).dtype) && unchanging_.contains(out.weight) &&
           (!out.bias || (unchanging_.contains(*out.bias) && is_vector(*out.bias)));
  }

  bool keeps_columns(const graph::Node& node) const {
    const auto &from = graph_.type(std::get<ValueId>(node.args[0])).sizes, &to = graph_.type(node.results[0]).sizes;
    return !from.empty() && !to.empty() && from.back() == to.back();
  }

  bool widens(const graph::Node& node) const {
    const DType from = graph_.type(std::get<ValueId>(node.args[0])).dtype, to = graph_.type(node.results[0]).dtype;
    return to == DType::F32 && (from == DType::BF16 || from == DType::F16);
  }

  // Whether the factor has a number for each channel, or a single number.
  bool is_of_channels(ValueId factor, const Producer& producer) const {
    const std::vector<ExprId>& sizes = graph_.type(factor).sizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const bool is_channel = sizes.size() - 1 - d == producer.from_right && sizes[d] == producer.channels;
      if (!is_channel && !graph_.pool().is_const(sizes[d], 1)) return false;
    }
    return true;
  }

  ValueId by_channel(ValueId factor, ExprId channels) {
    const sym::ExprPool& pool = graph_.pool();
    const bool single = pool.is_const(graph::numel(graph_.pool(), graph_.type(factor).sizes), 1);
    const std::vector<ExprId> flat{single ? graph_.pool().constant(1) : channels};
    const ValueId line = builder_.call("aten::view", {builder_.call("aten::clone", {factor, graph::None{}}), flat});
    return single ? builder_.call("aten::expand", {line, std::vector<ExprId>{channels}, false}) : line;
  }

  // Builds the producer with changed channels, and the nodes which follow it.
  ValueId again(const Producer& producer, OpId change, ValueId line) {
    const bool multiplies = change == ops_here().mul;
    const DType stored = graph_.type(producer.weight).dtype, wide = graph_.type(line).dtype;
    const auto changed = [&](ValueId v, ValueId by) {
      const ValueId widened = builder_.cast(v, wide);
      std::vector<Arg> args{widened, by};
      if (!multiplies) args.push_back(builder_.integer(1));
      return builder_.cast(builder_.call(graph::op_name(change), std::move(args)), stored);
    };
    ValueId weight = producer.weight;
    if (multiplies) weight = changed(weight, producer.is_convolution ? over_filters(line, weight) : line);
    std::optional<ValueId> bias = producer.bias;
    if (bias)
      bias = changed(*bias, line);
    else if (!multiplies)
      bias = builder_.cast(change == ops_here().sub ? builder_.call("aten::neg", {line}) : line, stored);
    ValueId v = product(producer, weight, bias);
    for (auto link = producer.links.rbegin(); link != producer.links.rend(); ++link) {
      std::vector<Arg> args = graph_.node(*link).args;
      args[0] = v;
      uses_[v] = 1;
      v = builder_.call(graph::op_name(graph_.node(*link).op), std::move(args));
    }
    return v;
  }

  ValueId over_filters(ValueId line, ValueId weight) {
    std::vector<ExprId> sizes(graph_.type(weight).rank(), graph_.pool().constant(1));
    sizes[0] = graph_.type(weight).sizes[0];
    return builder_.call("aten::view", {line, std::move(sizes)});
  }

  ValueId product(const Producer& producer, ValueId weight, std::optional<ValueId> bias) {
    std::vector<Arg> args = graph_.node(producer.node).args;
    if (producer.is_convolution) {
      args[1] = weight;
      args[2] = bias ? Arg(*bias) : Arg(graph::None{});
      return builder_.call("aten::convolution", std::move(args));
    }
    const Arg left = args[producer.bias ? 1 : 0];
    if (!bias) return builder_.call("aten::mm", {left, weight});
    return builder_.call("aten::addmm", {*bias, left, weight, builder_.integer(1), builder_.integer(1)});
  }

  Graph& graph_;
  Unchanging unchanging_;
  ops::GraphBuilder builder_;
  std::unordered_map<ValueId, int> uses_;
  Replacements replacements_;
};

}  // namespace

bool scale_weights(Graph& graph, const std::vector<bool>& fixed) { return ScaleWeights(graph, fixed).run(); }

}  // namespace cresset::passes
