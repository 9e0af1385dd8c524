#include "lower/slots.h"

#include <fmt/format.h>

#include <algorithm>

namespace cresset::lower {

using runtime::Home;

namespace {

// The device of most computed values. The arena lies there. Programs on a GPU compute numbers on the CPU beside it.
Device device_of_arena(const Graph& graph) {
  std::vector<std::pair<Device, size_t>> counts;
  for (const graph::NodeId id : graph.order) {
    for (const ValueId v : graph.node(id).results) {
      const Device device = graph.type(v).device;
      const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == device; });
      known == counts.end() ? counts.emplace_back(device, 1) : * known = {device, known->second + 1};
    }
  }
  const auto less = [](const auto& a, const auto& b) {
    const bool on_cpu = a.first.kind == DeviceKind::Cpu;
    return on_cpu == (b.first.kind == DeviceKind::Cpu) ? a.second < b.second : on_cpu;
  };
  const auto most = std::max_element(counts.begin(), counts.end(), less);
  return most == counts.end() ? Device{} : most->first;
}

}  // namespace

Slots::Slots(const Graph& graph, fuse::Memory& memory, SizeTable& sizes, runtime::Program& program)
    : graph_(graph), memory_(memory), sizes_(sizes), program_(program), arena_(device_of_arena(graph)) {
  program_.inputs.resize(graph.inputs.size());
  program_.constants.resize(graph.constants.size());
}

TensorId Slots::add(TensorSlot slot) {
  program_.tensors.push_back(std::move(slot));
  return {static_cast<uint32_t>(program_.tensors.size() - 1)};
}

TensorSlot Slots::describe(ValueId value, const Layout& layout) {
  const graph::Value& v = graph_.value(value);
  TensorSlot slot;
  slot.dtype = v.type.dtype;
  slot.device = v.type.device;
  slot.sizes = sizes_.refs(v.type.sizes);
  slot.strides = sizes_.refs(layout.strides);
  slot.offset = sizes_.ref(layout.offset);
  slot.bytes = sizes_.ref(graph_.pool().mul(fuse::span(graph_.env(), v.type.sizes, layout),
                                            graph_.pool().constant(byte_size(v.type.dtype))));
  slot.name = v.name.empty() ? fmt::format("%{}", value.index) : v.name;
  return slot;
}

TensorId Slots::base(ValueId owner) {
  if (auto it = slots_.find(owner); it != slots_.end()) return it->second;
  const graph::Value& v = graph_.value(owner);
  TensorSlot slot = describe(owner, memory_.layout(owner));
  switch (v.kind) {
    case graph::Value::Kind::Input:
      slot.home = Home::Input;
      break;
    case graph::Value::Kind::Constant:
      slot.home = Home::Constant;
      break;
    case graph::Value::Kind::Result:
      slot.home = extern_homed_.count(owner) != 0 ? Home::Extern
                  : escaping_.count(owner) != 0   ? Home::Fresh
                                                  : home_of_intermediate(v.type.device);
      break;
  }
  const bool held = v.kind != graph::Value::Kind::Result;
  if (held) slot.position = v.result;
  const TensorId id = add(std::move(slot));
  if (v.kind == graph::Value::Kind::Input) program_.inputs[v.result] = id;
  if (v.kind == graph::Value::Kind::Constant) program_.constants[v.result] = id;
  return slots_[owner] = id;
}

TensorId Slots::value(ValueId value) {
  if (memory_.owns(value)) return base(value);
  if (auto it = slots_.find(value); it != slots_.end()) return it->second;
  const fuse::Place* place = memory_.find(value);
  CRESSET_CHECK(place != nullptr, "an argument in memory has a place");
  TensorSlot slot = describe(value, place->layout);
  slot.home = Home::View;
  slot.base = base(place->base);
  return slots_[value] = add(std::move(slot));
}

TensorId Slots::report(uint32_t site, const Device& device) {
  if (const auto known = reports_.find(site); known != reports_.end()) return known->second;
  TensorSlot all;
  all.home = Home::Reports;
  all.dtype = DType::I64;
  all.device = device;
  all.offset = sizes_.ref(int64_t{0});
  all.bytes = sizes_.ref(int64_t{0});
  all.name = "reports";
  if (!all_reports_.valid()) all_reports_ = add(all);
  TensorSlot one = std::move(all);
  one.home = Home::View;
  one.base = all_reports_;
  one.offset = sizes_.ref(int64_t{site});
  return reports_[site] = add(std::move(one));
}

TensorId Slots::fresh(ValueId like, Home home) {
  TensorSlot slot = describe(like, {graph_.type(like).strides, graph_.pool().constant(0)});
  slot.home = home == Home::Arena ? home_of_intermediate(slot.device) : home;
  return add(std::move(slot));
}

}  // namespace cresset::lower
