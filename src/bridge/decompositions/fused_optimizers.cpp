#include "bridge/decompositions/fused_optimizers.h"

#include <ATen/Functions.h>
#include <ATen/OpMathType.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

#include "bridge/decompositions/optional_tensor.h"

namespace cresset::bridge {
namespace {

using at::Tensor;
using at::TensorList;
using MaybeTensor = std::optional<Tensor>;

at::ScalarType wide_type(const Tensor& t) { return at::toOpMathType(t.scalar_type()); }
Tensor widened(const Tensor& t) { return t.to(wide_type(t)); }

// A learning rate, or a scale, in the dtype in which the kernel computes. Numbers stay numbers.
Tensor factor(const Tensor& number, const Tensor& like) { return number.to(wide_type(like)); }
double factor(double number, const Tensor&) { return number; }

Tensor negated(const Tensor& t) { return t.neg(); }
double negated(double number) { return -number; }

// Gradient scaling (torch.amp.GradScaler): gradients are divided by the scale, and where one of them was infinite
// (`found_inf` is 1) the step changes nothing.
class Scaling {
 public:
  Scaling(const MaybeTensor& scale, const MaybeTensor& found_inf) : scale_(scale) {
    if (is_given(found_inf)) keeps_ = found_inf->eq(1);
  }

  // The gradient in the dtype in which the kernel computes. It is written back divided, as by torch's kernel.
  Tensor gradient(const Tensor& given, bool maximize) const {
    Tensor g = widened(given);
    if (is_given(scale_)) {
      g = g.div(factor(*scale_, given));
      write(given, g);
    }
    return maximize ? g.neg() : g;
  }
  void write(const Tensor& into, const Tensor& value) const {
    const Tensor narrow = value.to(into.scalar_type());
    into.copy_(keeps_.defined() ? at::where(keeps_, into, narrow) : narrow);
  }

 private:
  const MaybeTensor& scale_;
  Tensor keeps_;
};

struct Adam {
  double beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize, decoupled;  // decoupled: AdamW's decay of weights
};

// 1 - beta ^ step, in f64 as in torch's kernels: step is a 0-dim tensor of a GPU, or of the CPU.
Tensor correction(double beta, const Tensor& step) { return at::pow(beta, step.to(at::kDouble)).neg().add(1); }

template <class Rate>
void adam_step(const Adam& adam, const Rate& lr, const Scaling& scaling, const Tensor& parameter,
               const Tensor& gradient, const Tensor& mean, const Tensor& square, const Tensor& most,
               const Tensor& step) {
  const at::ScalarType wide = wide_type(parameter);
  const auto rate = factor(lr, parameter);
  Tensor p = widened(parameter), g = scaling.gradient(gradient, adam.maximize);
  if (adam.weight_decay != 0)
    p = adam.decoupled ? p.sub(p.mul(adam.weight_decay).mul(rate)) : (g = g.add(p, adam.weight_decay), p);
  const Tensor m = widened(mean).mul(adam.beta1).add(g, 1 - adam.beta1);
  const Tensor v = widened(square).mul(adam.beta2).add(g.mul(g), 1 - adam.beta2);
  Tensor root = v;
  if (adam.amsgrad) {
    root = at::maximum(widened(most), v);
    scaling.write(most, root);
  }
  const Tensor denominator = root.sqrt().div(correction(adam.beta2, step).sqrt().to(wide)).add(adam.eps);
  const Tensor size = correction(adam.beta1, step).reciprocal().to(wide).mul(negated(rate));
  scaling.write(parameter, p.add(m.mul(size).div(denominator)));
  scaling.write(mean, m);
  scaling.write(square, v);
}

// Rate: double, or const Tensor&.
template <bool decoupled, class Rate>
void fused_adam(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                TensorList max_exp_avg_sqs, TensorList state_steps, Rate lr, double beta1, double beta2,
                double weight_decay, double eps, bool amsgrad, bool maximize, const MaybeTensor& grad_scale,
                const MaybeTensor& found_inf) {
  const Adam adam{beta1, beta2, weight_decay, eps, amsgrad, maximize, decoupled};
  const Scaling scaling(grad_scale, found_inf);
  for (size_t i = 0; i < self.size(); ++i)
    adam_step(adam, lr, scaling, self[i], grads[i], exp_avgs[i], exp_avg_sqs[i],
              amsgrad ? max_exp_avg_sqs[i] : Tensor(), state_steps[i]);
}

template <class Rate>
void fused_sgd(TensorList self, TensorList grads, TensorList momentum_buffers, double weight_decay, double momentum,
               Rate lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
               const MaybeTensor& grad_scale, const MaybeTensor& found_inf) {
  const Scaling scaling(grad_scale, found_inf);
  for (size_t i = 0; i < self.size(); ++i) {
    const Tensor p = widened(self[i]);
    Tensor g = scaling.gradient(grads[i], maximize);
    if (weight_decay != 0) g = g.add(p, weight_decay);
    if (momentum != 0) {
      const Tensor& buffer = momentum_buffers[i];
      const Tensor kept = is_first_step ? g : widened(buffer).mul(momentum).add(g, 1 - dampening);
      scaling.write(buffer, kept);
      g = nesterov ? g.add(kept, momentum) : kept;
    }
    scaling.write(self[i], p.sub(g.mul(factor(lr, self[i]))));
  }
}

template <class Rate>
void fused_adagrad(TensorList self, TensorList grads, TensorList state_sums, TensorList state_steps, Rate lr,
                   double lr_decay, double weight_decay, double eps, bool maximize, const MaybeTensor& grad_scale,
                   const MaybeTensor& found_inf) {
  const Scaling scaling(grad_scale, found_inf);
  for (size_t i = 0; i < self.size(); ++i) {
    const at::ScalarType wide = wide_type(self[i]);
    const Tensor p = widened(self[i]);
    Tensor g = scaling.gradient(grads[i], maximize);
    if (weight_decay != 0) g = g.add(p, weight_decay);
    const Tensor sum = widened(state_sums[i]).add(g.mul(g));
    const Tensor decayed = state_steps[i].to(at::kDouble).sub(1).mul(lr_decay).add(1).reciprocal().to(wide);
    scaling.write(self[i], p.sub(g.div(sum.sqrt().add(eps)).mul(decayed.mul(factor(lr, self[i])))));
    scaling.write(state_sums[i], sum);
  }
}

}  // namespace

void add_fused_optimizers(torch::Library& library) {
  const auto add = [&](const char* name, const char* overload, auto function) {
    if (!c10::Dispatcher::singleton().findSchema({std::string("aten::") + name, overload})) return;  // an older torch
    library.impl((std::string(name) + (*overload == 0 ? "" : ".") + overload).c_str(), function);
  };
  add("_fused_adam_", "", TORCH_FN((fused_adam<false, double>)));
  add("_fused_adam_", "tensor_lr", TORCH_FN((fused_adam<false, const Tensor&>)));
  add("_fused_adamw_", "", TORCH_FN((fused_adam<true, double>)));
  add("_fused_adamw_", "tensor_lr", TORCH_FN((fused_adam<true, const Tensor&>)));
  add("_fused_sgd_", "", TORCH_FN(fused_sgd<double>));
  add("_fused_sgd_", "tensor_lr", TORCH_FN(fused_sgd<const Tensor&>));
  add("_fused_adagrad_", "", TORCH_FN(fused_adagrad<double>));
  add("_fused_adagrad_", "tensor_lr", TORCH_FN(fused_adagrad<const Tensor&>));
}

}  // namespace cresset::bridge
