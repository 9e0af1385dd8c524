// Attention on a GPU: the kernel is an argument of the operators (attention.cpp).
#pragma once

#include <cstdint>

namespace cresset::ops {

enum class AttentionKernel : int64_t { Flash, Efficient };

}  // namespace cresset::ops
