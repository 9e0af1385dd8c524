// Operator arguments between torch's boxed stack and the graph.
#pragma once

#include <ATen/core/ivalue.h>

#include "bridge/capture.h"
#include "bridge/op_entry.h"

namespace cresset::bridge {

// What a tensor holds now; a real one is lifted.
graph::ValueId value_of(Capture& capture, const at::Tensor& tensor);

// Graphs count elements of memory from the first of a value, as_strided and its kin from where the storage begins: the
// place of the argument that says so, of an operator whose first argument is that value.
std::optional<size_t> storage_offset_argument(const c10::FunctionSchema& schema);
void count_from_storage(torch::jit::Stack& arguments, size_t offset);  // as torch counts

// Tensors become the values they have now; real tensors are lifted.
graph::Arg to_graph(Capture& capture, const c10::IValue& value, ArgType type);

// A graph argument as torch takes it, with `tensor(ValueId)` giving tensors and `integer(ExprId)` numbers.
template <class TensorOf, class IntegerOf>
c10::IValue to_torch(const graph::Arg& arg, ArgType type, TensorOf&& tensor, IntegerOf&& integer);

}  // namespace cresset::bridge

#include "bridge/arguments_inl.h"
