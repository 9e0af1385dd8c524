// Calls of ATen operators from the tape: any operator through its boxed kernel, and prepared calls. A bound context
// keeps the prepared calls; only tensors change between calls.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <string_view>
#include <vector>

#include "bridge/executor/extern_kernel.h"
#include "runtime/program.h"

namespace cresset::bridge {

// An operator of the dispatcher. It is looked up once per process.
struct AtenOp {
  explicit AtenOp(c10::OperatorHandle handle) : handle(std::move(handle)) {}
  c10::OperatorHandle handle;
  // The overload which writes into given tensors and otherwise takes the same arguments, if the device has a kernel.
  std::optional<c10::OperatorHandle> out, cuda_out;
  std::optional<c10::OperatorHandle> in_place;  // the overload which writes into argument 0
  int tensor_returns = 0;  // number of results, all of type Tensor; -1: lists or other types among the results

  // Takes a name as in "aten::add.Tensor". CHECKs its existence.
  static const AtenOp& find(graph::OpId op);
  static const AtenOp* find_or_null(graph::OpId op);
};

// Converts an argument without tensors to the type in the schema.
c10::IValue to_ivalue(const runtime::ExternArg& arg, const c10::Type& type, const BoundContext& context);

// Called after the results are stored: planned memory is reused, so no other owner may remain.
void check_places(const PlaceResults& placed, std::string_view op);

// The specialized forms. They return nullptr for a call which they do not cover.
std::unique_ptr<ExternKernel> bind_boxed_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_few_rows_product(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_padded_product(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_embedding_gradient(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_slice_write(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_philox_draw(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_linear_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_convolution_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_gather_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_scatter_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_pool_call(const runtime::ExternCall& call, const BoundContext& context);

}  // namespace cresset::bridge
