// Tracers and modes from outside of cresset: make_fx, torch.export, torch.jit.trace, FakeTensorMode, functionalization,
// transforms of torch.func, a user's TorchDispatchMode. They observe each operator of a function which runs below them,
// so a compiled callable runs its function in eager mode there.
#pragma once

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// Whether another tool observes this thread's operators.
bool traced_by_others();
// Whether the arguments (a tuple and a dict) contain a placeholder tensor: a fake or meta tensor without memory, or a
// wrapper of a transform level or of functionalization.
bool hold_tracer_proxies(PyObject* args, PyObject* kwargs);
// Combines both tests for the code after a graph break, ignoring the transforms of the program itself.
bool left_to_others(PyObject* frames, PyObject* value);

// ---- Tracers which a captured program uses itself: their calls run between two segments

inline constexpr const char* kTraces = "a tracer of torch's, which sees each operator";
// Whether a function is a torch tracer which receives tensors: make_fx(f)(x), torch.export.export(m, (x,)),
// torch.jit.trace. Also true for a function which works with a tracer's mode (FakeTensorMode.from_tensor).
bool is_tracer(PyObject* callee, const CressetCall& call);
// Whether a C function sets or removes a tracer's mode, or dispatch keys of this thread.
bool switches_tracer(const char* name, const CressetCall& call);
// Whether a C function receives a fake tensor.
bool is_of_tracer_proxies(const CressetCall& call);

}  // namespace cresset::frontend
