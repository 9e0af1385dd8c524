#include "bridge/masked_assignment.h"

#include <unordered_map>

#include "bridge/data_read.h"
#include "ops/op_def.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::ValueId;

// What was computed of x[mask], element by element, computed of all of x instead.
class Unmasked {
 public:
  Unmasked(Capture& capture, ValueId self, ValueId mask) : capture_(capture), self_(self), mask_(mask) {}

  // nullopt: it was not made of x[mask] and numbers alone.
  std::optional<ValueId> of(ValueId value, int depth = 0) {
    if (const auto known = made_.find(value); known != made_.end()) return known->second;
    const graph::Graph& graph = capture_.graph();
    if (graph.value(value).kind != graph::Value::Kind::Result || depth > kDeepest) return number(value);
    const graph::Node node = graph.node(graph.value(value).node);
    if (reads_masked(node)) return self_;
    const ops::OpDef* def = ops::find(node.op);
    if (def == nullptr || def->op_class != ops::OpClass::Pointwise || node.through_aten || node.results.size() != 1 ||
        is_random(node.op))
      return number(value);
    std::vector<Arg> args = node.args;
    const auto is_tensor = [](const Arg& arg) { return std::holds_alternative<ValueId>(arg); };
    if (std::none_of(args.begin(), args.end(), is_tensor)) return number(value);  // of sizes of its own
    for (Arg& arg : args) {
      if (std::holds_alternative<std::vector<graph::OptionalValue>>(arg)) return std::nullopt;
      auto* operand = std::get_if<ValueId>(&arg);
      if (operand == nullptr) continue;
      const std::optional<ValueId> whole = of(*operand, depth + 1);
      if (!whole) return std::nullopt;
      *operand = *whole;
    }
    const ValueId whole = capture_.call(node.op, std::move(args))[0];
    made_.emplace(value, whole);
    return whole;
  }

 private:
  static constexpr int kDeepest = 16;

  std::optional<ValueId> number(ValueId value) const {
    graph::Graph& graph = capture_.graph();
    const graph::TensorType& type = graph.type(value);
    const bool one = graph.pool().is_const(graph::numel(graph.pool(), type.sizes), 1);
    return one && type.rank() <= graph.type(self_).rank() ? std::optional(value) : std::nullopt;
  }

  // x[mask], as Capture::replace_masks writes it: one index for each dimension of nonzero(mask).
  bool reads_masked(const graph::Node& node) const {
    static const graph::OpId index = graph::op_id("aten::index.Tensor"), select = graph::op_id("aten::select.int");
    const graph::Graph& graph = capture_.graph();
    if (node.op != index || std::get<ValueId>(node.args[0]) != self_) return false;
    const auto& indices = std::get<std::vector<graph::OptionalValue>>(node.args[1]);
    if (indices.size() != graph.type(mask_).rank()) return false;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!indices[d] || graph.value(*indices[d]).kind != graph::Value::Kind::Result) return false;
      const graph::Node& one = graph.node(graph.value(*indices[d]).node);
      if (one.op != select || !capture_.is_nonzero_of(std::get<ValueId>(one.args[0]), mask_) ||
          !graph.pool().is_const(std::get<sym::ExprId>(one.args[2]), static_cast<int64_t>(d)))
        return false;
    }
    return true;
  }

  Capture& capture_;
  ValueId self_, mask_;
  std::unordered_map<ValueId, ValueId> made_;
};

}  // namespace

std::optional<graph::ValueId> masked_assignment(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args) {
  graph::Graph& graph = capture.graph();
  static const graph::OpId index_put = graph::op_id("aten::index_put"), where = graph::op_id("aten::where.self"),
                           unsqueeze = graph::op_id("aten::unsqueeze");
  if (op != index_put) return std::nullopt;
  const auto& indices = std::get<std::vector<graph::OptionalValue>>(args[1]);
  const graph::ValueId self = std::get<graph::ValueId>(args[0]), value = std::get<graph::ValueId>(args[2]);
  if (indices.size() != 1 || !indices[0] || std::get<bool>(args[3])) return std::nullopt;
  const graph::TensorType type = graph.type(self), mask_type = graph.type(*indices[0]);
  if (mask_type.dtype != DType::Bool || graph.type(value).dtype != type.dtype) return std::nullopt;
  if (mask_type.rank() == 0 || graph.type(value).rank() > type.rank()) return std::nullopt;
  ops::ShapeContext context(graph, "aten::index_put");
  if (mask_type.rank() > type.rank()) return std::nullopt;  // eager raises
  for (size_t d = 0; d < mask_type.rank(); ++d)
    if (!context.require_equal(mask_type.sizes[d], type.sizes[d])) return std::nullopt;
  const std::optional<graph::ValueId> chosen = Unmasked(capture, self, *indices[0]).of(value);
  if (!chosen) return std::nullopt;
  graph::ValueId mask = *indices[0];
  for (size_t d = mask_type.rank(); d < type.rank(); ++d)
    mask = capture.call(unsqueeze, {mask, graph.pool().constant(-1)})[0];
  return capture.call(where, {mask, *chosen, self})[0];
}

}  // namespace cresset::bridge
