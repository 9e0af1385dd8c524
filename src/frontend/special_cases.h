// Operations of a program that are not to be done as others of their kind are.
#pragma once

#include "frontend/c_functions.h"
#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

// Whether operators on plain tensors call Python code of the user's, which is to be seen: under a mode.
bool operators_call_python();
// Whether a frame object is of a frame that is evaluated now, from `innermost` outwards.
bool is_evaluated(const CressetActivation& innermost, PyObject* frame);
bool is_warn(PyObject* callable);               // warnings.warn
bool asks_equality(const CressetOperator& op);  // == or !=

// numpy's scalars decide what comes of an operator by the type of the other operand: a symbolic one is pinned, other
// than an int beside a numpy.int64, of which a symbol comes that is numpy's. Empty for other operands. Throws
// PythonError.
PyRef with_numpy_scalar(const CressetOperator& op);
// The number that it pins; nullptr where it pins none. Borrowed.
PyObject* pinned_by_numpy_scalar(const CressetOperator& op);
// A symbolic int that is a numpy.int64 to the program (cresset/_capture_patches/numpy_integers.py); such a one of a
// symbolic or plain int; and the int that one is.
bool is_numpy_int(PyObject* number);
PyRef numpy_int_of(PyObject* number);
PyRef int_of_numpy(PyObject* number);

// A tensor that the call made and that nobody else has yet: autograd's state of it is the call's own.
bool is_own_tensor(PyObject* object);
// Whether the name is that of the .data of a tensor that the call did not make.
bool is_data_of_other(PyObject* object, PyObject* name);

// A method that gives the elements of a tensor which takes no part in the capture yet: nothing of the capture's would
// notice; or where a tensor lies in its memory, which no graph says.
bool reads_memory_of_outsider(const CCall& what);

// A call that changes what autograd knows, of own tensors alone: y.requires_grad_(), y.register_hook(f), and the
// engine's run where it leaves no gradients behind on tensors that were there before.
bool differentiates_own_tensors(const CCall& what, const CressetCall& call);

// A piece begins: nodes of autograd's that are made from now on are its own.
void begin_own_nodes();
// grad_fn.register_hook(f), of such a node.
bool is_hook_of_own_node(const CCall& what);

// functools.cached_property takes a lock while it makes its value (later Pythons do without): the write of the value
// into the object is what counts.
bool is_lock_of_cached_property(const CressetActivation& activation, const CCall& what);

// A C function of torch's that is given symbolic booleans, called with plain ones, or symbolic ints in lists of floats,
// called with floats: torch's reading of arguments knows neither. Empty for other calls. Throws PythonError.
PyRef with_numbers_it_takes(const CressetCall& call);

// A call's arguments, without symbols.
class PlainArguments {
 public:
  explicit PlainArguments(const CressetCall& call);
  PyObject* const* data() const { return args_.data(); }

 private:
  std::vector<PyRef> plain_;
  std::vector<PyObject*> args_;
};

// A TypeError of a C function that was given symbolic numbers, and has changed nothing: what it gives for plain ones,
// or its error in eager's words. Empty for other calls. Throws PythonError.
PyRef done_with_plain_numbers(const CressetCall& call, CEffect effect, PyObject* exception);

// Functions and methods of Python's own numbers, which take no others, called with symbolic ones: int.__add__(n, 1),
// math.ldexp(x, n). Empty for other calls.
PyRef of_plain_numbers(const CressetCall& call);
// The call with the values of symbolic numbers among its arguments, where it keeps what it is given out of sight. Empty
// when there are none.
PyRef with_plain_numbers(const CressetCall& call);
// Whether C code is given a function that tells kinds of numbers apart, and symbolic ones: map(type, [n]),
// itertools.groupby([n, 1], type).
bool asks_for_types(const CressetCall& call);
// text % values, where numbers among the values are symbolic. Empty for other operations.
PyRef of_plain_text(const CressetOperator& op);

}  // namespace cresset::frontend
