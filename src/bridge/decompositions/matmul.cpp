#include "bridge/decompositions/matmul.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/tensordot_ops.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "bridge/decompositions/composites.h"
#include "bridge/symbolic/size_oblivious.h"

namespace cresset::bridge {
namespace {

using Sizes = std::vector<c10::SymInt>;

bool decides(const c10::SymBool& question) { return question.guard_bool(__FILE__, __LINE__); }

c10::SymInt product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), c10::SymInt(1),
                         [](const c10::SymInt& a, const c10::SymInt& b) { return a * b; });
}

// The batch sizes, before the matrix dimensions.
Sizes batch_of(const at::Tensor& tensor) {
  const c10::SymIntArrayRef sizes = tensor.sym_sizes();
  return {sizes.begin(), sizes.end() - std::min<int64_t>(tensor.dim(), 2)};
}

// Whether the matrices of an operand are folded into the rows of a single matrix: then the other operand is not copied,
// and its gradient is a single product.
bool folds(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor& many = left.dim() >= right.dim() ? left : right;
  const at::Tensor& one = left.dim() >= right.dim() ? right : left;
  if (many.dim() < 3 || one.dim() > 2) return false;
  if (one.requires_grad()) return true;
  if (left.dim() == 2) return false;
  if (many.sym_numel().maybe_as_int() == 0) return true;
  const c10::SymIntArrayRef sizes = many.sym_sizes(), strides = many.sym_strides();
  // Both ways give the same result: sizes of 1, which would permit any strides, need no special case.
  for (size_t d = 0; d + 2 < sizes.size(); ++d)
    if (!strides[d].sym_eq(strides[d + 1] * sizes[d + 1]).guard_or_false(__FILE__, __LINE__)) return false;
  return true;
}

at::Tensor folded(const at::Tensor& left, const at::Tensor& right) {
  const bool turned = right.dim() > left.dim();
  const at::Tensor many = turned ? right.mT() : left;
  const at::Tensor one = !turned ? right : left.dim() == 2 ? left.t() : left;
  Sizes out = many.sym_sizes().vec();
  const c10::SymInt inner = out.back();
  out.pop_back();
  const at::Tensor rows = many.reshape_symint({product(out), inner});
  if (one.dim() == 1) return at::_unsafe_view_symint(rows.mv(one), out);
  out.push_back(one.sym_size(1));
  const at::Tensor made = at::_unsafe_view_symint(rows.mm(one), out);
  return turned ? made.mT().contiguous() : made;
}

at::Tensor batched(const at::Tensor& left, const at::Tensor& right) {
  const bool by_vector = right.dim() == 1;
  const c10::SymInt rows = left.dim() > 1 ? left.sym_size(-2) : c10::SymInt(1);
  Sizes out = broadcast_sizes(batch_of(left), batch_of(right));
  const c10::SymInt count = product(out);
  // All matrices of the batch in sequence.
  const auto flat = [&](const at::Tensor& tensor, const Sizes& matrix) {
    Sizes all = out, flattened{count};
    all.insert(all.end(), matrix.begin(), matrix.end());
    flattened.insert(flattened.end(), matrix.begin(), matrix.end());
    return tensor.expand_symint(all).reshape_symint(flattened);
  };
  const at::Tensor a = flat(left, {rows, left.sym_size(-1)});
  const at::Tensor b =
      by_vector ? flat(right, {right.sym_size(0)}).unsqueeze(2) : flat(right, {right.sym_size(-2), right.sym_size(-1)});
  if (left.dim() > 1) out.push_back(rows);
  if (!by_vector) out.push_back(right.sym_size(-1));
  const at::Tensor made = a.bmm(b);
  return at::_unsafe_view_symint(by_vector ? made.squeeze(-1) : made, out);
}

// A batch with a single matrix against a larger batch: it is treated as a matrix, because its gradient would be summed
// over a copy.
bool is_single(const at::Tensor& tensor, const at::Tensor& other) {
  return tensor.dim() == 3 && other.dim() == 3 && tensor.requires_grad() &&
         !decides(tensor.sym_size(0).sym_eq(other.sym_size(0))) && decides(tensor.sym_size(0).sym_eq(1));
}

