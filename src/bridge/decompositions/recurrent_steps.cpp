#include "bridge/decompositions/recurrent_steps.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include "bridge/extern_kernels/cpu/recurrent_f32.h"

namespace cresset::bridge {
namespace {

using Optional = std::optional<at::Tensor>;

// The features of a single gate in a single step.
at::Tensor part(const at::Tensor& of, int64_t which, int64_t features) {
  return of.narrow(1, which * features, features);
}

bool is_f32(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && tensor.device().is_cpu() && tensor.stride(-1) == 1;
}

struct Step {
  at::Tensor gates, before, cell_before, kept, out;  // gates: written, initially the state's part
};

void lstm_step(const Step& step, const at::Tensor& given, int64_t n) {
  at::Tensor acted = step.kept.narrow(1, 0, 4 * n), cell = part(step.kept, 4, n), out = step.out;
  at::add_out(acted, given, step.gates);
  acted.narrow(1, 0, 2 * n).sigmoid_();
  part(acted, 2, n).tanh_();
  part(acted, 3, n).sigmoid_();
  at::mul_out(cell, part(acted, 1, n), step.cell_before);
  cell.addcmul_(part(acted, 0, n), part(acted, 2, n));
  at::mul_out(out, part(acted, 3, n), cell.tanh());
}

void gru_step(const Step& step, const at::Tensor& given, int64_t n) {
  at::Tensor both = step.kept.narrow(1, 0, 2 * n), fresh = part(step.kept, 2, n), out = step.out;
  at::add_out(both, given.narrow(1, 0, 2 * n), step.gates.narrow(1, 0, 2 * n)).sigmoid_();
  part(step.kept, 3, n).copy_(part(step.gates, 2, n));
  at::mul_out(fresh, part(step.gates, 2, n), part(both, 0, n)).add_(part(given, 2, n)).tanh_();
  at::sub_out(out, step.before, fresh).mul_(part(both, 1, n)).add_(fresh);
}

at::Tensor one_behind_another(const Optional& tensor) { return tensor ? tensor->contiguous() : at::Tensor(); }

std::tuple<at::Tensor, at::Tensor> steps(const at::Tensor& gates, const at::Tensor& state, const Optional& cell,
                                         const at::Tensor& weight, const Optional& bias, int64_t kind_number,
                                         bool reverse) {
  const at::NoGradGuard plain;
  const auto kind = static_cast<RecurrentKind>(kind_number);
  const int64_t length = gates.size(0), batch = gates.size(1), n = state.size(1);
  at::Tensor out = at::empty({length, batch, n}, gates.options());
  at::Tensor kept = at::empty({length, batch, ops::kept_of(kind) * n}, gates.options());
  if (is_f32(gates)) {
    run_f32(gates, state.contiguous(), one_behind_another(cell), weight.contiguous(), one_behind_another(bias), kind,
            reverse, out, kept);
    return {out, kept};
  }
  at::Tensor from_state = at::empty({batch, gates.size(2)}, gates.options());
  const at::Tensor turned = weight.t();
  at::Tensor before = state, cell_before = cell.value_or(at::Tensor());
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = reverse ? length - 1 - i : i;
    const at::Tensor given = gates.select(0, t);
    const Step step{from_state, before, cell_before, kept.select(0, t), out.select(0, t)};
    bias ? at::addmm_out(from_state, *bias, before, turned) : at::mm_out(from_state, before, turned);
    if (kind == RecurrentKind::Lstm) {
      lstm_step(step, given, n);
      cell_before = part(step.kept, 4, n);
    } else if (kind == RecurrentKind::Gru) {
      gru_step(step, given, n);
    } else {
      at::Tensor result = step.out;
      at::add_out(result, given, from_state);
      kind == RecurrentKind::Tanh ? result.tanh_() : result.relu_();
    }
    before = step.out;
  }
  return {out, kept};
}

// Gradient of the previous state, apart from the gates, whose gradients reach it through the weight; undefined where
// there is none. Writes the gates' gradients. `cell` is the gradient of the cell's state, first after the step, then
// before it.
at::Tensor lstm_step_backward(const Step& step, const at::Tensor& gradient, at::Tensor& cell, int64_t n) {
  const at::Tensor input = part(step.kept, 0, n), forget = part(step.kept, 1, n), fresh = part(step.kept, 2, n),
                   output = part(step.kept, 3, n), shown = part(step.kept, 4, n).tanh();
  at::Tensor of_input = part(step.gates, 0, n), of_forget = part(step.gates, 1, n), of_fresh = part(step.gates, 2, n),
             of_output = part(step.gates, 3, n);
  const at::Tensor through_output = at::tanh_backward(gradient * output, shown);
  const at::Tensor here = cell.defined() ? cell + through_output : through_output;
  at::sigmoid_backward_out(of_output, gradient * shown, output);
  at::sigmoid_backward_out(of_input, here * fresh, input);
  at::sigmoid_backward_out(of_forget, here * step.cell_before, forget);
  at::tanh_backward_out(of_fresh, here * input, fresh);
  cell = here * forget;
  return {};
}

at::Tensor gru_step_backward(const Step& step, const at::Tensor& gradient, at::Tensor& hidden, int64_t n) {
  const at::Tensor reset = part(step.kept, 0, n), update = part(step.kept, 1, n), fresh = part(step.kept, 2, n);
  at::Tensor of_reset = part(step.gates, 0, n), of_update = part(step.gates, 1, n), of_fresh = part(step.gates, 2, n);
  const at::Tensor kept_on = gradient * update;
  at::tanh_backward_out(of_fresh, gradient - kept_on, fresh);
  at::sigmoid_backward_out(of_update, gradient * (step.before - fresh), update);
  at::sigmoid_backward_out(of_reset, of_fresh * part(step.kept, 3, n), reset);
  hidden = at::cat({step.gates.narrow(1, 0, 2 * n), of_fresh * reset}, 1);
  return kept_on;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> steps_backward(const at::Tensor& gradient, const Optional& cell_gradient,
                                                              const at::Tensor& out, const at::Tensor& kept,
                                                              const at::Tensor& state, const Optional& cell,
                                                              const at::Tensor& weight, int64_t kind_number,
                                                              bool reverse) {
  const at::NoGradGuard plain;
  const auto kind = static_cast<RecurrentKind>(kind_number);
  const int64_t length = out.size(0), n = state.size(1);
  at::Tensor gates = at::empty({length, out.size(1), weight.size(0)}, out.options());
  if (is_f32(gradient) && is_f32(out) && is_f32(kept)) {
    at::Tensor of_cell = !cell           ? at::empty({0}, out.options())
                         : cell_gradient ? cell_gradient->clone(at::MemoryFormat::Contiguous)
                                         : at::zeros_like(*cell, at::MemoryFormat::Contiguous);
    at::Tensor first = run_backward_f32(gradient, out, kept, state.contiguous(), one_behind_another(cell),
                                        weight.contiguous(), kind, reverse, gates, of_cell);
    return {gates, first, of_cell};
  }
  at::Tensor later, of_cell = cell_gradient.value_or(at::Tensor());
  for (int64_t i = length - 1; i >= 0; --i) {
    const int64_t t = reverse ? length - 1 - i : i, previous = reverse ? t + 1 : t - 1;
    const bool first = i == 0;
    Step step{gates.select(0, t), first ? state : out.select(0, previous), {}, kept.select(0, t), out.select(0, t)};
    const at::Tensor whole = later.defined() ? gradient.select(0, t) + later : gradient.select(0, t);
    at::Tensor hidden = step.gates, otherwise;
    if (kind == RecurrentKind::Lstm) {
      step.cell_before = first ? *cell : part(kept.select(0, previous), 4, n);
      otherwise = lstm_step_backward(step, whole, of_cell, n);
    } else if (kind == RecurrentKind::Gru) {
      otherwise = gru_step_backward(step, whole, hidden, n);
    } else if (kind == RecurrentKind::Tanh) {
      at::tanh_backward_out(step.gates, whole, step.out);
    } else {
      at::threshold_backward_out(step.gates, whole, step.out, 0);
    }
    later = otherwise.defined() ? at::addmm(otherwise, hidden, weight) : at::mm(hidden, weight);
  }
  return {gates, later, of_cell.defined() ? of_cell : at::empty({0}, out.options())};
}

constexpr const char* kStepsSchema =
    "cresset::recurrent_steps(Tensor gates, Tensor state, Tensor? cell, Tensor weight, Tensor? bias, int kind, bool "
    "reverse) -> (Tensor, Tensor)";
constexpr const char* kBackward =
    "cresset::recurrent_steps_backward(Tensor gradient, Tensor? cell_gradient, Tensor out, Tensor kept, Tensor state, "
    "Tensor? cell, Tensor weight, int kind, bool reverse) -> (Tensor, Tensor, Tensor)";

}  // namespace

void register_recurrent_steps() {
  if (c10::Dispatcher::singleton().findSchema({"cresset::recurrent_steps", ""})) return;
  static auto* const library =
      new torch::Library(torch::Library::FRAGMENT, "cresset", std::nullopt, __FILE__, __LINE__);
  library->def(torch::schema(kStepsSchema));
  library->def(torch::schema(kBackward));
  library->impl("recurrent_steps", torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(steps)));
  library->impl("recurrent_steps_backward",
                torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(steps_backward)));
}

std::tuple<at::Tensor, at::Tensor> recurrent_steps(const at::Tensor& gates, const at::Tensor& state,
                                                   const Optional& cell, const at::Tensor& weight, const Optional& bias,
                                                   RecurrentKind kind, bool reverse) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("cresset::recurrent_steps", "").typed<decltype(steps)>();
  return op.call(gates, state, cell, weight, bias, static_cast<int64_t>(kind), reverse);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> recurrent_steps_backward(
    const at::Tensor& gradient, const Optional& cell_gradient, const at::Tensor& out, const at::Tensor& kept,
    const at::Tensor& state, const Optional& cell, const at::Tensor& weight, RecurrentKind kind, bool reverse) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("cresset::recurrent_steps_backward", "")
                             .typed<decltype(steps_backward)>();
  return op.call(gradient, cell_gradient, out, kept, state, cell, weight, static_cast<int64_t>(kind), reverse);
}

}  // namespace cresset::bridge
