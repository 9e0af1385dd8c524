// Calls of ATen operators from the tape: any operator, boxed, by its schema; and prepared calls that a bound context
// keeps, with only tensors changing from call to call.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <string_view>
#include <vector>

#include "bridge/executor_context.h"
#include "runtime/program.h"

namespace cresset::bridge {

// An operator as the dispatcher knows it. Found once a process.
struct AtenOp {
  explicit AtenOp(c10::OperatorHandle handle) : handle(std::move(handle)) {}
  c10::OperatorHandle handle;
  std::optional<c10::OperatorHandle> out;  // writes its results into given tensors; takes the same arguments
  int tensor_returns = 0;                  // how many results, all of type Tensor; -1: lists or others among them

  // "aten::add.Tensor". CHECKs that it exists.
  static const AtenOp& find(graph::OpId op);
  static const AtenOp* find_or_null(graph::OpId op);
};

// Converts an argument that mentions no tensor to what the schema's type asks for.
c10::IValue to_ivalue(const runtime::ExternArg& arg, const c10::Type& type, const BoundContext& context);

class ExternKernel {
 public:
  virtual ~ExternKernel() = default;
  // Runs the call on the context's current tensors and delivers the results to it.
  virtual void run(BoundContext& context) = 0;
};

// After an operator's results were delivered: planned memory is reused, so nobody else may hold them.
void check_places(const PlaceResults& placed, std::string_view op);

// Prepares a call: the specialized form of an operator that has one, else the boxed call of any operator.
std::unique_ptr<ExternKernel> bind_extern_call(const runtime::ExternCall& call, const BoundContext& context);

// The specialized forms; nullptr when they do not cover the call.
std::unique_ptr<ExternKernel> bind_boxed_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_linear_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_convolution_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_gather_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_scatter_call(const runtime::ExternCall& call, const BoundContext& context);
std::unique_ptr<ExternKernel> bind_pool_call(const runtime::ExternCall& call, const BoundContext& context);

}  // namespace cresset::bridge
