#include "bridge/capture/masked_assignment.h"

#include <unordered_map>

#include "ops/effects.h"
#include "ops/elementwise.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::OptionalValue;
using graph::ValueId;

// The operands of result[..., mask, ...] = value. A tensor under the mask has the dimensions before the mask, a
// dimension for the selected elements, and the dimensions after the mask.
struct Assignment {
  ValueId self, mask, value;
  size_t before = 0, masked = 0, after = 0;  // dimensions of self
  bool accumulate = false;
};

// Recomputes an elementwise function of tensors under the mask from the whole tensors.
class Unmasked {
 public:
  Unmasked(Capture& capture, const Assignment& call) : capture_(capture), call_(call) {
    const std::optional<ValueId> found = capture.recorder().nonzero_of(call.mask);
    const std::vector<sym::ExprId>& sizes = graph().type(call.self).sizes;
    under_.assign(sizes.begin(), sizes.begin() + static_cast<long>(call.before));
    // Without an earlier nonzero, no tensor has the size of the selection.
    under_.push_back(found ? graph().type(*found).sizes[0] : graph().pool().constant(1));
    under_.insert(under_.end(), sizes.end() - static_cast<long>(call.after), sizes.end());
  }

  // nullopt: the value is no function of tensors under the mask and of values constant over the selection.
  std::optional<ValueId> of(ValueId value, int depth = 0) {
    if (const auto known = made_.find(value); known != made_.end()) return known->second;
    std::optional<ValueId> whole = the_same_for_all(value);
    if (!whole && graph().value(value).kind == graph::Value::Kind::Result && depth <= kDeepest) {
      const graph::Node node = graph().node(graph().value(value).node);
      whole = of_masked(node);
      if (!whole) whole = of_filled(node);
      if (!whole) whole = of_expanded(node);
      if (!whole) whole = of_elements(node, depth);
    }
    if (whole) made_.emplace(value, *whole);
    return whole;
  }

 private:
  static constexpr int kDeepest = 16;
  graph::Graph& graph() const { return capture_.graph(); }

  bool is_one(sym::ExprId size) const { return graph().pool().is_const(size, 1); }

  // A value which has a single element along the mask's dimension, if it reaches so far.
  std::optional<ValueId> the_same_for_all(ValueId value) const {
    const graph::TensorType& type = graph().type(value);
    const bool one = std::all_of(type.sizes.begin(), type.sizes.end(), [&](sym::ExprId s) { return is_one(s); });
    if (one && type.rank() <= under_.size()) return value;
    const size_t rank = type.rank();
    if (rank <= call_.after) return value;
    // Dimensions before the mask stay in place only if the mask has a single dimension.
    const bool aligned = rank == call_.after + 1 || call_.masked == 1;
    return aligned && rank <= under_.size() && is_one(type.sizes[rank - 1 - call_.after]) ? std::optional(value)
                                                                                          : std::nullopt;
  }

  // z[mask], as Capture::replace_masks writes it: an index for each dimension of nonzero(mask).
  std::optional<ValueId> of_masked(const graph::Node& node) const {
    static const graph::OpId index = graph::op_id("aten::index.Tensor"), select = graph::op_id("aten::select.int");
    if (node.op != index) return std::nullopt;
    const ValueId self = std::get<ValueId>(node.args[0]);
    const auto& indices = std::get<std::vector<OptionalValue>>(node.args[1]);
    const size_t rank = graph().type(self).rank(), around = call_.masked + call_.after;
    if (rank < around || rank - around > call_.before) return std::nullopt;
    const size_t before = rank - around;
    if (indices.size() < before + call_.masked) return std::nullopt;
    for (size_t d = 0; d < indices.size(); ++d) {
      const bool here = d >= before && d < before + call_.masked;
      if (here != indices[d].has_value()) return std::nullopt;
      if (!here) continue;
      if (graph().value(*indices[d]).kind != graph::Value::Kind::Result) return std::nullopt;
      const graph::Node& one = graph().node(graph().value(*indices[d]).node);
      if (one.op != select || !capture_.recorder().is_nonzero_of(std::get<ValueId>(one.args[0]), call_.mask) ||
          !graph().pool().is_const(std::get<sym::ExprId>(one.args[2]), static_cast<int64_t>(d - before)))
        return std::nullopt;
    }
    return self;
  }

  bool fits_under_mask(const std::vector<sym::ExprId>& sizes) const {
    if (sizes.size() > under_.size()) return false;
    for (size_t d = 1; d <= sizes.size(); ++d)
      if (!is_one(sizes[sizes.size() - d]) &&
          !graph().env().known_equal(sizes[sizes.size() - d], under_[under_.size() - d]))
        return false;
    return true;
  }

  // A fill with the size of the selection: returns the number.
  std::optional<ValueId> of_filled(const graph::Node& node) {
    if (!ops::traits(node.op).uniform) return std::nullopt;
    std::vector<Arg> args = node.args;
    for (Arg& arg : args) {
      auto* sizes = std::get_if<std::vector<sym::ExprId>>(&arg);
      if (sizes == nullptr) continue;
      if (!fits_under_mask(*sizes)) return std::nullopt;
      sizes->clear();
    }
    return capture_.recorder().call(node.op, std::move(args))[0];
  }

  std::optional<ValueId> of_expanded(const graph::Node& node) const {
    static const graph::OpId expand = graph::op_id("aten::expand");
    if (node.op != expand || !fits_under_mask(graph().type(node.results[0]).sizes)) return std::nullopt;
    return the_same_for_all(std::get<ValueId>(node.args[0]));
  }

