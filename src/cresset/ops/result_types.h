// The types of an operator's results: sizes, strides and dtypes by its shape rule, the device from its arguments.
#pragma once

#include "ops/op_def.h"

namespace cresset::ops {

// The device named by an argument, else that of the tensors: numbers on the CPU go along with the others. A copy stays
// on the device of the tensor that it replaces.
Device device_of_results(const graph::Graph& graph, std::string_view op, const std::vector<graph::Arg>& args);

// Fallback: the rule's.
Result<Types> result_types(ShapeContext& shapes, const OpDef& def, const std::vector<graph::Arg>& args);

}  // namespace cresset::ops
