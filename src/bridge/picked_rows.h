// Stretches of a tensor's memory that indices name, one beside each row of another tensor: what gather, index and
// index_select read from and what scatter, index_put and index_add write to, as one walk over both.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <vector>

#include "bridge/executor_context.h"
#include "runtime/program.h"

namespace cresset::bridge {

class PickedRows {
 public:
  static constexpr size_t kMostIndices = 4;

  // Rows of `self` that `indices` name along dimensions first, first + 1, ...; `other` has the shape of self[indices]
  // with the indices' own dimensions in place of those. Negative indices count from the end where `wraps`.
  static PickedRows by_indices(const at::Tensor& self, int64_t first, std::vector<at::Tensor> indices,
                               const at::Tensor& other, bool wraps);
  // As gather and scatter do: `index` has the shape of `other` and says the place in dimension `dim`.
  static PickedRows by_gathering(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& other);

  int64_t rows() const { return rows_; }
  int64_t row() const { return row_; }  // elements, next to each other in both tensors

  // Cut so that no two parts touch the same elements of `self`, whatever the indices, where self's elements do not
  // overlap: part `which` of `parts`, of at most most_parts().
  int64_t most_parts() const;
  PickedRows part(int64_t which, int64_t parts) const;

  // Rows [begin, end) in row-major order: body(self, other), both offsets in elements. False, before it is reached: an
  // index is out of range.
  template <class Body>
  bool walk(int64_t begin, int64_t end, const Body& body) const;

 private:
  struct Dim {
    int64_t size = 1;
    int64_t self = 0, other = 0;                  // steps, in elements
    std::array<int64_t, kMostIndices> indices{};  // steps of each
  };
  struct Choice {
    const int64_t* places = nullptr;
    int64_t extent = 0, step = 0;  // of the dimension it chooses in
  };

  void add_index(const at::Tensor& index, int64_t extent, int64_t step);
  void add_dim(Dim dim);
  void find_rows();
  bool fold(const Dim& outer, Dim& inner) const;
  size_t widest_apart() const;
  template <size_t kIndices, class Body>
  bool walk_line(const Dim& line, int64_t count, int64_t self, int64_t other, const int64_t* const* places,
                 const Body& body) const;

  std::vector<Dim> dims_;  // outermost first
  std::vector<Choice> choices_;
  std::vector<at::Tensor> indices_;  // kept alive; i64
  bool wraps_ = false;
  int64_t rows_ = 1, row_ = 1;
  int64_t self_start_ = 0, other_start_ = 0;
};

template <size_t kIndices, class Body>
bool PickedRows::walk_line(const Dim& line, int64_t count, int64_t self, int64_t other, const int64_t* const* places,
                           const Body& body) const {
  const size_t indices = kIndices != 0 ? kIndices : choices_.size();
  struct Local {  // the body writes to memory: what members hold would be read again for each row
    const int64_t* places;
    int64_t stride, extent, step;
  };
  std::array<Local, kIndices != 0 ? kIndices : kMostIndices> local;
  for (size_t k = 0; k < indices; ++k) local[k] = {places[k], line.indices[k], choices_[k].extent, choices_[k].step};
  const int64_t self_step = line.self, other_step = line.other;
  const bool wraps = wraps_;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = self + i * self_step;
    for (size_t k = 0; k < indices; ++k) {
      int64_t place = local[k].places[i * local[k].stride];
      if (place < 0 && wraps) place += local[k].extent;
      if (place < 0 || place >= local[k].extent) return false;
      at += place * local[k].step;
    }
    body(at, other + i * other_step);
  }
  return true;
}

template <class Body>
bool PickedRows::walk(int64_t begin, int64_t end, const Body& body) const {
  const Dim& line = dims_.back();
  while (begin < end) {
    const int64_t start = begin % line.size, count = std::min(line.size - start, end - begin);
    int64_t rest = begin / line.size, self = self_start_ + start * line.self;
    int64_t other = other_start_ + start * line.other;
    std::array<const int64_t*, kMostIndices> places;
    for (size_t k = 0; k < choices_.size(); ++k) places[k] = choices_[k].places + start * line.indices[k];
    for (size_t d = dims_.size() - 1; d-- > 0;) {
      const int64_t at = rest % dims_[d].size;
      rest /= dims_[d].size;
      self += at * dims_[d].self;
      other += at * dims_[d].other;
      for (size_t k = 0; k < choices_.size(); ++k) places[k] += at * dims_[d].indices[k];
    }
    const bool inside = choices_.size() == 1 ? walk_line<1>(line, count, self, other, places.data(), body)
                                             : walk_line<0>(line, count, self, other, places.data(), body);
    if (!inside) return false;
    begin += count;
  }
  return true;
}

// The indices of a list in which others are missing, where they are neighbours and not too many.
struct NamedRun {
  int64_t first;  // dimension
  std::vector<runtime::TensorId> indices;
};
std::optional<NamedRun> neighbours_of(const std::vector<std::optional<runtime::TensorId>>& list);

// The dimension that argument 1 of a call names, of a tensor that has some.
std::optional<int64_t> dim_of(const runtime::ExternCall& call, const BoundContext& context);

}  // namespace cresset::bridge
