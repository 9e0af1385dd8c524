// Copies of images between the two dense orders of their memory: channels before space, and channels last. ATen's copy
// walks such a pair element by element, four times slower.
#pragma once

#include <ATen/core/Tensor.h>

namespace cresset::bridge {

// Copies `from` into `to`, of its sizes and dtype, where one is contiguous and the other has channels last. False: they
// are not such a pair, and nothing was done.
bool turn_channels(const at::Tensor& from, const at::Tensor& to);

// The image in memory of the given order, its own.
at::Tensor turned(const at::Tensor& image, at::MemoryFormat order);

// The order of memory that images of this rank have with channels last.
at::MemoryFormat channels_last_of(const at::Tensor& image);

}  // namespace cresset::bridge
