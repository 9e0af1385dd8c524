#include "ops/result_types.h"

#include "ops/context.h"

namespace cresset::ops {

Device device_of_results(const graph::Graph& graph, std::string_view op, const std::vector<graph::Arg>& args) {
  for (const graph::Arg& arg : args)
    if (const auto* named = std::get_if<Device>(&arg)) return *named;
  std::optional<Device> found;
  bool decided = false;  // by more than a number
  graph::Graph::for_each_value(args, [&](const graph::ValueId& v) {
    const graph::TensorType& type = graph.type(v);
    if (decided) return;
    if (!found) found = type.device;
    decided = op == "aten::copy" || type.rank() > 0 || type.device.kind != DeviceKind::Cpu;
    if (decided) found = type.device;
  });
  return found.value_or(Device{});
}

Result<Types> result_types(ShapeContext& shapes, const OpDef& def, const std::vector<graph::Arg>& args) {
  Result<Types> types = def.shape(shapes, OpArgs(shapes.graph(), args));
  if (!types.ok()) return types;
  const Device device = device_of_results(shapes.graph(), name_of(def), args);
  for (graph::TensorType& type : *types) type.device = device;
  return types;
}

}  // namespace cresset::ops
