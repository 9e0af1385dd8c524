// Builtins that call back into the program, and what is evaluated in their place (python/cresset/_equivalents.py): C
// code that is in the middle of something cannot be put off to a later piece, a frame can.
#pragma once

#include <string>
#include <unordered_set>

#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

// What to call instead, with the same arguments; borrowed. nullptr when the call runs no code of the program, or when
// what it gives would be told from what the builtin gives.
PyObject* equivalent_of(const CressetActivation& activation, const CressetCall& call);

// Of builtins that are called with numbers, some of them symbolic: what computes with these; borrowed, nullptr for
// others.
void call_for_symbols(PyObject* original, PyObject* function);
PyObject* stand_in_of(const CressetActivation& activation, const CressetCall& call);

// Of `for row in tensor`, where that had other lengths before: an iterator that a piece of any length goes on with.
// Empty where it is left to torch, also where gradients may be wanted: all rows come of one operator there.
PyRef rows_of(const CressetActivation& activation, PyObject* tensor);

// Of a function of torch.jit.script the function that it was made of, borrowed: TorchScript takes sizes for plain ints.
PyObject* source_of_script(PyObject* callable);

// Of the piece that this thread captures: sources of symbols for ints that are taken to vary before they have.
void presume_varying(std::unordered_set<std::string> sources);

// Of a call of one of torch's functions with symbolic numbers where its C code takes plain ones: a function made of
// operators that take symbols (python/cresset/_forms), to be called with the same arguments. Empty for
// others.
PyRef symbolic_form_of(const CressetActivation& activation, const CressetCall& call);

// What gives the next item of a builtin iterator that runs code of the program for it; nullptr for others.
PyObject* next_item_of(PyObject* iterator);

// Of f"{value!r:spec}", where the value's class says in Python what its text is: what is evaluated instead, with the
// value and the spec, if there is one. nullptr for others.
PyObject* formatter_of(const CressetOperator& op);

// Of a call of a class whose __new__ is a function of the program: what makes the instance, to be called with the same
// arguments. Empty for others.
PyRef maker_of_instance(const CressetCall& call);

// For the module: _hide_frames(code), _use_equivalents(consumers, iterators, list_of, first_of,
// assign, data_of, attribute_of, set_item).
PyObject* hide_frames(PyObject* module, PyObject* code);
PyObject* use_equivalents(PyObject* module, PyObject* args);
// _use_loops(rows): of itertools what is evaluated in the head of a loop: (callable, function, least and most
// arguments, names of arguments).
PyObject* use_loops(PyObject* module, PyObject* rows);
// _use_form(original, function, when, varied): what is evaluated in the place of one of torch's C functions that is
// given symbolic numbers (when: 0; 1: or any; 2: not in lists, or tensors with sizes that only data has; varied: such
// as have varied, or sizes), where it has such parameters.
PyObject* use_form(PyObject* module, PyObject* args);
// _form_in(original, module, when): a module of that name, to be imported when a call wants it, has such a form.
PyObject* form_in(PyObject* module, PyObject* args);
// _effect_of(callable, *args): what becomes of a call of a C function, as a word of cresset.call_table().
PyObject* effect_of(PyObject* module, PyObject* args);

}  // namespace cresset::frontend
