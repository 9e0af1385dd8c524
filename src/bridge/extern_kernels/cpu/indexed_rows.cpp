#include "bridge/extern_kernels/cpu/indexed_rows.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace cresset::bridge {

void IndexedRows::add_index(const at::Tensor& index, int64_t extent, int64_t step) {
  indices_.push_back(index.to(at::kLong));
  choices_.push_back({indices_.back().const_data_ptr<int64_t>(), extent, step});
}

// Whether `outer` continues `inner` without a gap, so that both form a single longer dimension.
bool IndexedRows::fold(const Dim& outer, Dim& inner) const {
  const auto continues = [&](int64_t a, int64_t b) { return a == b * inner.size; };
  bool same = continues(outer.self, inner.self) && continues(outer.other, inner.other);
  for (size_t k = 0; k < choices_.size(); ++k) same = same && continues(outer.indices[k], inner.indices[k]);
  if (same) inner.size *= outer.size;
  return same;
}

void IndexedRows::add_dim(Dim dim) {
  rows_ *= dim.size;
  if (dim.size == 1) return;
  if (!dims_.empty() && fold(dims_.back(), dim)) dims_.pop_back();
  dims_.push_back(dim);
}

// The last dimension becomes the row where no index moves along it and both tensors are dense.
void IndexedRows::find_rows() {
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

namespace {

// Minimum number of adjacent elements of self in a part. With fewer elements, threads constantly write to the same
// cache lines.
constexpr int64_t kLeastStretch = 128;
// Minimum row length for which every part may read all indices.
constexpr int64_t kWorthSearching = 8;

}  // namespace

// Along a dimension where no index moves, positions are distinct elements of self.
int64_t IndexedRows::parts_of_dim(size_t d) const {
  return std::min(dims_[d].size, dims_[d].size * dims_[d].self / kLeastStretch);
}
int64_t IndexedRows::parts_of_row() const { return row_ / kLeastStretch; }
// Divides the positions of the indexed dimension: each part handles the rows with its own positions.
int64_t IndexedRows::parts_of_places() const {
  return choices_.size() == 1 && row_ >= kWorthSearching ? choices_[0].extent : 1;
}

size_t IndexedRows::widest_apart() const {
  size_t best = 0;
  for (size_t d = 1; d < dims_.size(); ++d)
    if (parts_of_dim(d) > parts_of_dim(best)) best = d;
  return best;
}

int64_t IndexedRows::most_parts() const {
  return std::max({int64_t{1}, parts_of_dim(widest_apart()), parts_of_row(), parts_of_places()});
}

IndexedRows IndexedRows::part(int64_t which, int64_t parts) const {
  IndexedRows out = *this;
  const auto share = [&](int64_t whole) { return std::pair(whole * which / parts, whole * (which + 1) / parts); };
  if (parts <= 1) return out;
  if (const size_t d = widest_apart(); parts_of_dim(d) >= parts) {
    Dim& dim = out.dims_[d];
    const auto [begin, end] = share(dim.size);
    out.rows_ = rows_ / dim.size * (end - begin);
    dim.size = end - begin;
    out.self_start_ += begin * dim.self;
    out.other_start_ += begin * dim.other;
    for (size_t k = 0; k < choices_.size(); ++k) out.choices_[k].places += begin * dim.indices[k];
  } else if (parts_of_row() >= parts) {
    const auto [begin, end] = share(row_);
    out.row_ = end - begin;
    out.self_start_ += begin;
    out.other_start_ += begin;
  } else {
    CRESSET_CHECK(parts_of_places() >= parts, "cut into at most as many parts as there may be");
    std::tie(out.choices_[0].own_begin, out.choices_[0].own_end) = share(choices_[0].extent);
  }
  return out;
}

// The line which contains a row.
IndexedRows::Line IndexedRows::line_of(int64_t row) const {
  Line line{std::vector<int64_t>(dims_.size() - 1), self_start_, other_start_, {}};
  for (size_t k = 0; k < choices_.size(); ++k) line.places[k] = choices_[k].places;
  int64_t rest = row / dims_.back().size;
  for (size_t d = dims_.size() - 1; d-- > 0; rest /= dims_[d].size) {
    line.at[d] = rest % dims_[d].size;
    step(line, d, line.at[d]);
  }
  return line;
}

IndexedRows IndexedRows::by_indices(const at::Tensor& self, int64_t first, std::vector<at::Tensor> indices,
                                    const at::Tensor& other, bool wraps) {
  IndexedRows out;
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

IndexedRows IndexedRows::by_gathering(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                                      const at::Tensor& other) {
  IndexedRows out;
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

std::optional<NamedRun> neighbours_of(const std::vector<std::optional<runtime::TensorId>>& list) {
  size_t i = 0;
  while (i < list.size() && !list[i]) ++i;
  NamedRun out{static_cast<int64_t>(i), {}};
  for (; i < list.size() && list[i]; ++i) out.indices.push_back(*list[i]);
  for (; i < list.size(); ++i)
    if (list[i]) return std::nullopt;
  if (out.indices.empty() || out.indices.size() > IndexedRows::kMostIndices) return std::nullopt;
  return out;
}

std::optional<int64_t> dim_of(const runtime::ExternCall& call, const BoundContext& context) {
  const auto rank = static_cast<int64_t>(context.slot(std::get<runtime::TensorId>(call.args[0])).sizes.size());
  const auto* ref = std::get_if<runtime::SizeRef>(&call.args[1]);
  if (ref == nullptr || rank == 0) return std::nullopt;
  return context.size(*ref) < 0 ? context.size(*ref) + rank : context.size(*ref);
}

}  // namespace cresset::bridge
