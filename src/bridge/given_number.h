// Numbers in tensors of one element that were there before the call, and what simple arithmetic makes of them: a step
// that an optimizer counts, the scale of a loss, a stride that a module holds, a flag. Such a number is known when the
// call begins, so that reading it ends no piece, and decisions on it are guards (float_guard.h).
#pragma once

#include "bridge/float_expr.h"
#include "graph/graph.h"

namespace cresset::bridge {

// How the element of `value` comes of tensors that were there before, with the number that it is in this call; nullptr
// where it does not, or is no finite number. known: of values that stand for Python's floats. inputs, constants: the
// real tensors, by position. Of operators on tensors those take part that IEEE rounds to one result: guards compute it
// in this process, kernels on their own.
FloatExpr::Ref given_number(const graph::Graph& graph, graph::ValueId value, const NumbersOfValues& known,
                            c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<at::Tensor> constants);

// Whether sizes, or what tensors held when the call began, give the one number in a tensor of the program. to_decide:
// and a decision on it would be a guard.
class Capture;
bool is_given(Capture& capture, const at::Tensor& tensor, bool to_decide);

}  // namespace cresset::bridge
