#include "bridge/aten/memory_view.h"

#include <ATen/Functions.h>

namespace cresset::bridge {

bool shows_parts_of(c10::ScalarType whole, c10::ScalarType parts) {
  return c10::isComplexType(whole) && parts == c10::toRealValueType(whole);
}

// All memory which `base` reaches, as elements of another dtype.
static at::Tensor elements_as(const at::Tensor& base, c10::ScalarType dtype) {
  if (shows_parts_of(base.scalar_type(), dtype)) return at::view_as_real(base);
  const auto from = static_cast<int64_t>(base.element_size()), to = static_cast<int64_t>(c10::elementSize(dtype));
  if (from == to) return base.view(dtype);
  int64_t reach = base.numel() == 0 ? 0 : 1;
  for (int64_t d = 0; reach != 0 && d < base.dim(); ++d) reach += (base.size(d) - 1) * base.stride(d);
  if (to > from) reach -= reach % (to / from);
  const at::Tensor row = at::as_strided(base, {reach}, {1}, base.storage_offset());
  const bool in_pairs = c10::isComplexType(dtype) && c10::toRealValueType(dtype) == base.scalar_type();
  return in_pairs ? at::view_as_complex(row.view({-1, 2})) : row.view(dtype);
}

at::Tensor view_of_memory(const at::Tensor& base, c10::ScalarType dtype, c10::IntArrayRef sizes,
                          c10::IntArrayRef strides, int64_t offset) {
  const at::Tensor whole = dtype == base.scalar_type() ? base : elements_as(base, dtype);
  return at::as_strided(whole, sizes, strides, whole.storage_offset() + offset);
}

}  // namespace cresset::bridge
