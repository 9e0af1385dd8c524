// Names of kernels for people who look at a profile.
#pragma once

#include <string>

#include "fuse/plan.h"

namespace cresset::lower {

// The operators which the unit computes, and the line of the program for its last one: "relu, mul at model.py:12 in f".
std::string kernel_title(const graph::Graph& graph, const fuse::Unit& unit);

}  // namespace cresset::lower
