#include "bridge/decompositions/losses.h"

#include <ATen/Functions.h>
#include <ATen/OpMathType.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss_ops.h>
#include <torch/csrc/autograd/custom_function.h>

#include "bridge/decompositions/optional_tensor.h"
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

// log(sum(exp(x - max))) - (x[target] - max), without log-probabilities in memory: a kernel reads x once for the
// maximum and the sum together. The gradient, exp(x - max) / sum less 1 at the target, is computed from x again.
struct ClassLosses : torch::autograd::Function<ClassLosses> {
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor widened(const at::Tensor& self) { return self.to(at::toOpMathType(self.scalar_type())); }
  static at::Tensor exponentials(const at::Tensor& self, const at::Tensor& most) {
    return widened(self).sub(most).exp();
  }

  static at::Tensor forward(Context* context, const at::Tensor& self, const at::Tensor& target, int64_t dim) {
    const at::Tensor most = widened(self).amax({dim}, /*keepdim=*/true);
    const at::Tensor sum = exponentials(self, most).sum(dim, /*keepdim=*/true);
    const at::Tensor own = self.gather(dim, target.unsqueeze(dim));
    context->saved_data["dim"] = dim;
    context->save_for_backward({self, target, most, sum});
    return sum.log().sub(widened(own).sub(most)).squeeze(dim);
  }

  static Tensors backward(Context* context, Tensors gradients) {
    const Tensors saved = context->get_saved_variables();
    const at::Tensor &self = saved[0], &target = saved[1];
    const int64_t dim = context->saved_data["dim"].toInt();
    const at::Tensor shares = exponentials(self, saved[2]);
    // To be differentiated again, the sum must depend on x.
    const at::Tensor sum = at::GradMode::is_enabled() ? shares.sum(dim, /*keepdim=*/true) : saved[3];
    const at::Tensor gradient = gradients[0].unsqueeze(dim);
    std::vector<c10::SymInt> shape(static_cast<size_t>(self.dim()), 1);
    shape[static_cast<size_t>(dim)] = self.sym_size(dim);
    const at::Tensor numbers = at::arange(at::Scalar(self.sym_size(dim)), target.options()).view_symint(shape);
    const at::Tensor at_target = at::where(numbers.eq(target.unsqueeze(dim)), gradient, 0);
    return {shares.mul(gradient.div(sum)).sub(at_target).to(self.scalar_type()), {}, {}};
  }
};

at::Tensor fused_cross_entropy(const at::Tensor& self, const at::Tensor& target, int64_t reduction,
                               const c10::SymInt& ignored) {
  const at::Tensor left_out = target.eq(at::Scalar(ignored));
  const at::Tensor of_each = ClassLosses::apply(self, target.masked_fill(left_out, 0), self.dim() == 1 ? 0 : 1);
  const at::Tensor losses = of_each.masked_fill(left_out, 0);
  at::Tensor out = losses;
  if (reduction != at::Reduction::None) out = losses.sum();
  if (reduction == at::Reduction::Mean) out = out.div(left_out.logical_not().sum().to(losses.scalar_type()));
  return at::autocast::is_autocast_enabled(at::kCUDA) ? out : out.to(self.scalar_type());
}

// Class numbers on a GPU, without weights or smoothing.
bool is_fused(const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight,
              int64_t reduction, double smoothing) {
  const bool known =
      reduction == at::Reduction::None || reduction == at::Reduction::Mean || reduction == at::Reduction::Sum;
  if (!known || is_given(weight) || smoothing != 0 || !self.is_cuda() || !target.is_cuda()) return false;
  if (!self.is_floating_point() || target.scalar_type() != at::kLong || self.dim() == 0) return false;
  if (target.dim() != std::max<int64_t>(self.dim() - 1, 0)) return false;
  const int64_t dim = self.dim() == 1 ? 0 : 1;
  if (!self.sym_size(dim).sym_ge(1).guard_bool(__FILE__, __LINE__)) return false;
  for (int64_t d = 0, at = 0; d < self.dim(); ++d) {
    if (d == dim) continue;
    if (!self.sym_size(d).sym_eq(target.sym_size(at++)).guard_bool(__FILE__, __LINE__)) return false;
  }
  return true;
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& self, const at::Tensor& target, const std::optional<at::Tensor>& weight,
                         int64_t reduction, c10::SymInt ignored, double smoothing) {
  if (is_fused(self, target, weight, reduction, smoothing))
    return fused_cross_entropy(self, target, reduction, ignored);
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
