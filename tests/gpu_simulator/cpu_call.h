// An operator on CUDA tensors, run by the CPU's kernel on the same memory.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace cresset::gpu_simulator {

// A boxed kernel for the CUDA key. Arguments are replaced by CPU tensors over the same memory, devices and generators
// by the CPU's. Results in the memory of an argument are views of that argument; other results get CUDA storages which
// own the memory. An argument changed by the kernel (its sizes, its storage) is changed the same way.
void call_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace cresset::gpu_simulator
