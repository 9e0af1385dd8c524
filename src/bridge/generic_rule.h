// Tier 2 of shape inference: operators without a native rule.
#pragma once

#include <ATen/core/function_schema.h>

#include <vector>

#include "bridge/capture.h"
#include "bridge/unpredictable.h"

namespace cresset::bridge {

// Result types of an operator from its meta kernel, which is asked for several choices of sizes: where every answer is
// the same function of the sizes (see predict_sizes.h), that function is the result's size; otherwise all sizes are
// pinned by guards. A function found so is a prediction: the executor compares it with what the operator returns
// (PredictionError). An exception that the meta kernel raises for the caller's own sizes is eager's and passes through.
// Aborts the capture when the operator has no meta kernel.
// `absent`: which results, by position, such a call does not give (the types are of the others).
std::vector<graph::TensorType> generic_rule(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args,
                                            uint64_t* absent = nullptr);

// Results, by position, that an argument named output_mask says are not wanted.
uint64_t unwanted_results(const c10::FunctionSchema& schema, const std::vector<graph::Arg>& args);

}  // namespace cresset::bridge
