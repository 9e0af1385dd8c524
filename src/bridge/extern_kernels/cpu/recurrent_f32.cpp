#include "bridge/extern_kernels/cpu/recurrent_f32.h"

#include <ATen/Functions.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <chrono>
#include <string>
#include <vector>

#include "bridge/device/cpu/small_matmul.h"
#include "bridge/extern_kernels/autotune.h"
#include "bridge/extern_kernels/cpu/onednn_matmul.h"
#include "bridge/extern_kernels/cpu/recurrent_cells.h"

namespace cresset::bridge {
namespace {

template <class T>
Rows<T> rows_of(const at::Tensor& matrix) {
  return {matrix.mutable_data_ptr<float>(), matrix.stride(0)};
}
Rows<const float> step_of(const at::Tensor& all, int64_t t) {
  return {all.const_data_ptr<float>() + t * all.stride(0), all.stride(1)};
}
Rows<float> writable_step(const at::Tensor& all, int64_t t) {
  return {all.mutable_data_ptr<float>() + t * all.stride(0), all.stride(1)};
}

void (*forward_of(RecurrentKind kind))(const CellForward&) {
  constexpr decltype(&lstm_cells) kCells[] = {lstm_cells, gru_cells, tanh_cells, relu_cells};
  return kCells[static_cast<size_t>(kind)];
}
void (*backward_of(RecurrentKind kind))(const CellBackward&) {
  constexpr decltype(&lstm_cells_backward) kCells[] = {lstm_cells_backward, gru_cells_backward, tanh_cells_backward,
                                                       relu_cells_backward};
  return kCells[static_cast<size_t>(kind)];
}

// The matrix product of each step, a @ b of f32: by cresset's own loops where it is small, else by the library which
// autotuning finds.
class StepProduct {
 public:
  StepProduct(at::Tensor b, int64_t rows) : b_(std::move(b)), work_(static_cast<double>(rows * b_.numel())) {
    if (work_ <= kSmallProduct) return;
    const auto size = [](int64_t n) { return std::to_string(size_class(n)); };
    const std::string key = "recurrent step f " + size(rows) + " " + size(b_.size(0)) + " " + size(b_.size(1)) +
                            (b_.stride(1) == 1 ? " n" : " t") + " threads " + std::to_string(at::get_num_threads());
    std::vector<std::string> ways{"aten"};
    if (at::native::mkldnn_matmul != nullptr) ways.emplace_back("onednn_matmul");
    autotuner_ = &Autotuner::get().entry(key, ways);
  }

  // `make_a` makes the same rows as a tensor, for libraries.
  template <class MakeA>
  void run(const Rows<const float>& a, const MakeA& make_a, at::Tensor& out) {
    if (autotuner_ == nullptr) {
      const SmallMatrix left{a.data, a.stride, 1}, right{b_.const_data_ptr<float>(), b_.stride(0), b_.stride(1)};
      const int64_t n = out.size(1);
      return small_product(out.size(0), n, b_.size(0), left, right, nullptr, out.mutable_data_ptr<float>(), n);
    }
    using Clock = std::chrono::steady_clock;
    const AutotuneEntry::Pick pick = autotuner_->pick();
    const auto begin = pick.timed ? Clock::now() : Clock::time_point();
    call(pick.candidate, make_a(), out);
    if (pick.timed)
      autotuner_->record(pick.candidate, std::chrono::duration<double>(Clock::now() - begin).count(), work_);
  }

 private:
  void call(int candidate, const at::Tensor& a, at::Tensor& out) {
    if (candidate == 0)
      at::cpu::mm_out(out, a, b_);
    else
      at::native::mkldnn_matmul(a, b_, out, 0.F, 1.F);
  }

  at::Tensor b_;
  double work_;
  AutotuneEntry* autotuner_ = nullptr;
};

}  // namespace

void run_f32(const at::Tensor& gates, const at::Tensor& state, const at::Tensor& cell, const at::Tensor& weight,
             const at::Tensor& bias, RecurrentKind kind, bool reverse, const at::Tensor& out, const at::Tensor& kept) {
  const int64_t length = gates.size(0), batch = gates.size(1), n = state.size(1), wide = gates.size(2);
  at::Tensor from_state = at::empty({batch, wide}, gates.options());
  StepProduct product(weight.t(), batch);
  const std::vector<float> zeros(bias.defined() ? 0 : static_cast<size_t>(wide));
  CellForward step{.rows = batch, .features = n};
  step.from_state = rows_of<const float>(from_state);
  step.bias = bias.defined() ? bias.const_data_ptr<float>() : zeros.data();
  step.before = rows_of<const float>(state);
  if (cell.defined()) step.cell_before = rows_of<const float>(cell);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = reverse ? length - 1 - i : i;
    product.run(step.before, [&] { return i == 0 ? state : out.select(0, reverse ? t + 1 : t - 1); }, from_state);
    step.given = step_of(gates, t);
    step.kept = writable_step(kept, t);
    step.out = writable_step(out, t);
    forward_of(kind)(step);
    step.before = {step.out.data, step.out.stride};
    if (kind == RecurrentKind::Lstm) step.cell_before = {step.kept.data + 4 * n, step.kept.stride};
  }
}

at::Tensor run_backward_f32(const at::Tensor& gradient, const at::Tensor& out, const at::Tensor& kept,
                            const at::Tensor& state, const at::Tensor& cell_before, const at::Tensor& weight,
                            RecurrentKind kind, bool reverse, const at::Tensor& gates, const at::Tensor& cell) {
  const int64_t length = out.size(0), n = state.size(1);
  const bool gru = kind == RecurrentKind::Gru;
  at::Tensor later = at::zeros_like(state), hidden, otherwise;
  StepProduct product(weight, out.size(1));
  CellBackward step{.rows = out.size(1), .features = n, .later = rows_of<const float>(later)};
  if (kind == RecurrentKind::Lstm) step.cell = rows_of<float>(cell);
  if (gru) {
    hidden = at::empty({out.size(1), weight.size(0)}, out.options());
    otherwise = at::zeros_like(state);
    step.hidden = rows_of<float>(hidden);
    step.otherwise = rows_of<float>(otherwise);
  }
  for (int64_t i = length - 1; i >= 0; --i) {
    const int64_t t = reverse ? length - 1 - i : i, previous = reverse ? t + 1 : t - 1;
    step.gradient = step_of(gradient, t);
    step.kept = step_of(kept, t);
    step.out = step_of(out, t);
    step.before = i == 0 ? rows_of<const float>(state) : step_of(out, previous);
    if (kind == RecurrentKind::Lstm && i == 0) step.cell_before = rows_of<const float>(cell_before);
    if (kind == RecurrentKind::Lstm && i != 0)
      step.cell_before = {step_of(kept, previous).data + 4 * n, kept.stride(1)};
    step.gates = writable_step(gates, t);
    backward_of(kind)(step);
    const Rows<float> given = gru ? step.hidden : step.gates;
    product.run({given.data, given.stride}, [&] { return gru ? hidden : gates.select(0, t); }, later);
  }
  return gru ? later.add_(otherwise) : later;
}

}  // namespace cresset::bridge
