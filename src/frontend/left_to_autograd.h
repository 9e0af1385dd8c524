// Functions of Python's in autograd's record that could not be run ahead of time (Session::run_part): hooks that print,
// backward functions that branch on data. What brings them into the record (Tensor.register_hook, a custom function's
// apply, a module with full backward hooks, checkpoint) ends the piece and is done natively from the next capture on:
// they stand between two pieces' nodes then, and autograd calls them in each backward pass.
#pragma once

#include <functional>

#include "bridge/capture.h"
#include "frontend/eval/hooks.h"
#include "frontend/record_run.h"

namespace cresset::frontend {

inline constexpr const char* kLeftToAutograd = "autograd has to call a function that does more than compute";

// The call of the record that failed; or those that look at what lives on, which make the part fail. Under the GIL, as
// all of this.
void leave_to_autograd(const RecordRun& seen, bridge::Capture& capture, const std::function<bool(PyObject*)>& lives_on);
// The objects that nodes of autograd's are in Python, with contexts of custom functions; and dictionaries of hooks.
PyRef objects_of(const std::vector<torch::autograd::Node*>& nodes);
// Of such a list: whether a hook in it is C code, which would do for real what it does.
bool has_hook_of_c(PyObject* nodes);
// nodes: such a list.
void leave_nodes_to_autograd(PyObject* nodes);
// A piece cannot end inside of a checkpoint: what is checkpointed is left to autograd as a whole, from the next capture
// on. Whether there is one around `innermost` of which that was not known.
bool leave_checkpoint_around(const CressetActivation* innermost);
// How many are known: more than before means that the next capture will be another one.
size_t count_left_to_autograd();
// callee: the Python function or method that is called, as the evaluator sees it.
bool brings_function_left_to_autograd(PyObject* callee, const CressetCall& call);
// t.retain_grad() of a tensor that the call made; torch.autograd.grad() of what the call made, which frees its graph.
enum class UseOfAutograd : uint8_t { Retains, Frees };
// Whether the piece has to end where this code does so, because the tensor lived on in an earlier capture.
bool is_for_others(UseOfAutograd use, PyCodeObject* code);
// Those that were asked about since the last call of this are such.
void leave_to_autograd(UseOfAutograd use);

}  // namespace cresset::frontend
