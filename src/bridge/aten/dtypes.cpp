#include "bridge/aten/dtypes.h"

#include <c10/util/Float8_e4m3fn.h>

#include <cmath>

#include "base/check.h"
#include "bridge/aten/torch_modes.h"
#include "loop/float8.h"

namespace cresset::bridge {

namespace {

[[maybe_unused]] const bool told_of_saturation =
    (loop::f8e4m3fn_saturates = !std::isnan(static_cast<float>(c10::Float8_e4m3fn(1e9f))));

}  // namespace

c10::ScalarType to_torch(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return c10::kBool;
    case DType::U8:
      return c10::kByte;
    case DType::I8:
      return c10::kChar;
    case DType::I16:
      return c10::kShort;
    case DType::I32:
      return c10::kInt;
    case DType::I64:
      return c10::kLong;
    case DType::F16:
      return c10::kHalf;
    case DType::BF16:
      return c10::kBFloat16;
    case DType::F32:
      return c10::kFloat;
    case DType::F64:
      return c10::kDouble;
    case DType::C64:
      return c10::kComplexFloat;
    case DType::C128:
      return c10::kComplexDouble;
    case DType::C32:
      return c10::kComplexHalf;
    case DType::F8E4M3FN:
      return c10::kFloat8_e4m3fn;
    case DType::F8E5M2:
      return c10::kFloat8_e5m2;
    case DType::F8E4M3FNUZ:
      return c10::kFloat8_e4m3fnuz;
    case DType::F8E5M2FNUZ:
      return c10::kFloat8_e5m2fnuz;
    case DType::F8E8M0FNU:
      return c10::kFloat8_e8m0fnu;
    case DType::U16:
      return c10::kUInt16;
    case DType::U32:
      return c10::kUInt32;
    case DType::U64:
      return c10::kUInt64;
  }
  CRESSET_CHECK(false, "unknown dtype");
}

std::optional<DType> from_torch(c10::ScalarType type) {
  for (int i = 0; i < kDTypes; ++i)
    if (to_torch(static_cast<DType>(i)) == type) return static_cast<DType>(i);
  return std::nullopt;
}

c10::Device to_torch(graph::Device device) {
  switch (device.kind) {
    case graph::DeviceKind::Cpu:
      return c10::Device(c10::kCPU);
    case graph::DeviceKind::Cuda:
      return c10::Device(c10::kCUDA, device.index);
    case graph::DeviceKind::Meta:
      return c10::Device(c10::kMeta);
  }
  CRESSET_CHECK(false, "unknown device kind");
}

std::optional<graph::Device> from_torch(c10::Device device) {
  if (device.is_cpu()) return graph::Device{graph::DeviceKind::Cpu, -1};
  if (device.is_cuda())
    return graph::Device{graph::DeviceKind::Cuda, device.has_index() ? device.index() : current_cuda_device()};
  if (device.is_meta()) return graph::Device{graph::DeviceKind::Meta, -1};
  return std::nullopt;
}

c10::MemoryFormat to_torch(graph::MemoryFormat format) {
  switch (format) {
    case graph::MemoryFormat::Contiguous:
      return c10::MemoryFormat::Contiguous;
    case graph::MemoryFormat::Preserve:
      return c10::MemoryFormat::Preserve;
    case graph::MemoryFormat::ChannelsLast:
      return c10::MemoryFormat::ChannelsLast;
    case graph::MemoryFormat::ChannelsLast3d:
      return c10::MemoryFormat::ChannelsLast3d;
  }
  CRESSET_CHECK(false, "unknown memory format");
}

graph::MemoryFormat from_torch(c10::MemoryFormat format) {
  switch (format) {
    case c10::MemoryFormat::Preserve:
      return graph::MemoryFormat::Preserve;
    case c10::MemoryFormat::ChannelsLast:
      return graph::MemoryFormat::ChannelsLast;
    case c10::MemoryFormat::ChannelsLast3d:
      return graph::MemoryFormat::ChannelsLast3d;
    default:
      return graph::MemoryFormat::Contiguous;
  }
}

}  // namespace cresset::bridge
