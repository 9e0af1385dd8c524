// Symbolic strings: strings formatted from numbers, f"{loss:.4f}", and strings which differ at each call.
//
// An object of a separate type takes the place of the str, as torch.SymInt takes the place of an int. The program may
// pass it on, format it, join it with other strings, or store it. Later calls build the str from their own numbers
// (Recipe::Kind::Text). Code which inspects the characters (a comparison, a dictionary key, a method, C code) gets the
// str of this call and specializes its numbers.
#pragma once

#include <vector>

#include "frontend/cpython/operation.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

inline bool is_symbolic_string(PyObject* object) { return object != nullptr && Py_TYPE(object) == cresset_string_type; }
bool is_or_holds_symbolic_string(PyObject* object);  // in containers
// Whether the object is a symbolic number or a symbolic string.
inline bool is_symbolic(PyObject* object) { return is_symbolic_number(object) || is_symbolic_string(object); }
// The str, which counts as inspected from now on. Throws PythonError.
PyRef plain_text(PyObject* text);
// The operation which produces the string; nullptr for an input string and for an inspected string.
const Operation* operation_of_string(PyObject* text);
// The str of an inspected string; nullptr for others. Borrowed.
PyObject* looked_at_string(PyObject* text);
// A symbolic string for a str among the inputs of the segment.
PyRef text_of_input(PyObject* str, bool breaks_graph);

// The symbolic string result of an operator or a call with symbolic strings or numbers. Empty when the result is not a
// symbolic string.
PyRef text_of_operator(const CressetOperator& op);
PyRef text_of_call(const CressetCall& call);
// Performs an operator on symbolic strings with their plain values. Empty for other operands. Throws PythonError.
PyRef with_plain_strings(const CressetOperator& op);
// Whether inspecting the string would specialize a float. The segment then ends, and CPython runs the inspecting
// operation.
bool prefers_graph_break(PyObject* object);
// Whether an argument is the name of an attribute.
bool names_attribute(const CressetCall& call);
bool any_symbolic_strings();  // symbolic strings, anywhere
// Positions of the arguments which are or contain symbolic strings and which the C function inspects. C functions store
// other arguments in containers and exceptions without inspecting them.
std::vector<Py_ssize_t> strings_looked_at(const CressetCall& call);

}  // namespace cresset::frontend
