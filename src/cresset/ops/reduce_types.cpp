#include "ops/reduce_types.h"

#include <algorithm>
#include <numeric>

namespace cresset::ops {

using graph::TensorType;
using sym::ExprId;

namespace {

constexpr size_t kMaxDims = 64;

std::vector<int64_t> all_dims(size_t rank) {
  std::vector<int64_t> dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

}  // namespace

Result<std::vector<int64_t>> reduced_dims(ShapeContext& shapes, const graph::Arg& dim, size_t rank,
                                          bool empty_means_all) {
  std::vector<ExprId> named;
  if (const auto* one = std::get_if<ExprId>(&dim)) named.push_back(*one);
  if (const auto* list = std::get_if<std::vector<ExprId>>(&dim)) {
    if (list->empty() && !empty_means_all) return std::vector<int64_t>{};
    named = *list;
  }
  if (rank > kMaxDims) return shapes.invalid("more dimensions than ATen's dimension masks hold");
  if (named.empty()) return all_dims(rank);
  std::vector<int64_t> dims;
  for (const ExprId d : named) {
    CRESSET_TRY(const int64_t wrapped, shapes.wrap_dim(d, rank));
    dims.push_back(wrapped);
  }
  std::sort(dims.begin(), dims.end());
  if (std::adjacent_find(dims.begin(), dims.end()) != dims.end()) return shapes.invalid("a dimension is named twice");
  if (rank == 0) dims.clear();
  return dims;
}

std::vector<int64_t> reduced_dims(const graph::Graph& graph, const graph::Arg& dim, size_t rank, bool empty_means_all) {
  std::vector<int64_t> dims;
  const auto add = [&](ExprId e) {
    const int64_t d = graph.pool().const_value(e);
    dims.push_back(d < 0 ? d + static_cast<int64_t>(rank) : d);
  };
  if (rank == 0) return {};
  if (const auto* one = std::get_if<ExprId>(&dim)) add(*one);
  if (const auto* list = std::get_if<std::vector<ExprId>>(&dim)) {
    if (list->empty() && !empty_means_all) return {};
    for (const ExprId d : *list) add(d);
  }
  if (dims.empty()) return all_dims(rank);
  std::sort(dims.begin(), dims.end());
  return dims;
}

TensorType reduced_type(ShapeContext& shapes, const TensorType& self, const std::vector<int64_t>& dims, bool keepdim,
                        DType dtype) {
  TensorType out{dtype, self.device, {}, {}};
  for (size_t d = 0; d < self.rank(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(d)))
      out.sizes.push_back(self.sizes[d]);
    else if (keepdim)
      out.sizes.push_back(shapes.pool().constant(1));
  }
  out.strides = shapes.contiguous_strides(out.sizes);
  return out;
}

bool require_elements(ShapeContext& shapes, const TensorType& self, const std::vector<int64_t>& dims) {
  for (const int64_t d : dims)
    if (!shapes.require(shapes.pool().ge(self.sizes[static_cast<size_t>(d)], shapes.pool().constant(1)))) return false;
  return true;
}

ExprId element_count(sym::ExprPool& pool, const TensorType& self, const std::vector<int64_t>& dims) {
  ExprId count = pool.constant(1);
  for (const int64_t d : dims) count = pool.mul(count, self.sizes[static_cast<size_t>(d)]);
  return count;
}

}  // namespace cresset::ops
