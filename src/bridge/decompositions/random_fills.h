// Random numbers drawn into an existing tensor: cresset::normal_fill, cresset::bernoulli_fill.
//
// The numbers from a seed depend on the layout of the filled elements: on their order and, for normal numbers, on
// contiguity. ATen's functional forms draw into a new tensor with a layout of its own (contiguous, or without the gaps
// of the given tensor). The operators here draw into a tensor with the layout of their argument, whose elements they do
// not read.
#pragma once

namespace cresset::bridge {

// Registers the operators with the dispatcher; idempotent.
void register_random_fills();

}  // namespace cresset::bridge
