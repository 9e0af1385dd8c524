#include "bridge/masked_assignment.h"

namespace cresset::bridge {

std::optional<graph::ValueId> masked_assignment(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args) {
  graph::Graph& graph = capture.graph();
  static const graph::OpId index_put = graph::op_id("aten::index_put"), where = graph::op_id("aten::where.self"),
                           unsqueeze = graph::op_id("aten::unsqueeze");
  if (op != index_put) return std::nullopt;
  const auto& indices = std::get<std::vector<graph::OptionalValue>>(args[1]);
  const graph::ValueId self = std::get<graph::ValueId>(args[0]), value = std::get<graph::ValueId>(args[2]);
  if (indices.size() != 1 || !indices[0] || std::get<bool>(args[3])) return std::nullopt;
  const graph::TensorType type = graph.type(self), mask_type = graph.type(*indices[0]);
  const bool one = graph.pool().is_const(graph::numel(graph.pool(), graph.type(value).sizes), 1);
  if (!one || mask_type.dtype != DType::Bool || graph.type(value).dtype != type.dtype) return std::nullopt;
  if (mask_type.rank() == 0 || graph.type(value).rank() > type.rank()) return std::nullopt;
  ops::ShapeContext context(graph, "aten::index_put");
  if (mask_type.rank() > type.rank()) return std::nullopt;  // eager raises
  for (size_t d = 0; d < mask_type.rank(); ++d)
    if (!context.require_equal(mask_type.sizes[d], type.sizes[d])) return std::nullopt;
  graph::ValueId mask = *indices[0];
  for (size_t d = mask_type.rank(); d < type.rank(); ++d)
    mask = capture.call(unsqueeze, {mask, graph.pool().constant(-1)})[0];
  return capture.call(where, {mask, value, self})[0];
}

}  // namespace cresset::bridge
