// Operators whose meta kernels are Python functions (torch/_meta_registrations.py), or which consist of such operators.
// The first call of a Python meta kernel imports Dynamo and sympy, which takes seconds for possibly no benefit. The
// result types of these operators are determined without meta kernels.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <optional>
#include <vector>

#include "bridge/capture/capture.h"
#include "ops/op_traits.h"

namespace cresset::bridge {

// Asks the dispatcher, once per process for each operator.
bool asks_python_for_sizes(const c10::OperatorHandle& handle);

// The result type of an operator which computes element by element (torch's tag) and has a CPU kernel. Sizes and
// strides follow TensorIterator; the dtype comes from a run on small tensors. nullopt: the operator refuses the small
// tensors or makes different strides.
std::optional<graph::TensorType> pointwise_type(Capture& capture, const c10::OperatorHandle& handle, graph::OpId op,
                                                const std::vector<graph::Arg>& args);

// For any other operator: whether its CPU kernel runs at a few sizes, on zeros, in place of the meta kernel. Required
// are little work and a kernel which validates its indices.
bool runs_for_sizes(Capture& capture, const c10::OperatorHandle& handle, graph::OpId op,
                    const std::vector<graph::Arg>& args, const graph::Device& device);

// The number of elements of the operator's tensors, or of tensors with the sizes among its arguments.
double work_of(Capture& capture, const std::vector<graph::Arg>& args, const std::function<int64_t(sym::ExprId)>& value);
inline constexpr double kLittleWork = 1 << 16;

// Which arguments the operator's kernel checks. Operators called only by other operators of torch, and operators on
// factorizations, do not reject inconsistent sizes, so they run only for the caller's own sizes.
ops::Checks checks_of(const c10::OperatorHandle& handle, graph::OpId op);

}  // namespace cresset::bridge
