// Indexed rows: contiguous pieces of a tensor's memory selected by indices, paired with the rows of another tensor.
// gather, index and index_select read them; scatter, index_put and index_add write them. Both tensors are traversed in
// one walk.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "bridge/executor/executor_context.h"
#include "runtime/program.h"

namespace cresset::bridge {

class IndexedRows {
 public:
  static constexpr size_t kMostIndices = 4;

  // Rows of `self` selected by `indices` along dimensions first, first + 1, ... `other` has the shape of self[indices],
  // in which the indices' own dimensions replace the indexed ones. Negative indices count from the end where `wraps`.
  static IndexedRows by_indices(const at::Tensor& self, int64_t first, std::vector<at::Tensor> indices,
                                const at::Tensor& other, bool wraps);
  // As gather and scatter: `index` has the shape of `other` and gives the position in dimension `dim`.
  static IndexedRows by_gathering(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                                  const at::Tensor& other);

  int64_t rows() const { return rows_; }
  int64_t row() const { return row_; }  // elements of a row, contiguous in both tensors

  // Divides the walk so that no two parts touch the same elements of `self`, whatever the indices, and rarely the same
  // cache line. Elements of self must not overlap. Returns part `which` of `parts`; `parts` is at most most_parts().
  int64_t most_parts() const;
  IndexedRows part(int64_t which, int64_t parts) const;

  // Walks rows [begin, end) in row-major order: body(self, other), with both offsets in elements. Returns false before
  // the row of an index which is out of range.
  template <class Body>
  bool walk(int64_t begin, int64_t end, const Body& body) const;

 private:
  struct Dim {
    int64_t size = 1;
    int64_t self = 0, other = 0;                  // steps, in elements
    std::array<int64_t, kMostIndices> indices{};  // steps in each index tensor
  };
  struct Choice {
    const int64_t* places = nullptr;
    int64_t extent = 0, step = 0;                // of the indexed dimension
    int64_t own_begin = 0, own_end = INT64_MAX;  // positions outside of this range belong to a different part
  };

  void add_index(const at::Tensor& index, int64_t extent, int64_t step);
  void add_dim(Dim dim);
  void find_rows();
  bool fold(const Dim& outer, Dim& inner) const;
  size_t widest_apart() const;
  int64_t parts_of_dim(size_t d) const;
  int64_t parts_of_row() const;
  int64_t parts_of_places() const;
  // The start of a line: its position in each outer dimension, and the offsets in self, other and the indices.
  struct Line {
    std::vector<int64_t> at;
    int64_t self = 0, other = 0;
    std::array<const int64_t*, kMostIndices> places{};
  };
  Line line_of(int64_t row) const;
  void go_on(Line& line) const;
  void step(Line& line, size_t dim, int64_t times) const;
  // The choices which vary along a line. Choices which are constant along it are applied once, in `self`.
  struct Moving {
    int64_t self = 0;  // start of the line, with the constant choices applied
    std::array<size_t, kMostIndices> choices{};
    size_t count = 0;
  };
  std::optional<Moving> moving_along(const Line& line) const;  // nullopt: an index is out of range
  bool is_unit(size_t choice) const;
  // Bodies are passed by value: then the compiler knows their writes cannot alias the body itself.
  template <class Body>
  bool walk_several(const Line& line, int64_t begin, int64_t end, Body body) const;
  template <class Body>
  bool walk_line(const Line& line, const Moving& moving, int64_t begin, int64_t end, Body body) const;
  template <bool kUnit, bool kAll, class Body>
  bool walk_places(const Line& line, const Moving& moving, int64_t begin, int64_t end, Body body) const;

