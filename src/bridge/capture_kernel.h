// The boxed kernel behind the trace key, on every operator that is not CompositeImplicit.
#pragma once

namespace cresset::bridge {

// Registers the kernel on all operators present that do not have it yet: called as each capture begins. Thread safe;
// about 10 ms the first time, a flag test when no operator was registered since.
void install_capture_kernels();

}  // namespace cresset::bridge
