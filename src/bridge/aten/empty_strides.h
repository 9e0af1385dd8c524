// Strides of tensors without elements.
#pragma once

#include <c10/util/ArrayRef.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cresset::bridge {

// Converts row-major strides with a dimension of size 0 to torch's convention, in which such a dimension counts as 1.
// Products of sizes count it as 0. Strides of any other form belong to a view and are kept.
inline void count_empty_as_one(c10::IntArrayRef sizes, std::vector<int64_t>& strides) {
  int64_t product = 1;
  for (size_t d = sizes.size(); d-- > 0; product *= sizes[d])
    if (strides[d] != product) return;
  product = 1;
  for (size_t d = sizes.size(); d-- > 0; product *= std::max<int64_t>(sizes[d], 1)) strides[d] = product;
}

}  // namespace cresset::bridge
