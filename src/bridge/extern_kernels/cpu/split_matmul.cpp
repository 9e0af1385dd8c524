#include "bridge/extern_kernels/cpu/split_matmul.h"

#include <algorithm>

#include "bridge/extern_kernels/extern_call.h"

namespace cresset::bridge {
namespace {

constexpr size_t kSlack = 1024;  // every allocation starts at a line

size_t row_bytes(const at::Tensor& rows) {
  return rows.size(0) == 0 ? 0 : static_cast<size_t>(rows.numel() / rows.size(0)) * rows.element_size();
}

Place place_of(const at::Tensor& rows) {
  return {const_cast<void*>(rows.const_data_ptr()), static_cast<size_t>(rows.numel()) * rows.element_size()};
}

// The memory of the rows, from the next line on.
Place room_in(const at::Tensor& rows) {
  Place place = place_of(rows);
  const size_t off = reinterpret_cast<uintptr_t>(place.data) % PlaceResults::kLine;
  const size_t skipped = off == 0 ? 0 : PlaceResults::kLine - off;
  place.data = static_cast<char*>(place.data) + skipped;
  place.bytes -= std::min(place.bytes, skipped);
  return place;
}

}  // namespace

// As many rows as possible, because the last part should be small. 0: no division leaves room for both parts.
int64_t SplitMatmul::first_rows(const at::Tensor& a, const at::Tensor& out, int64_t unit) const {
  const size_t needed = missed_ + kSlack, out_row = row_bytes(out), a_row = row_bytes(a);
  if (out_row == 0 || a_row == 0) return 0;
  const auto least = static_cast<int64_t>((needed + out_row - 1) / out_row), last = (least + unit - 1) / unit * unit;
  const int64_t first = out.size(0) - last;
  return last <= first && static_cast<size_t>(first) * a_row >= needed ? first : 0;
}

bool SplitMatmul::run(const BoundContext& context, runtime::TensorId argument, const at::Tensor& a,
                      const at::Tensor& out, Result result, int64_t unit, std::string_view op,
                      c10::function_ref<void(const at::Tensor&, const at::Tensor&)> compute) const {
  const int64_t first = context.dies_in_this_step(argument) ? first_rows(a, out, unit) : 0;
  if (first == 0) return false;
  const auto part = [&](int64_t begin, int64_t end, const at::Tensor& free) {
    const at::Tensor rows = out.narrow(0, begin, end - begin);
    PlaceResults::Places gaps = context.gaps();
    gaps.push_back(room_in(free));
    PlaceResults::Places places;
    if (result == Result::Allocated) places.push_back(place_of(rows));
    const PlaceResults placed(std::move(places), std::move(gaps), PlaceResults::kLine);
    compute(a.narrow(0, begin, end - begin), rows);
    check_places(placed, op);
  };
  part(0, first, out.narrow(0, first, out.size(0) - first));
  part(first, out.size(0), a.narrow(0, 0, first));
  return true;
}

}  // namespace cresset::bridge
