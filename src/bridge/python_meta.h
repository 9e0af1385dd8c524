// Operators whose meta kernels torch has in Python (torch/_meta_registrations.py), or that are made of those. The first
// call of one imports Dynamo and sympy: seconds, for a program that may need neither. Their result types are found out
// otherwise.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <optional>
#include <vector>

#include "bridge/capture.h"

namespace cresset::bridge {

// Asked of the dispatcher once a process for an operator.
bool asks_python_for_sizes(const c10::OperatorHandle& handle);

// Of an operator that computes element by element (torch's tag) and has a kernel for the CPU: sizes and strides are
// TensorIterator's, the dtype is what the operator gives for small tensors. Nothing where it refuses those, or makes
// other strides.
std::optional<graph::TensorType> pointwise_type(Capture& capture, const c10::OperatorHandle& handle, graph::OpId op,
                                                const std::vector<graph::Arg>& args);

// Of others: whether the CPU's kernel is run for a few sizes, on zeros, in the place of the meta kernel. Where that is
// little work, and nothing trusts in its indices.
bool runs_for_sizes(Capture& capture, const c10::OperatorHandle& handle, const std::vector<graph::Arg>& args,
                    const graph::Device& device);

// How many elements its tensors have, or could have of which sizes alone are given.
double work_of(Capture& capture, const std::vector<graph::Arg>& args, const std::function<int64_t(sym::ExprId)>& value);
inline constexpr double kLittleWork = 1 << 16;

// Operators that only others of torch's call, and factorizations: sizes that do not belong together are not refused, so
// they are run for the caller's own alone.
bool trusts_in_sizes(const c10::OperatorHandle& handle);

// The argument that holds the rows which a factorization has exchanged, counted from 1. Libraries trust in that: a zero
// leads them outside of their memory.
std::optional<size_t> pivots_argument(const c10::OperatorHandle& handle);

}  // namespace cresset::bridge
