// Tracers and modes of others: make_fx, torch.export, torch.jit.trace, FakeTensorMode, functionalization, transforms of
// torch.func, a TorchDispatchMode of the user's. They see each operator of a function that runs below them; a compiled
// callable runs its function plainly there.
#pragma once

#include <Python.h>

namespace cresset::frontend {

// Whether somebody else is told of this thread's operators.
bool traced_by_others();
// Whether there is a tensor among the arguments (a tuple and a dict) that only stands for another one: a fake or meta
// tensor, which has no memory, or a wrapper of a level's or of functionalization.
bool hold_stand_ins(PyObject* args, PyObject* kwargs);
// Either, of what follows a break, outside of transforms that the program itself is in.
bool left_to_others(PyObject* frames, PyObject* value);

}  // namespace cresset::frontend
