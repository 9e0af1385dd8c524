// The boxed kernel behind the trace key, on every operator that is not CompositeImplicit.
#pragma once

namespace cresset::bridge {

// Registers the kernel on all operators present that do not have it yet. Thread safe; about 10 ms the first time (the
// Python package does it while it is imported), a flag test when no operator was registered since.
void register_capture_kernels();
// That, and what else capturing needs of the process: called as each capture begins.
void install_capture_kernels();

}  // namespace cresset::bridge
