// Layout conversion of images between NCHW and NHWC (channels last). ATen's copy walks such a pair element by element,
// four times slower.
#pragma once

#include <ATen/core/Tensor.h>

namespace cresset::bridge {

// Copies `from` into `to` (same sizes and dtype) if one is contiguous and the other is channels last. Returns false,
// without copying, for any other pair.
bool convert_layout(const at::Tensor& from, const at::Tensor& to);

// The image in the given memory format, in memory of its own.
at::Tensor turned(const at::Tensor& image, at::MemoryFormat order);

// The channels-last memory format for images of this rank.
at::MemoryFormat channels_last_of(const at::Tensor& image);

}  // namespace cresset::bridge
