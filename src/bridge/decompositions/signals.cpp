#include "bridge/decompositions/signals.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/MaxPooling.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/_pad_circular_ops.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stft.h>
#include <ATen/ops/zeros.h>

#include "bridge/capture/capture.h"
#include "bridge/capture/trace_tensor.h"

namespace cresset::bridge {
namespace {

// max_pool1d without gradients reads the data itself, and its result is contiguous. The form with indices consists of
// operators and accepts more arguments. The checks of the original reject arguments which eager mode rejects.
void max_pool1d(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  torch::jit::Stack checked(stack->end() - static_cast<long>(count), stack->end());
  const at::Tensor self = checked[0].toTensor();
  const bool by_indices = (self.requires_grad() && at::GradMode::is_enabled()) || self._fw_grad(0).defined();
  if (const TraceTensor* const trace = TraceTensor::from(self)) {
    std::vector<int64_t> sizes;
    for (const sym::ExprId size : trace->type().sizes) sizes.push_back(trace->capture().env().hint_or(size, 2));
    const Capture::StepAside aside;
    const auto numbers = [&](size_t i) { return checked.at(i).toIntVector(); };
    at::native::check_max_pool1d(at::empty(sizes, self.options().device(at::kMeta)), numbers(1), numbers(2), numbers(3),
                                 numbers(4), checked.at(5).toBool());
  }
  if (!by_indices && !at::isFloatingType(self.scalar_type()))
    C10_THROW_ERROR(NotImplementedError,
                    c10::str("\"max_pool1d_impl\" not implemented for '", c10::toString(self.scalar_type()), "'"));
  c10::Dispatcher::singleton().findSchemaOrThrow("aten::max_pool1d_with_indices", "").callBoxed(stack);
  torch::jit::drop(*stack, 1);  // the indices
  if (!by_indices) torch::jit::push(*stack, torch::jit::pop(*stack).toTensor().contiguous());
}

// ATen's version writes the middle and then each edge into the result, and each write would be a pass over the result.
// Invalid and negative paddings are left to it.
at::Tensor pad_circular(const at::Tensor& self, c10::SymIntArrayRef pads) {
  const size_t padded = pads.size() / 2;
  const auto fits = [&](size_t i) {
    const c10::SymInt size = self.sym_size(-1 - static_cast<int64_t>(i / 2));
    const std::optional<int64_t> pad = pads[i].maybe_as_int();
    return pad && *pad >= 0 && size.sym_ge(*pad).guard_bool(__FILE__, __LINE__);
  };
  bool usual = pads.size() % 2 == 0 && static_cast<int64_t>(padded) + 2 == self.dim();
  for (size_t i = 0; usual && i < pads.size(); ++i) usual = fits(i);
  if (!usual) return at::_ops::_pad_circular::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), self, pads);
  at::Tensor out = self;
  for (size_t i = 0; i < padded; ++i) {
    const int64_t dim = self.dim() - 1 - static_cast<int64_t>(i);
    const c10::SymInt size = self.sym_size(dim);
    out =
        at::cat({out.slice_symint(dim, size - pads[2 * i], size), out, out.slice_symint(dim, 0, pads[2 * i + 1])}, dim);
  }
  return out.contiguous();
}

// The default window. torch warns about a missing window, once.
at::Tensor rectangle(const at::Tensor& signal, int64_t length, int64_t hop, int64_t width) {
  {
    const Capture::StepAside aside;
    (void)at::stft(at::zeros({length}), length, hop, width, {}, false, true, true);
  }
  return at::ones({width}, signal.options());
}

// The spectra of a signal's windows. ATen's version needs all sizes as numbers; cases with errors or warnings are left
// to it.
std::optional<at::Tensor> windowed_spectra(const std::vector<c10::IValue>& args) {
  const at::Tensor self = args[0].toTensor();
  const int64_t length = args[1].toInt(), hop = args[2].isNone() ? length / 4 : args[2].toInt(),
                width = args[3].isNone() ? length : args[3].toInt();
  const bool known = args[7].isBool() && args[7].toBool() && (args.size() < 9 || args[8].isNone());
  if (!known || !self.is_floating_point() || self.dim() < 1 || self.dim() > 2) return std::nullopt;
  if (hop <= 0 || width <= 0 || width > length) return std::nullopt;
  at::Tensor window = args[4].isTensor() ? args[4].toTensor() : at::Tensor();
  if (!window.defined()) window = rectangle(self, length, hop, width);
  if (!window.is_floating_point() || window.dim() != 1 || window.device() != self.device()) return std::nullopt;
  if (!window.sym_size(0).sym_eq(width).guard_bool(__FILE__, __LINE__)) return std::nullopt;
  if (!self.sym_size(-1).sym_ge(length).guard_bool(__FILE__, __LINE__)) return std::nullopt;
  if (width < length) {
    const int64_t left = (length - width) / 2;
    window = at::constant_pad_nd(window, {left, length - width - left});
  }
  const at::Tensor frames = self.unfold(-1, length, hop).mul(window);
  const int64_t norm = args[5].toBool() ? 1 : 0;  // by the root of the length
  const bool onesided = args[6].isNone() || args[6].toBool();
  return at::_fft_r2c(frames, {frames.dim() - 1}, norm, onesided).transpose(-1, -2);
}

void stft(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  std::optional<at::Tensor> made = windowed_spectra({stack->end() - static_cast<long>(count), stack->end()});
  if (!made) return op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  torch::jit::drop(*stack, count);
  torch::jit::push(*stack, std::move(*made));
}

}  // namespace

void add_signals(torch::Library& library) {
  library.impl("_pad_circular", TORCH_FN(pad_circular));
  library.impl("stft", torch::CppFunction::makeFromBoxedFunction<&stft>());
  library.impl("max_pool1d", torch::CppFunction::makeFromBoxedFunction<&max_pool1d>());
}

}  // namespace cresset::bridge
