#include "bridge/picked_rows.h"

#include <ATen/ExpandUtils.h>

namespace cresset::bridge {

void PickedRows::add_index(const at::Tensor& index, int64_t extent, int64_t step) {
  indices_.push_back(index.to(at::kLong));
  choices_.push_back({indices_.back().const_data_ptr<int64_t>(), extent, step});
}

// Whether stepping through `outer` continues `inner`, which is a longer dimension then.
bool PickedRows::fold(const Dim& outer, Dim& inner) const {
  const auto continues = [&](int64_t a, int64_t b) { return a == b * inner.size; };
  bool same = continues(outer.self, inner.self) && continues(outer.other, inner.other);
  for (size_t k = 0; k < choices_.size(); ++k) same = same && continues(outer.indices[k], inner.indices[k]);
  if (same) inner.size *= outer.size;
  return same;
}

void PickedRows::add_dim(Dim dim) {
  rows_ *= dim.size;
  if (dim.size == 1) return;
  if (!dims_.empty() && fold(dims_.back(), dim)) dims_.pop_back();
  dims_.push_back(dim);
}

// The last dimension is a row where no index moves along it and both tensors are dense.
void PickedRows::find_rows() {
  if (!dims_.empty()) {
    const Dim& last = dims_.back();
    bool dense = last.self == 1 && last.other == 1;
    for (size_t k = 0; k < choices_.size(); ++k) dense = dense && last.indices[k] == 0;
    if (dense) {
      row_ = last.size;
      if (row_ != 0) rows_ /= row_;
      dims_.pop_back();
    }
  }
  if (dims_.empty()) dims_.emplace_back();
}

PickedRows PickedRows::by_indices(const at::Tensor& self, int64_t first, std::vector<at::Tensor> indices,
                                  const at::Tensor& other, bool wraps) {
  PickedRows out;
  out.wraps_ = wraps;
  const auto chosen = static_cast<int64_t>(indices.size());
  const int64_t own = other.dim() - (self.dim() - chosen);  // dimensions of the indices
  const at::IntArrayRef shape = other.sizes().slice(static_cast<size_t>(first), static_cast<size_t>(own));
  for (int64_t k = 0; k < chosen; ++k) {
    out.add_index(indices[size_t(k)], self.size(first + k), self.stride(first + k));
    indices[size_t(k)] = out.indices_.back().expand(shape);
  }
  for (int64_t d = 0; d < other.dim(); ++d) {
    Dim dim{.size = other.size(d), .other = other.stride(d)};
    const bool is_index = d >= first && d < first + own;
    for (size_t k = 0; k < indices.size() && is_index; ++k) dim.indices[k] = indices[k].stride(d - first);
    if (!is_index) dim.self = self.stride(d < first ? d : d - own + chosen);
    out.add_dim(dim);
  }
  out.find_rows();
  return out;
}

PickedRows PickedRows::by_gathering(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                                    const at::Tensor& other) {
  PickedRows out;
  out.add_index(index, self.size(dim), self.stride(dim));
  const at::Tensor& places = out.indices_[0];
  for (int64_t d = 0; d < index.dim(); ++d) {
    Dim next{.size = index.size(d), .self = d == dim ? 0 : self.stride(d), .other = other.stride(d)};
    next.indices[0] = places.stride(d);
    out.add_dim(next);
  }
  out.find_rows();
  return out;
}

}  // namespace cresset::bridge
