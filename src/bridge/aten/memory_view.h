// Views of a tensor's memory in another dtype.
#pragma once

#include <ATen/core/Tensor.h>

namespace cresset::bridge {

// A view of the memory which starts at `base`: `offset` counts from the base's first element, in elements of `dtype`.
// Autograd and version counters treat it as a view even for a different dtype.
at::Tensor view_of_memory(const at::Tensor& base, c10::ScalarType dtype, c10::IntArrayRef sizes,
                          c10::IntArrayRef strides, int64_t offset);

// Whether elements of `parts` are the real and imaginary parts of elements of `whole`.
bool shows_parts_of(c10::ScalarType whole, c10::ScalarType parts);

}  // namespace cresset::bridge
