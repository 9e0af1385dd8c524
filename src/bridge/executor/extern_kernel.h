// Calls of operators outside of the compiled kernels, as the executor's tape sees them. The folder extern_kernels
// implements them.
#pragma once

#include <memory>

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
};

// Prepares a call: the specialized form of the operator if there is one, else its boxed call.
std::unique_ptr<ExternKernel> bind_extern_call(const runtime::ExternCall& call, const BoundContext& context);

}  // namespace cresset::bridge
