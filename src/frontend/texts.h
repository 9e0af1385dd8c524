// Texts that numbers give, f"{loss:.4f}", and texts that are other ones at each call: what they say is left open.
//
// In the place of such a str stands an object of a type of its own, as torch.SymInt stands for an int. The program may
// hand it on, format it, join it with others, keep it: later calls make the str of their own numbers
// (Recipe::Kind::Text). What looks at the characters (a comparison, a key of a dictionary, a method, C code) gets the
// str of this call, and pins what gave it.
#pragma once

#include <vector>

#include "frontend/eval/hooks.h"
#include "frontend/point.h"
#include "frontend/py_objects.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

inline bool is_text(PyObject* object) { return object != nullptr && Py_TYPE(object) == cresset_text_type; }
bool is_or_holds_text(PyObject* object);  // in containers
// What stands for one that is another one at each call: a number, or a text.
inline bool is_symbolic(PyObject* object) { return is_symbolic_number(object) || is_text(object); }
// The str, which is looked at from now on. Throws PythonError.
PyRef plain_text(PyObject* text);
// What gives it; nullptr of one that the piece was given, and of one that was looked at.
const Operation* operation_of_text(PyObject* text);
// The str of one that was looked at; nullptr of others. Borrowed.
PyObject* looked_at_text(PyObject* text);
// One that stands for a str that the piece is given.
PyRef text_of_input(PyObject* str, bool ends_piece);

// Where an operator, or a call, makes a text of open ones or of symbolic numbers, whatever those are. Empty for others.
PyRef text_of_operator(const CressetOperator& op);
PyRef text_of_call(const CressetCall& call);
// An operator on open texts, done with what they say. Empty for others. Throws PythonError.
PyRef with_plain_texts(const CressetOperator& op);
// Whether looking would pin a float: the piece had better end, so that what comes of it is done natively.
bool had_better_end_piece(PyObject* object);
// A name of an attribute is among the arguments.
bool names_attribute(const CressetCall& call);
bool any_texts();  // open ones, anywhere
// Which of the arguments of a C function, which knows no open texts, are or hold some that it looks at. Others it puts
// into containers and exceptions.
std::vector<Py_ssize_t> texts_looked_at(const CressetCall& call);

}  // namespace cresset::frontend
