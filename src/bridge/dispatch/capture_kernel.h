// The boxed kernel behind the trace key, registered for every operator except CompositeImplicit ones.
#pragma once

namespace cresset::bridge {

// Registers the kernel for all present operators without it. Thread safe. The first call takes about 10 ms, which the
// Python package spends at import; later calls test a flag unless an operator was registered since.
void register_capture_kernels();
// register_capture_kernels(), and all other process-wide preparations. Called when a capture begins.
void install_capture_kernels();

}  // namespace cresset::bridge