  std::vector<Dim> dims_;  // outermost first
  std::vector<Choice> choices_;
  std::vector<at::Tensor> indices_;  // kept alive; i64
  bool wraps_ = false;
  int64_t rows_ = 1, row_ = 1;
  int64_t self_start_ = 0, other_start_ = 0;
};

inline void IndexedRows::step(Line& line, size_t dim, int64_t times) const {
  line.self += times * dims_[dim].self;
  line.other += times * dims_[dim].other;
  for (size_t k = 0; k < choices_.size(); ++k) line.places[k] += times * dims_[dim].indices[k];
}

// Moves to the next line; from the last line to the first.
inline void IndexedRows::go_on(Line& line) const {
  for (size_t d = dims_.size() - 1; d-- > 0;) {
    if (++line.at[d] < dims_[d].size) return step(line, d, 1);
    line.at[d] = 0;
    step(line, d, 1 - dims_[d].size);
  }
}

inline std::optional<IndexedRows::Moving> IndexedRows::moving_along(const Line& line) const {
  Moving out{.self = line.self};
  for (size_t k = 0; k < choices_.size(); ++k) {
    if (dims_.back().indices[k] != 0) {
      out.choices[out.count++] = k;
      continue;
    }
    int64_t place = line.places[k][0];
    if (place < 0 && wraps_) place += choices_[k].extent;
    if (place < 0 || place >= choices_[k].extent) return std::nullopt;
    out.self += place * choices_[k].step;
  }
  return out;
}

// Whether this choice alone moves in self, by single elements, and everything else is dense.
inline bool IndexedRows::is_unit(size_t choice) const {
  const Dim& dim = dims_.back();
  return dim.indices[choice] == 1 && choices_[choice].step == 1 && dim.self == 0 && dim.other == 1;
}

template <class Body>
bool IndexedRows::walk_several(const Line& line, int64_t begin, int64_t end, Body body) const {
  const std::optional<Moving> moving = moving_along(line);
  if (!moving) return false;
  if (moving->count != 1) return walk_line(line, *moving, begin, end, body);
  return is_unit(moving->choices[0]) ? walk_places<true, true>(line, *moving, begin, end, body)
                                     : walk_places<false, true>(line, *moving, begin, end, body);
}

template <class Body>
bool IndexedRows::walk_line(const Line& line, const Moving& moving, int64_t begin, int64_t end, Body body) const {
  struct Local {  // local copies: the body writes memory, so members would be read again for each row
    const int64_t* places;
    int64_t stride, extent, step;
  };
  const Dim& dim = dims_.back();
  const size_t indices = moving.count;
  std::array<Local, kMostIndices> local;
  for (size_t m = 0; m < indices; ++m) {
    const size_t k = moving.choices[m];
    local[m] = {line.places[k], dim.indices[k], choices_[k].extent, choices_[k].step};
  }
  const int64_t self = moving.self, other = line.other, self_step = dim.self, other_step = dim.other;
  const bool wraps = wraps_;
  for (int64_t i = begin; i < end; ++i) {
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

// Walks with a single moving index. kUnit: is_unit, so the loop has no products. kAll: all positions belong to this
// part.
template <bool kUnit, bool kAll, class Body>
bool IndexedRows::walk_places(const Line& line, const Moving& moving, int64_t begin, int64_t end, Body body) const {
  const Dim& dim = dims_.back();
  const size_t k = moving.choices[0];
  const Choice& choice = choices_[k];
  const int64_t* const places = line.places[k];
  const int64_t stride = kUnit ? 1 : dim.indices[k], step = kUnit ? 1 : choice.step;
  const int64_t self_step = kUnit ? 0 : dim.self, other_step = kUnit ? 1 : dim.other;
  const int64_t self = moving.self, other = line.other, extent = choice.extent, from_end = wraps_ ? extent : 0;
  const int64_t own_begin = kAll ? 0 : choice.own_begin, own_end = kAll ? 0 : choice.own_end;
  const auto outside = [extent](int64_t place) {
    return static_cast<uint64_t>(place) >= static_cast<uint64_t>(extent);
  };
#pragma GCC unroll 4
  for (int64_t i = begin; i < end; ++i) {
    int64_t place = places[i * stride];
    if (outside(place)) [[unlikely]] {  // rare case apart: the common path needs no further test
      if (place >= 0 || outside(place += from_end)) return false;
    }
    if constexpr (!kAll)
      if (place < own_begin || place >= own_end) continue;
    body(self + i * self_step + place * step, other + i * other_step);
  }
  return true;
}

template <class Body>
bool IndexedRows::walk(int64_t begin, int64_t end, const Body& body) const {
  if (begin >= end) return true;
  const Dim& dim = dims_.back();
  const bool single = choices_.size() == 1, all = choices_[0].own_end == INT64_MAX, unit = is_unit(0);
  Moving only{.count = 1};
  int64_t from = begin % dim.size, left = end - begin;
  for (Line line = line_of(begin); left > 0; go_on(line), from = 0) {
    const int64_t to = std::min(dim.size, from + left);
    only.self = line.self;
    const bool inside = !single ? walk_several(line, from, to, body)
                        : !all  ? walk_places<false, false>(line, only, from, to, body)
                        : unit  ? walk_places<true, true>(line, only, from, to, body)
                                : walk_places<false, true>(line, only, from, to, body);
    if (!inside) return false;
    left -= to - from;
  }
  return true;
}

// The indices of a list with gaps, if the given ones are neighbours and few enough.
struct NamedRun {
  int64_t first;  // dimension
  std::vector<runtime::TensorId> indices;
};
std::optional<NamedRun> neighbours_of(const std::vector<std::optional<runtime::TensorId>>& list);

inline bool is_index(const at::Tensor& t) { return t.scalar_type() == at::kLong || t.scalar_type() == at::kInt; }

// The dimension in argument 1 of a call, for a tensor of positive rank.
std::optional<int64_t> dim_of(const runtime::ExternCall& call, const BoundContext& context);

}  // namespace cresset::bridge
