// Operators which reach the trace key without being captured.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "bridge/capture/capture.h"

namespace cresset::bridge {

// This thread's capture is closed: the operator runs eagerly. Symbolic numbers among the arguments become plain
// numbers.
void run_natively(const c10::OperatorHandle& handle, Capture& capture, torch::jit::Stack& stack);

// This thread has no capture, but an argument is an input proxy of another thread: the operator works on an alias of
// it.
void run_beside_capture(const c10::OperatorHandle& handle, torch::jit::Stack& stack);

// Sets the lookup of the number behind a tensor of a symbolic number (CaptureClient::symbolic_number), for use after
// the capture.
void set_symbolic_numbers(std::function<std::optional<at::Scalar>(const at::Tensor&)> of);

}  // namespace cresset::bridge
