// Signals with symbolic sizes: spectra of windows, circular padding, pools along a single dimension.
#pragma once

#include <torch/library.h>

namespace cresset::bridge {

// Registers the operators for the library's dispatch key.
void add_signals(torch::Library& library);

}  // namespace cresset::bridge