// An operand of tensordot as a matrix, with the summed dimensions last or first.
struct Unfolded {
  at::Tensor matrix;
  Sizes rest;
};

Unfolded unfold(const at::Tensor& tensor, at::IntArrayRef summed, bool last) {
  std::vector<int64_t> order;
  Unfolded made;
  c10::SymInt count = 1;
  for (const int64_t dim : summed) count = count * tensor.sym_size(dim);
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (std::find(summed.begin(), summed.end(), dim) != summed.end()) continue;
    order.push_back(dim);
    made.rest.push_back(tensor.sym_size(dim));
  }
  order.insert(last ? order.end() : order.begin(), summed.begin(), summed.end());
  const c10::SymInt rest = product(made.rest);
  const at::Tensor turned = tensor.permute(order);
  made.matrix = last ? turned.reshape_symint({rest, count}) : turned.reshape_symint({count, rest});
  return made;
}

bool wrap(const at::Tensor& tensor, at::IntArrayRef dims, std::vector<int64_t>& wrapped) {
  std::vector<bool> seen(static_cast<size_t>(tensor.dim()));
  for (const int64_t dim : dims) {
    if (dim < -tensor.dim() || dim >= tensor.dim()) return false;
    wrapped.push_back(dim < 0 ? dim + tensor.dim() : dim);
    if (seen[static_cast<size_t>(wrapped.back())]) return false;
    seen[static_cast<size_t>(wrapped.back())] = true;
  }
  return true;
}

}  // namespace

at::Tensor symbolic_tensordot(const at::Tensor& left, const at::Tensor& right, at::IntArrayRef left_dims,
                              at::IntArrayRef right_dims) {
  const auto as_aten = [&] {
    const SizeOblivious oblivious;
    return at::_ops::tensordot::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), left, right, left_dims,
                                           right_dims);
  };
  std::vector<int64_t> a, b;
  if (left.scalar_type() != right.scalar_type() || left_dims.size() != right_dims.size() || !wrap(left, left_dims, a) ||
      !wrap(right, right_dims, b))
    return as_aten();                    // ATen reports the error
  for (size_t i = 0; i < a.size(); ++i)  // ATen repeats a dimension of size 1
    if (!decides(left.sym_size(a[i]).sym_eq(right.sym_size(b[i])))) return as_aten();
  Unfolded mine = unfold(left, a, /*last=*/true);
  const Unfolded its = unfold(right, b, /*last=*/false);
  mine.rest.insert(mine.rest.end(), its.rest.begin(), its.rest.end());
  // For a single number ATen uses a product of vectors, which autocast does not cast.
  if (at::autocast::is_autocast_enabled(left.device().type()) && decides(product(mine.rest).sym_eq(1)))
    return mine.matrix.squeeze(0).dot(its.matrix.squeeze(1)).reshape_symint(mine.rest);
  return mine.matrix.mm(its.matrix).reshape_symint(mine.rest);
}

at::Tensor symbolic_matmul(const at::Tensor& left, const at::Tensor& right) {
  const int64_t a = left.dim(), b = right.dim();
  TORCH_CHECK(a != 0 && b != 0, "both arguments to matmul need to be at least 1D, but they are ", a, "D and ", b, "D");
  if (a == 1 && b == 1) return left.dot(right);
  if (a == 2 && b == 1) return left.mv(right);
  if (a == 1 && b == 2) return left.unsqueeze(0).mm(right).squeeze_(0);
  if (a == 2 && b == 2) return left.mm(right);
  if (folds(left, right)) return folded(left, right);
  if (is_single(left, right)) return symbolic_matmul(left.squeeze(0), right);
  if (is_single(right, left)) return symbolic_matmul(left, right.squeeze(0));
  return batched(left, right);
}

}  // namespace cresset::bridge
