// Complex values: kernels hold none, and the rules of operators speak of real numbers. What touches them goes through
// ATen; only what never looks at a value's dtype may use its rules.
#pragma once

#include "graph/graph.h"

namespace cresset::ops {

// Whether an argument is a complex tensor or names a complex dtype.
bool takes_complex(const graph::Graph& graph, const std::vector<graph::Arg>& args);
// Whether an argument or a result is complex.
bool touches_complex(const graph::Graph& graph, const graph::Node& node);

}  // namespace cresset::ops
