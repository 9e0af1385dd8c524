// Operators that reach the trace key but are not captured.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "bridge/capture.h"

namespace cresset::bridge {

// The capture of this thread is closed: the operator runs as if there were none. Symbolic numbers among the arguments
// become plain ones.
void run_natively(const c10::OperatorHandle& handle, Capture& capture, torch::jit::Stack& stack);

// No capture on this thread, but an argument is a guest of another thread's: the operator works on an alias of it.
void run_beside_capture(const c10::OperatorHandle& handle, torch::jit::Stack& stack);

// How the number behind a tensor that stands for a symbolic one is found (Capture::symbolic_number), after the capture.
void set_symbolic_numbers(std::function<std::optional<at::Scalar>(const at::Tensor&)> of);

}  // namespace cresset::bridge
