// Views by numbers (as_strided) and writes through them, by operators on elements' positions.
//
// Under torch.vmap, as_strided_scatter runs once a sample, and its offset counts from the beginning of the memory that
// all samples share: every sample's write lands in the first one. The derivative of as_strided_scatter is another
// as_strided_scatter. Indexing has rules for both, and does not depend on where samples lie.
#pragma once

#include <ATen/core/Tensor.h>

#include "graph/graph.h"

namespace cresset::bridge {

bool is_strided_write(graph::OpId op);

// aten::as_strided_scatter(self, src, size, stride, offset), with an offset that counts from the first element of
// self. strides: of self, by the graph. Undefined where self has gaps or shares elements.
at::Tensor strided_write(const at::Tensor& self, const at::Tensor& source, c10::IntArrayRef sizes,
                         c10::IntArrayRef strides, int64_t offset, c10::IntArrayRef own_strides);

}  // namespace cresset::bridge
