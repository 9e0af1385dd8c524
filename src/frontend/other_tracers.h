// Tracers and modes of others: make_fx, torch.export, torch.jit.trace, FakeTensorMode, functionalization, transforms of
// torch.func, a TorchDispatchMode of the user's. They see each operator of a function that runs below them; a compiled
// callable runs its function plainly there.
#pragma once

#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// Whether somebody else is told of this thread's operators.
bool traced_by_others();
// Whether there is a tensor among the arguments (a tuple and a dict) that only stands for another one: a fake or meta
// tensor, which has no memory, or a wrapper of a level's or of functionalization.
bool hold_stand_ins(PyObject* args, PyObject* kwargs);
// Either, of what follows a break, outside of transforms that the program itself is in.
bool left_to_others(PyObject* frames, PyObject* value);

// ---- Tracers that a captured program uses itself: their calls are done between two pieces

inline constexpr const char* kTraces = "a tracer of torch's, which sees each operator";
// Whether a function is a tracer of torch's that is handed tensors (make_fx(f)(x), torch.export.export(m, (x,)),
// torch.jit.trace), or has to do with a mode of one's (FakeTensorMode.from_tensor).
bool is_tracer(PyObject* callee, const CressetCall& call);
// A C function that sets or takes away a tracer's mode, or dispatch keys of this thread.
bool switches_tracer(const char* name, const CressetCall& call);
// Whether a C function is given a fake tensor.
bool is_of_stand_ins(const CressetCall& call);

}  // namespace cresset::frontend
