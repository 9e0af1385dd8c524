// Polyfills: Python functions which the evaluator enters in place of builtins which call back into the program
// (python/cresset/_polyfills/builtins.py). A graph break inside a C function cannot be resumed; a Python frame can.
#pragma once

#include <string>
#include <unordered_set>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// The polyfill for this call, with the same arguments; borrowed. nullptr when the call runs no code of the program, or
// when the polyfill's result would be distinguishable from the builtin's.
PyObject* polyfill_of(const CressetActivation& activation, const CressetCall& call);

// `call_for_symbols` registers a function for calls of a builtin with symbolic numbers. `proxy_of` returns the
// function for a call; borrowed, nullptr when none applies.
void call_for_symbols(PyObject* original, PyObject* function);
PyObject* proxy_of(const CressetActivation& activation, const CressetCall& call);

// For `for row in tensor`, where the tensor had other lengths before: an iterator which works for any length. Empty
// where torch's own iteration is used, also where gradients may be required: torch computes all rows by a single
// operator there.
PyRef rows_of(const CressetActivation& activation, PyObject* tensor);

// The Python function from which `torch.jit.script` made this function; borrowed. TorchScript treats sizes as plain
// ints.
PyObject* source_of_script(PyObject* callable);

// For the segment which this thread captures: sources of ints which become symbols before they have varied.
void presume_varying(std::unordered_set<std::string> sources);

// For a call of a torch function with symbolic numbers which its C code does not accept: a decomposition into operators
// which accept symbols (python/cresset/_decompositions), with the same arguments. Empty for other calls.
PyRef decomposition_of(const CressetActivation& activation, const CressetCall& call);

// Whether the code is of the function's decomposition, or of a function inside of it. There the function itself is
// called: a substitute of the function would enter the decomposition again, without end.
bool is_decomposition_of(PyObject* original, const PyCodeObject* code);

// The function which computes the next item of a builtin iterator whose step runs code of the program; nullptr for
// other iterators.
PyObject* next_item_of(PyObject* iterator);

// For f"{value!r:spec}" where the value's class formats itself in Python: the function to evaluate, with the value and
// the spec, if present. nullptr for other formats.
PyObject* formatter_of(const CressetOperator& op);

// For a call of a class whose `__new__` is a function of the program: the function which creates the instance, with the
// same arguments. Empty for other calls.
PyRef maker_of_instance(const CressetCall& call);

// Module functions: _hide_frames(code), _use_equivalents(consumers, iterators, list_of, first_of, assign, data_of,
// attribute_of, set_item).
PyObject* hide_frames(PyObject* module, PyObject* code);
PyObject* use_polyfills(PyObject* module, PyObject* args);
// _use_loops(rows) registers polyfills for itertools functions in the head of a loop: (callable, function, least and
// most arguments, argument names).
PyObject* use_loops(PyObject* module, PyObject* rows);
// _use_form(original, function, when, varied) registers a decomposition for a torch C function. It applies when the
// function accepts the arguments, under the condition `when`. 0: symbolic numbers among the arguments; 1: always; 2:
// symbolic numbers outside of lists, or tensors with data-dependent sizes; 3: tensors as factors; 4: 0 or 3. `varied`:
// only for numbers which have varied and for sizes.
PyObject* use_decomposition(PyObject* module, PyObject* args);
// _form_in(original, module, when): the module with this name contains the decomposition and is imported at the first
// call which needs it.
PyObject* decomposition_in(PyObject* module, PyObject* args);
// _effect_of(callable, *args): the treatment of a C function call, as a word of cresset.call_table().
PyObject* effect_of(PyObject* module, PyObject* args);

}  // namespace cresset::frontend
