// Conversions between cresset's small enumerations and torch's.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <optional>

#include "base/dtype.h"
#include "graph/graph.h"

namespace cresset::bridge {

c10::ScalarType to_torch(DType dtype);
// nullopt: quantized, 4-bit, and further types which cresset does not model
std::optional<DType> from_torch(c10::ScalarType type);
c10::Device to_torch(graph::Device device);
// A CUDA device without a number is the thread's current one.
std::optional<graph::Device> from_torch(c10::Device device);
c10::MemoryFormat to_torch(graph::MemoryFormat format);
graph::MemoryFormat from_torch(c10::MemoryFormat format);

}  // namespace cresset::bridge
