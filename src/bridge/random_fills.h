// Random numbers drawn into a tensor that is there already: cresset::normal_fill, cresset::bernoulli_fill.
//
// What a seed gives depends on where the elements lie that are filled: in which order, and for normal numbers whether
// they lie in one piece. ATen's functional forms of these operators draw into a new tensor of a layout of its own
// (a contiguous one, or without the gaps of the tensor to be filled); these draw into one that is laid out as their
// argument, whose elements they do not read.
#pragma once

namespace cresset::bridge {

// Makes the operators known to the dispatcher; idempotent.
void register_random_fills();

}  // namespace cresset::bridge
