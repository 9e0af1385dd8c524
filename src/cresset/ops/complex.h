// Complex values. Kernels do not support them, and operator rules assume real numbers. Operators on complex values go
// through ATen; only operators which never inspect the dtype of values may use their rules.
#pragma once

#include "graph/graph.h"

namespace cresset::ops {

// Whether an argument is a complex tensor or names a complex dtype.
bool takes_complex(const graph::Graph& graph, const std::vector<graph::Arg>& args);
// Whether an argument or a result is complex.
bool touches_complex(const graph::Graph& graph, const graph::Node& node);

}  // namespace cresset::ops
