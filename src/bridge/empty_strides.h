// Strides of tensors without elements.
#pragma once

#include <c10/util/ArrayRef.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cresset::bridge {

// What torch gives a row-major tensor of these sizes, one of which is 0: a dimension of size 0 counts as 1. Strides
// that are products of the sizes count it as 0; others are those of a view, and are kept.
inline void count_empty_as_one(c10::IntArrayRef sizes, std::vector<int64_t>& strides) {
  int64_t product = 1;
  for (size_t d = sizes.size(); d-- > 0; product *= sizes[d])
    if (strides[d] != product) return;
  product = 1;
  for (size_t d = sizes.size(); d-- > 0; product *= std::max<int64_t>(sizes[d], 1)) strides[d] = product;
}

}  // namespace cresset::bridge
