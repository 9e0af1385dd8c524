#include "bridge/decompositions/broadcasting.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/cosine_similarity_ops.h>
#include <ATen/ops/einsum_ops.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "bridge/decompositions/composites.h"

namespace cresset::bridge {
namespace {

constexpr c10::DispatchKeySet kAtens(c10::DispatchKey::CPU);

// Whether two sizes broadcast where ATen's infer_size() would not notice that one is 1. Two data-dependent sizes are
// assumed to be equal.
bool needs_expanding(c10::SymIntArrayRef a, c10::SymIntArrayRef b) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const c10::SymInt &x = a[a.size() - i], &y = b[b.size() - i];
    if (x.maybe_as_int() != 1 && y.maybe_as_int() != 1 && !x.sym_eq(y).guard_or_true(__FILE__, __LINE__)) return true;
  }
  return false;
}

}  // namespace

at::Tensor cosine_similarity(const at::Tensor& a, const at::Tensor& b, int64_t dim, double eps) {
  // Beside a size of 1, ATen tests whether the other size is 1, too.
  const auto has_single = [](const at::Tensor& t) {
    return std::any_of(t.sym_sizes().begin(), t.sym_sizes().end(),
                       [](const c10::SymInt& size) { return size.maybe_as_int() == 1; });
  };
  if (!needs_expanding(a.sym_sizes(), b.sym_sizes()) && !has_single(a) && !has_single(b))
    return at::_ops::cosine_similarity::redispatch(kAtens, a, b, dim, eps);
  const std::vector<c10::SymInt> sizes = broadcast_sizes(a.sym_sizes(), b.sym_sizes());
  return at::_ops::cosine_similarity::redispatch(kAtens, a.expand_symint(sizes), b.expand_symint(sizes), dim, eps);
}

namespace {

// Groups the sizes which must agree: by letter, and under ellipses by position, counted from the last.
std::map<int64_t, std::vector<c10::SymInt>> sizes_by_label(std::string_view equation, at::TensorList operands) {
  std::map<int64_t, std::vector<c10::SymInt>> out;
  std::string_view left = equation.substr(0, equation.find("->"));
  for (const at::Tensor& operand : operands) {
    const std::string_view labels = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), labels.size() + 1));
    const auto named = std::count_if(labels.begin(), labels.end(), [](unsigned char c) { return std::isalpha(c); });
    int64_t d = 0, covered = operand.dim() - named;
    for (size_t i = 0; i < labels.size() && d < operand.dim(); ++i) {
      if (std::isalpha(static_cast<unsigned char>(labels[i]))) out[labels[i]].push_back(operand.sym_size(d++));
      if (labels.substr(i, 3) != "...") continue;
      for (i += 2; covered > 0; --covered) out[-covered].push_back(operand.sym_size(d++));
    }
  }
  return out;
}

// Whether einsum sums over the letter.
bool is_summed(std::string_view equation, int64_t label) {
  if (label < 0) return false;  // under an ellipsis
  const auto letter = static_cast<char>(label);
  const size_t arrow = equation.find("->");
  if (arrow != std::string_view::npos) return equation.substr(arrow).find(letter) == std::string_view::npos;
  return std::count(equation.begin(), equation.end(), letter) > 1;
}

bool casts(at::TensorList operands) {
  return !operands.empty() && at::autocast::is_autocast_enabled(operands[0].device().type());
}

}  // namespace

at::Tensor einsum(std::string_view equation, at::TensorList operands, at::OptionalIntArrayRef path) {
  const bool is_cast = casts(operands);  // does not apply to a sum over single elements, which is no matrix product
  for (const auto& [label, sizes] : sizes_by_label(equation, operands)) {
    if (is_cast && is_summed(equation, label))
      for (const c10::SymInt& size : sizes) (void)size.sym_eq(1).guard_bool(__FILE__, __LINE__);
    bool broadcasts = false;
    for (size_t i = 1; i < sizes.size(); ++i) broadcasts = broadcasts || needs_expanding(sizes[i - 1], sizes[i]);
    for (size_t i = 0; broadcasts && i < sizes.size(); ++i) (void)sizes[i].sym_eq(1).guard_or_false(__FILE__, __LINE__);
  }
  return at::_ops::einsum::redispatch(kAtens, equation, operands, path);
}

}  // namespace cresset::bridge
