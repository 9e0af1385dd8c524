// Copies of the parts of a tensor, of which there are as many as sizes say.
#pragma once

#include <torch/library.h>

namespace cresset::bridge {

void add_parts(torch::Library& library);

}  // namespace cresset::bridge
