// Steps shared by the decompositions of normalizations.
#pragma once

#include <initializer_list>
#include <optional>

#include "ops/compose.h"

namespace cresset::ops {

struct Normalized {
  graph::ValueId value;                    // (x - mean) / sqrt(variance + eps)
  graph::ValueId mean, inverse_deviation;  // with the folded dimensions kept
};
Normalized normalize_over(Compose& c, graph::ValueId x, const std::vector<int64_t>& dims, double eps);

graph::ValueId scale_and_shift(Compose& c, graph::ValueId x, const std::optional<graph::ValueId>& weight,
                               const std::optional<graph::ValueId>& bias);

// Argument i in `dtype`, viewed as `sizes` when given; nullopt when it is None.
std::optional<graph::ValueId> parameter(Compose& c, const OpArgs& args, size_t i, DType dtype,
                                        const std::vector<sym::ExprId>* sizes);

// The input's dtype, or f32 beside parameters of a different dtype: group norm saves its statistics so.
DType parameter_dtype(const OpArgs& args, std::initializer_list<size_t> parameters);
// The dtype of saved statistics of layer norm and batch norm: parameter_dtype on the CPU, the compute dtype on GPUs.
DType statistics_dtype(const OpArgs& args, std::initializer_list<size_t> parameters);
bool parameters_fit(const OpArgs& args, std::initializer_list<size_t> parameters);

}  // namespace cresset::ops
