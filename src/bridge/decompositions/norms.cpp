#include "bridge/decompositions/norms.h"

#include <ATen/Functions.h>
#include <ATen/ops/linalg_matrix_norm_ops.h>

#include <cmath>

namespace cresset::bridge {
namespace {

bool is_some(const c10::SymInt& size) { return size.sym_ge(1).guard_bool(__FILE__, __LINE__); }

at::Tensor extreme(const at::Tensor& of, int64_t dim, double order) {
  return order > 0 ? of.amax(dim, /*keepdim=*/true) : of.amin(dim, /*keepdim=*/true);
}

}  // namespace

at::Tensor matrix_norm(const at::Tensor& self, const at::Scalar& order, at::IntArrayRef dims, bool keep,
                       std::optional<at::ScalarType> dtype) {
  const auto as_aten = [&] {
    return at::_ops::linalg_matrix_norm::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), self, order, dims, keep,
                                                    dtype);
  };
  const bool usual = !order.isComplex() && !dtype && self.dim() >= 2 && dims.size() == 2 &&
                     (self.is_floating_point() || self.is_complex());
  if (!usual) return as_aten();  // ATen reports the error
  for (const int64_t dim : dims)
    if (dim < -self.dim() || dim >= self.dim()) return as_aten();
  int64_t rows = c10::maybe_wrap_dim(dims[0], self.dim()), columns = c10::maybe_wrap_dim(dims[1], self.dim());
  const double which = order.toDouble(), size = std::abs(which);
  if (rows == columns || (size != 1 && size != 2 && !std::isinf(size))) return as_aten();
  if (!is_some(self.sym_size(rows)) || !is_some(self.sym_size(columns))) return as_aten();
  at::Tensor norms;
  if (size == 2) {
    const at::Tensor values = at::linalg_svdvals(self.movedim({rows, columns}, {-2, -1}));
    norms = extreme(values, -1, which).unsqueeze(-1).movedim({-2, -1}, {rows, columns});
  } else {
    if (size != 1) std::swap(rows, columns);
    norms = extreme(at::linalg_vector_norm(self, 1, rows, /*keepdim=*/true), columns, which);
  }
  if (keep) return norms;
  return norms.squeeze(std::max(rows, columns)).squeeze(std::min(rows, columns));
}

}  // namespace cresset::bridge