  std::optional<ValueId> of_elements(const graph::Node& node, int depth) {
    if (!ops::is_elementwise(node.op) || node.through_aten || node.results.size() != 1 || ops::draws(node))
      return std::nullopt;
    if (!fits_under_mask(graph().type(node.results[0]).sizes)) return std::nullopt;
    std::vector<Arg> args = node.args;
    for (Arg& arg : args) {
      if (std::holds_alternative<std::vector<OptionalValue>>(arg)) return std::nullopt;
      auto* operand = std::get_if<ValueId>(&arg);
      if (operand == nullptr) continue;
      const std::optional<ValueId> whole = of(*operand, depth + 1);
      if (!whole) return std::nullopt;
      *operand = *whole;
    }
    return capture_.recorder().call(node.op, std::move(args))[0];
  }

  Capture& capture_;
  const Assignment& call_;
  std::vector<sym::ExprId> under_;  // sizes of tensors under the mask
  std::unordered_map<ValueId, ValueId> made_;
};

std::optional<Assignment> assignment_of(graph::Graph& graph, graph::OpId op, const std::vector<Arg>& args) {
  static const graph::OpId index_put = graph::op_id("aten::index_put"),
                           with_accumulation = graph::op_id("aten::_index_put_impl");
  if (op != index_put && op != with_accumulation) return std::nullopt;
  Assignment out;
  out.self = std::get<ValueId>(args[0]);
  out.value = std::get<ValueId>(args[2]);
  out.accumulate = std::get<bool>(args[3]);
  const auto& indices = std::get<std::vector<OptionalValue>>(args[1]);
  const auto given = [](const OptionalValue& index) { return index.has_value(); };
  if (std::count_if(indices.begin(), indices.end(), given) != 1) return std::nullopt;
  const auto at = std::find_if(indices.begin(), indices.end(), given);
  out.mask = **at;
  out.before = static_cast<size_t>(at - indices.begin());
  const graph::TensorType type = graph.type(out.self), mask = graph.type(out.mask);
  out.masked = mask.rank();
  const bool computable = mask.dtype == DType::Bool && graph.type(out.value).dtype == type.dtype &&
                          !(out.accumulate && type.dtype == DType::Bool);
  if (!computable || mask.rank() == 0 || graph.type(out.value).rank() > type.rank()) return std::nullopt;
  if (out.before + mask.rank() > type.rank()) return std::nullopt;  // eager mode raises
  out.after = type.rank() - out.before - mask.rank();
  ops::ShapeContext context(graph, "aten::index_put");
  for (size_t d = 0; d < mask.rank(); ++d)
    if (!context.require_equal(mask.sizes[d], type.sizes[out.before + d])) return std::nullopt;
  return out;
}

// Whether the value can be written to all of `to`.
bool broadcasts_to(graph::Graph& graph, const graph::TensorType& type, const graph::TensorType& to) {
  if (type.rank() > to.rank() || type.dtype != to.dtype) return false;
  ops::ShapeContext context(graph, "aten::index_put");
  for (size_t d = 1; d <= type.rank(); ++d) {
    const sym::ExprId size = type.sizes[type.rank() - d];
    if (!graph.pool().is_const(size, 1) && !context.require_equal(size, to.sizes[to.rank() - d])) return false;
  }
  return true;
}

class SameComputation {
 public:
  explicit SameComputation(const graph::Graph& graph) : graph_(graph) {}
  bool operator()(ValueId a, ValueId b, int depth = 0) {
    if (a == b) return true;
    const graph::Value &one = graph_.value(a), &other = graph_.value(b);
    if (one.kind != graph::Value::Kind::Result || other.kind != graph::Value::Kind::Result ||
        one.result != other.result || depth > kDeepest || --left_ < 0)
      return false;
    const graph::Node &x = graph_.node(one.node), &y = graph_.node(other.node);
    if (x.op != y.op || x.args.size() != y.args.size() || ops::draws(x)) return false;
    for (size_t i = 0; i < x.args.size(); ++i) {
      const auto* value = std::get_if<ValueId>(&x.args[i]);
      const auto* its = std::get_if<ValueId>(&y.args[i]);
      const bool same = value != nullptr && its != nullptr ? (*this)(*value, *its, depth + 1) : x.args[i] == y.args[i];
      if (!same) return false;
    }
    return true;
  }

 private:
  static constexpr int kDeepest = 16;
  const graph::Graph& graph_;
  int left_ = 256;
};

}  // namespace

bool same_computation(const graph::Graph& graph, ValueId a, ValueId b) { return SameComputation(graph)(a, b); }

std::optional<ValueId> masked_assignment(Capture& capture, graph::OpId op, const std::vector<Arg>& args) {
  static const graph::OpId where = graph::op_id("aten::where.self"), unsqueeze = graph::op_id("aten::unsqueeze"),
                           add = graph::op_id("aten::add.Tensor");
  graph::Graph& graph = capture.graph();
  const std::optional<Assignment> call = assignment_of(graph, op, args);
  if (!call) return std::nullopt;
  std::optional<ValueId> chosen = Unmasked(capture, *call).of(call->value);
  if (!chosen || !broadcasts_to(graph, graph.type(*chosen), graph.type(call->self))) return std::nullopt;
  if (call->accumulate) chosen = capture.recorder().call(add, {call->self, *chosen, graph.pool().constant(1)})[0];
  ValueId mask = call->mask;
  for (size_t d = 0; d < call->after; ++d)
    mask = capture.recorder().call(unsqueeze, {mask, graph.pool().constant(-1)})[0];
  return capture.recorder().call(where, {mask, *chosen, call->self})[0];
}

}  // namespace cresset::bridge
