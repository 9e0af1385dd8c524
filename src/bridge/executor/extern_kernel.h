// Calls of operators outside of the compiled kernels, as the executor's tape sees them. The folder extern_kernels
// implements them.
#pragma once

#include <memory>
#include <span>

#include "bridge/executor/executor_context.h"
#include "runtime/program.h"

namespace cresset::bridge {

class ExternKernel {
 public:
  virtual ~ExternKernel() = default;
  // Runs the call on the context's current tensors and stores the results in the context.
  virtual void run(BoundContext& context) = 0;
  // Whether the call does nothing but enqueue work on a GPU's stream, the same for the same addresses.
  virtual bool only_enqueues() const { return false; }
  // Whether the call does all of its work on the host, and reads no element of a tensor: it may run before the steps in
  // front of it.
  virtual bool runs_on_host() const { return false; }
  // Whether results may lie in memory that the operator allocates, not in planned memory.
  virtual bool allocates_results() const { return true; }
  // Tensors that run() reads or writes beside the arguments and results of its own call.
  virtual std::span<const runtime::TensorId> also_touches() const { return {}; }
};

// Prepares a call: the specialized form of the operator if there is one, else its boxed call.
std::unique_ptr<ExternKernel> bind_extern_call(const runtime::ExternCall& call, const BoundContext& context);

// Lets one call do the work of several where this is faster. `calls`: prepared calls of neighbouring steps, in order.
void join_products(const BoundContext& context, std::span<std::unique_ptr<ExternKernel>> calls);

}  // namespace cresset::bridge
