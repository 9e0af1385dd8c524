// Signals on symbolic sizes: spectra of windows, circular padding, pools along one dimension.
#pragma once

#include <torch/library.h>

namespace cresset::bridge {

// Registers them, for the library's dispatch key.
void add_signals(torch::Library& library);

}  // namespace cresset::bridge
