// Cells of recurrent layers: operators which exist for GPUs alone, and which torch's layers call on CUDA tensors.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace cresset::gpu_simulator {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

Tensor with_bias(const Tensor& gates, const MaybeTensor& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

Tensor bias_gradient(const Tensor& gates, bool has_bias) { return has_bias ? gates.sum(0) : Tensor(); }

Tensor slope_of_sigmoid(const Tensor& y) { return y * (1 - y); }
Tensor slope_of_tanh(const Tensor& y) { return 1 - y * y; }

std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const MaybeTensor& input_bias, const MaybeTensor& hidden_bias) {
  const auto gates = (with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias)).chunk(4, 1);
  const Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
  Tensor cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const MaybeTensor& grad_hy, const MaybeTensor& grad_cy,
                                                      const Tensor& cx, const Tensor& cy, const Tensor& workspace,
                                                      bool has_bias) {
  const auto gates = workspace.chunk(4, 1);
  const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const Tensor grad_h = grad_hy && grad_hy->defined() ? *grad_hy : at::zeros_like(cy);
  const Tensor shown = cy.tanh();
  Tensor grad_c = grad_h * out * slope_of_tanh(shown);
  if (grad_cy && grad_cy->defined()) grad_c = grad_c + *grad_cy;
  Tensor grads = at::cat({grad_c * cell * slope_of_sigmoid(in), grad_c * cx * slope_of_sigmoid(forget),
                          grad_c * in * slope_of_tanh(cell), grad_h * shown * slope_of_sigmoid(out)},
                         1);
  return {grads, grad_c * forget, bias_gradient(grads, has_bias)};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const MaybeTensor& input_bias, const MaybeTensor& hidden_bias) {
  const auto i = with_bias(input_gates, input_bias).chunk(3, 1), h = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = (i[0] + h[0]).sigmoid(), update = (i[1] + h[1]).sigmoid();
  const Tensor fresh = (i[2] + reset * h[2]).tanh();
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, h[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace,
                                                                     bool has_bias) {
  const auto parts = workspace.chunk(5, 1);
  const Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3], &hidden = parts[4];
  const Tensor grad_update = grad_hy * (hx - fresh) * slope_of_sigmoid(update);
  const Tensor grad_fresh = grad_hy * (1 - update) * slope_of_tanh(fresh);
  const Tensor grad_reset = grad_fresh * hidden * slope_of_sigmoid(reset);
  Tensor grad_input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
  Tensor grad_hidden = at::cat({grad_reset, grad_update, grad_fresh * reset}, 1);
  return {grad_input, grad_hidden, grad_hy * update, bias_gradient(grad_input, has_bias),
          bias_gradient(grad_hidden, has_bias)};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("_thnn_fused_lstm_cell", &lstm_cell);
  library.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  library.impl("_thnn_fused_gru_cell", &gru_cell);
  library.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

}  // namespace cresset::gpu_simulator
