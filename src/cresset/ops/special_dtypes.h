// Values that are complex, unsigned numbers of more than 8 bits, or floats of 8 bits. Operator rules assume other
// dtypes, so operators on special values go through ATen. Rules apply where an operator does not compute with elements:
// views, copies and conversions. Kernels load, convert and store floats of 8 bits; other special values they do not
// hold.
#pragma once

#include "graph/graph.h"

namespace cresset::ops {

// Whether an argument is a tensor of a special dtype or names such a dtype.
bool takes_special(const graph::Graph& graph, const std::vector<graph::Arg>& args);
// Whether kernels hold the values of all arguments and results, and compute what the operator does with them.
bool kernels_hold(const graph::Graph& graph, const graph::Node& node);

}  // namespace cresset::ops
