#include "fuse/memory.h"

#include "base/device_traits.h"
#include "fuse/strided_view.h"
#include "ops/index_reads.h"
#include "ops/op_def.h"
#include "ops/scan.h"
#include "ops/special_dtypes.h"

namespace cresset::fuse {

namespace {

bool needs_exact_doubles(const Graph& graph, const graph::Node& node) {
  return graph.type(node.results[0]).dtype == DType::F64 && ops::find(node.op)->traits.exact_doubles;
}

// Whether the device has kernels, and gets the arguments that lie elsewhere by value.
bool runs_on_its_device(const Graph& graph, const graph::Node& node) {
  if (node.results.empty()) return true;
  const Device device = graph.type(node.results[0]).device;
  const DeviceTraits& traits = traits_of(device.kind);
  bool takes_all = traits.has_kernels && (traits.all_functions_of_doubles || !needs_exact_doubles(graph, node));
  Graph::for_each_value(
      node.args, [&](const ValueId& v) { takes_all &= graph.type(v).device == device || graph.type(v).rank() == 0; });
  return takes_all;
}

}  // namespace

const ops::OpDef* native(const Graph& graph, graph::NodeId node) {
  const ops::OpDef* def = ops::find(graph.node(node).op);
  if (def == nullptr || graph.node(node).through_aten || !ops::kernels_hold(graph, graph.node(node))) return nullptr;
  if (def->op_class != ops::OpClass::View && !runs_on_its_device(graph, graph.node(node))) return nullptr;
  switch (def->op_class) {
    case ops::OpClass::Pointwise:
      return def->element != nullptr ? def : nullptr;
    case ops::OpClass::View:
      return def->view != nullptr ? def : nullptr;
    case ops::OpClass::Reduction:
      return def->element != nullptr && def->reduction != nullptr ? def : nullptr;
    case ops::OpClass::Concat:
      return def;
    case ops::OpClass::Extern:
      return ops::reads_in_kernels(graph, graph.node(node)) || ops::scans_in_kernels(graph, graph.node(node)) ? def
                                                                                                              : nullptr;
    case ops::OpClass::Composite:
      return nullptr;
  }
  return nullptr;
}

bool is_view(const Graph& graph, ValueId value) {
  const graph::Value& v = graph.value(value);
  if (!v.node.valid()) return false;
  const ops::OpDef* def = native(graph, v.node);
  return def != nullptr && def->op_class == ops::OpClass::View;
}

Memory::Memory(const Graph& graph) : graph_(graph), index_vars_(graph.env()), data_indices_(graph) {
  const auto add = [&](ValueId v) { owned_[v] = {v, {graph.type(v).strides, graph.pool().constant(0)}}; };
  for (ValueId v : graph.inputs) add(v);
  for (ValueId v : graph.constants) add(v);
}

void Memory::own(ValueId value, Layout layout) {
  CRESSET_CHECK(views_.empty(), "memory is assigned before it is looked up");
  owned_[value] = {value, std::move(layout)};
}

const Place* Memory::find(ValueId value) {
  if (auto it = owned_.find(value); it != owned_.end()) return &it->second;
  if (auto it = views_.find(value); it != views_.end()) return it->second ? &*it->second : nullptr;
  if (!is_view(graph_, value)) return nullptr;
  const graph::Value& v = graph_.value(value);
  std::optional<Place> place;
  if (const Place* from = find(std::get<ValueId>(graph_.node(v.node).args[0])))
    if (auto layout = strided_view(graph_, v.node, v.result, from->layout)) place = Place{from->base, *layout};
  std::optional<Place>& slot = views_[value] = std::move(place);
  return slot ? &*slot : nullptr;
}

}  // namespace cresset::fuse
