// Operators whose element is a fold of all elements up to it along a dimension: cumsum, cumprod. Kernels of devices
// that have scans (base/device_traits.h) compute them; elsewhere they are calls of ATen.
#pragma once

#include "ops/op_def.h"

namespace cresset::ops {

// Whether the operator is a scan: OpDef::reduction() tells the dimension and the fold.
inline bool is_scan(const OpDef& def) { return def.op_class == OpClass::Extern && def.reduction != nullptr; }

// Whether a kernel computes the node, a scan. A single row of many elements, which is read in order, is left to ATen.
bool scans_in_kernels(const graph::Graph& graph, const graph::Node& node);

}  // namespace cresset::ops
