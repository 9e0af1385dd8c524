// The device of a tensor, a kernel or a step.
#pragma once

#include <cstdint>

namespace cresset {

enum class DeviceKind : uint8_t { Cpu, Cuda, Meta };
struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int8_t index = -1;
  bool operator==(const Device&) const = default;
};

}  // namespace cresset
