// The settings of torch by which its operators choose kernels of libraries on a GPU.
#pragma once

#include <cstdint>

namespace cresset::bridge {

// Another number for other settings: precision of products, deterministic algorithms, cuDNN, kinds of attention.
uint64_t library_settings();
// Whether products of f32 round their operands to fewer bits.
bool products_round_f32();

}  // namespace cresset::bridge
