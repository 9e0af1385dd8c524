#include "bridge/decompositions/losses.h"

#include <ATen/Functions.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss_ops.h>

#include "bridge/symbolic/size_oblivious.h"

namespace cresset::bridge {
namespace {

// Log-probabilities, and the factors of the losses' formulas.
struct Scores {
  at::Tensor logs;    // of the input's shape
  at::Tensor weight;  // of the classes, in a shape which broadcasts to the input
  int64_t dim;        // of classes
  c10::SymInt classes;
};

// Targets given as probabilities: -sum(weight * target * log) for each, and the mean over all dimensions except the
// classes.
at::Tensor loss_of_probabilities(const Scores& scores, const at::Tensor& target, int64_t reduction, double smoothing) {
  at::Tensor wanted = target;
  if (smoothing > 0)
    wanted = wanted * (1 - smoothing) + at::Scalar(c10::SymFloat(smoothing) / c10::SymFloat(scores.classes));
  const at::Tensor weighted = scores.logs * wanted * scores.weight;
  if (reduction == at::Reduction::None) return -weighted.sum(scores.dim);
  if (reduction == at::Reduction::Sum) return -weighted.sum();
  c10::SymInt count = 1;
  for (int64_t d = 0; d < scores.logs.dim(); ++d)
    if (d != scores.dim) count = count * scores.logs.sym_size(d);
  return -weighted.sum() / at::Scalar(count);
}

// Targets given as class numbers, with a part of the loss spread over all classes. The mean is weighted by the target
// classes' weights.
at::Tensor smooth_loss(const Scores& scores, const at::Tensor& target, const at::Tensor& weight, int64_t reduction,
                       const c10::SymInt& ignored, double smoothing) {
  const at::Tensor exact = at::nll_loss_nd_symint(scores.logs, target, weight, reduction, ignored);
  const at::Tensor left_out = target.eq(at::Scalar(ignored));
  at::Tensor spread = (-(scores.logs * scores.weight).sum(scores.dim)).masked_fill(left_out, 0);
  if (reduction != at::Reduction::None) spread = spread.sum();
  if (reduction == at::Reduction::Mean) {
    const at::Tensor of_each = weight.gather(0, target.masked_fill(left_out, 0).flatten());
    spread = spread / of_each.masked_fill(left_out.flatten(), 0).sum();
  }
  return (1 - smoothing) * exact + spread * at::Scalar(c10::SymFloat(smoothing) / c10::SymFloat(scores.classes));
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight,
                         int64_t reduction, c10::SymInt ignored, double smoothing) {
  const bool reduced = reduction == at::Reduction::Mean || reduction == at::Reduction::Sum;
  const int64_t dim = self.dim() == 1 ? 0 : 1;
  const auto has_weights = [&] {
    if (!weight || !weight->defined() || weight->dim() != 1 || self.dim() == 0) return false;
    const c10::SymInt classes = self.sym_size(dim);
    return classes.sym_ge(1).guard_bool(__FILE__, __LINE__) &&
           classes.sym_eq(weight->sym_size(0)).guard_bool(__FILE__, __LINE__);
  };
  const bool usual = (reduced || reduction == at::Reduction::None) && smoothing >= 0 && smoothing <= 1 && has_weights();
  const bool probable = usual && self.is_same_size(target);
  if (usual && (probable ? target.is_floating_point() && ignored.maybe_as_int().value_or(0) < 0 : smoothing > 0)) {
    std::vector<c10::SymInt> shape(static_cast<size_t>(self.dim()), 1);
    shape[static_cast<size_t>(dim)] = weight->sym_size(0);
    const Scores scores{at::log_softmax(self, dim, self.scalar_type()), weight->view_symint(shape), dim,
                        self.sym_size(dim)};
    return probable ? loss_of_probabilities(scores, target, reduction, smoothing)
                    : smooth_loss(scores, target, *weight, reduction, ignored, smoothing);
  }
  const SizeOblivious oblivious;
  return at::_ops::cross_entropy_loss::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), self, target, weight,
                                                  reduction, std::move(ignored), smoothing);
}

}  // namespace cresset::bridge
