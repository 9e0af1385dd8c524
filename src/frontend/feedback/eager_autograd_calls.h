// Python functions in the autograd graph which cannot run ahead of time (Session::run_subgraph): hooks which print,
// backward functions which branch on data. The call which adds them to the graph is Tensor.register_hook, a custom
// function's apply, a module with full backward hooks, or checkpoint. From the next capture on this call causes a graph
// break and runs in CPython. The functions then lie between the nodes of two segments, and autograd calls them in each
// backward pass.
#pragma once

#include <functional>

#include "bridge/capture/capture.h"
#include "frontend/eval/hooks.h"
#include "frontend/feedback/autograd_trace_run.h"

namespace cresset::frontend {

inline constexpr const char* kEagerAutogradCall = "autograd has to call a function that does more than compute";

// Records the failed call of the autograd graph, or the calls which read objects which outlive the segment and thereby
// make the part fail. All functions here need the GIL.
void defer_to_autograd(const AutogradTraceRun& seen, bridge::Capture& capture,
                       const std::function<bool(PyObject*)>& lives_on);
// The Python objects of autograd nodes, including contexts of custom functions, and the dictionaries of hooks.
PyRef objects_of(const std::vector<torch::autograd::Node*>& nodes);
// Whether the list contains a hook in C, whose side effects would happen for real.
bool has_hook_of_c(PyObject* nodes);
// nodes: a list from objects_of().
void leave_nodes_to_autograd(PyObject* nodes);
// No segment can end inside of a checkpoint. From the next capture on the checkpointed function around `innermost` is
// left to autograd as a whole. Returns whether the function was not yet recorded.
bool leave_checkpoint_around(const CressetActivation* innermost);
// The number of records. A higher number than before means a different next capture.
size_t count_eager_autograd_calls();
// callee: the called function or method, as the evaluator sees it; a C method since torch 2.14 (a custom function's
// apply).
bool calls_eager_autograd_function(PyObject* callee, const CressetCall& call);
// t.retain_grad() on a tensor of the call; torch.autograd.grad() of a result of the call, which frees its autograd
// graph.
enum class UseOfAutograd : uint8_t { Retains, Frees };
// Whether the segment has to end at this use, because the tensor outlived the segment in an earlier capture.
bool is_for_others(UseOfAutograd use, PyCodeObject* code);
// Records the uses which were queried since the last call of this function.
void defer_to_autograd(UseOfAutograd use);

}  // namespace cresset::frontend
