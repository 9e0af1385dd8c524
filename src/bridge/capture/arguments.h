// Operator arguments between torch's boxed stack and the graph.
#pragma once

#include <ATen/core/ivalue.h>

#include "bridge/aten/op_schema.h"
#include "bridge/capture/capture.h"

namespace cresset::bridge {

// The present value of a tensor; a real tensor is lifted.
graph::ValueId value_of(Capture& capture, const at::Tensor& tensor);

// The argument which gives a storage offset (as_strided and similar operators), if the first argument is the viewed
// value. Graphs count from the value's first element, torch from the start of the storage.
std::optional<size_t> storage_offset_argument(const c10::FunctionSchema& schema);
void count_from_storage(torch::jit::Stack& arguments, size_t offset);  // converts the offset to torch's convention

// Tensors become their present values; real tensors are lifted.
graph::Arg to_graph(Capture& capture, const c10::IValue& value, ArgType type);

// Converts a graph argument to torch's. `tensor(ValueId)` supplies tensors, `integer(ExprId)` supplies numbers.
template <class TensorOf, class IntegerOf>
c10::IValue to_torch(const graph::Arg& arg, ArgType type, TensorOf&& tensor, IntegerOf&& integer);

}  // namespace cresset::bridge

#include "bridge/capture/arguments_inl.h"
