// Tier 2 of shape inference: operators without a native rule.
#pragma once

#include <ATen/core/function_schema.h>

#include <vector>

#include "bridge/capture/capture.h"
#include "bridge/symbolic/unpredictable.h"

namespace cresset::bridge {

// Result types of an operator from its meta kernel. The meta kernel runs for several choices of sizes. If a function of
// the sizes fits every answer (shape_extrapolation.h), it becomes the result's size; otherwise all sizes are
// specialized. A fitted function is a prediction: the executor compares it with the operator's real result
// (PredictionError). An exception of the meta kernel for the caller's own sizes is eager mode's and passes through.
// Aborts the capture when the operator has no meta kernel. `absent` receives a bit mask, by position, of results which
// the call does not return; the types exclude them.
std::vector<graph::TensorType> generic_rule(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args,
                                            uint64_t* absent = nullptr);

// Bit mask, by position, of the results which an argument named output_mask excludes.
uint64_t unwanted_results(const c10::FunctionSchema& schema, const std::vector<graph::Arg>& args);

}  // namespace cresset::bridge
