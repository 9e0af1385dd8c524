// Operations of a program which need special treatment.
#pragma once

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"
#include "frontend/trace_rules/c_function_effects.h"
#include "frontend/values/numpy_ints.h"

namespace cresset::frontend {

// Whether a mode is active under which operators on plain tensors call the user's Python code, which must be evaluated.
bool operators_call_python();
// Whether a frame object belongs to a frame which is evaluated now, from `innermost` outwards.
bool is_evaluated(const CressetActivation& innermost, PyObject* frame);
bool asks_equality(const CressetOperator& op);  // == or !=

// numpy scalars choose an operator's behavior by the type of the other operand, so a symbolic operand is specialized.
// Exception: a symbolic int beside a numpy.int64 yields a symbolic numpy integer. Empty for other operands. Throws
// PythonError.
PyRef with_numpy_scalar(const CressetOperator& op);
// The number which the numpy scalar specializes; nullptr for other operators. Borrowed.
PyObject* specialized_by_numpy_scalar(const CressetOperator& op);

// A tensor which the call created and which is not yet visible outside: its autograd state belongs to the call.
bool is_own_tensor(PyObject* object);
// Whether the name is `data` and the tensor is not from the call.
bool is_data_of_other(PyObject* object, PyObject* name);

// A method which returns the elements of a tensor outside of the capture, which the capture would not notice. Also a
// method which returns the position of a tensor in its memory, which is not part of a graph.
bool reads_foreign_memory(const CCall& what);

// A method which changes the geometry of a lazily conjugated or negated tensor in place. ATen resizes a plain copy of
// it, which a proxy tensor does not permit.
bool reshapes_lazy_tensor(const CCall& what);

// A call which changes only autograd state of own tensors: y.requires_grad_(), y.register_hook(f), and runs of the
// engine without gradient accumulation in older tensors.
bool differentiates_own_tensors(const CCall& what, const CressetCall& call);

// A segment begins: autograd nodes created from now on belong to it.
void begin_own_nodes();
// grad_fn.register_hook(f) for a node of the segment.
bool is_hook_of_own_node(const CCall& what);

// functools.cached_property takes a lock while it computes its value (removed in later Pythons). The side effect is the
// write of the value into the object.
bool is_lock_of_cached_property(const CressetActivation& activation, const CCall& what);

// A call of a torch C function with symbolic booleans, or with symbolic ints in lists of floats. torch's argument
// parser accepts neither, so plain booleans and floats replace them. Empty for other calls. Throws PythonError.
PyRef with_numbers_it_takes(const CressetCall& call);

// The arguments of a call, without symbols.
class PlainArguments {
 public:
  explicit PlainArguments(const CressetCall& call);
  PyObject* const* data() const { return args_.data(); }

 private:
  std::vector<PyRef> plain_;
  std::vector<PyObject*> args_;
};

// Handles a TypeError of a C function with symbolic arguments and no side effect so far: returns the result for plain
// numbers, or raises eager's error. Empty for other calls. Throws PythonError.
PyRef done_with_plain_numbers(const CressetCall& call, CEffect effect, PyObject* exception);

// Calls of functions and methods which accept only Python's own numbers: int.__add__(n, 1), math.ldexp(x, n). Empty for
// other calls.
PyRef of_plain_numbers(const CressetCall& call);
// Performs the call with the values of symbolic arguments when it stores its arguments invisibly. Empty when no
// argument is symbolic.
PyRef with_plain_numbers(const CressetCall& call);
// Whether C code receives symbolic numbers together with a function which distinguishes number types: map(type, [n]),
// itertools.groupby([n, 1], type).
bool asks_for_types(const CressetCall& call);
// string % values, with symbolic numbers among the values. Empty for other operations.
PyRef of_plain_string(const CressetOperator& op);

}  // namespace cresset::frontend
