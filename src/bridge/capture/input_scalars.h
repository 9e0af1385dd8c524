// Input scalars: numbers in single-element tensors which existed before the call, and the results of simple arithmetic
// on them. Examples: an optimizer's step count, a loss scale, a stride held by a module, a flag. The number is known
// when the call begins. Reading it ends no graph segment, and decisions on it are guards (float_guard.h).
#pragma once

#include "bridge/symbolic/float_expr.h"
#include "graph/graph.h"

namespace cresset::bridge {

// How the element of `value` follows from tensors which existed before the call, with its number in this call. nullptr:
// it does not, or the number is not finite. known: values which stand for Python floats. inputs, constants: the real
// tensors, by position. Only tensor operators with a unique IEEE rounding take part, because guards and kernels compute
// them separately.
FloatExpr::Ref input_scalar(const graph::Graph& graph, graph::ValueId value, const NumbersOfValues& known,
                            c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<at::Tensor> constants);

// Whether sizes, or tensor contents at the start of the call, determine the number in a tensor of the program.
// to_decide: a decision on the number must also be a guard.
class Capture;
bool is_given(Capture& capture, const at::Tensor& tensor, bool to_decide);

}  // namespace cresset::bridge
