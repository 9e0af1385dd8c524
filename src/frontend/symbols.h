// Symbolic numbers that leave a capture become plain ones.
#pragma once

#include <c10/core/SymNodeImpl.h>

#include <unordered_map>
#include <utility>

#include "frontend/py_ref.h"

namespace cresset::frontend {

// The object with the symbolic numbers in it replaced by their values of this call: in place in lists, dictionaries and
// instances, by new tuples where a tuple holds one. Everything else stays the object that it is.
PyRef without_symbols(PyRef object);
// Likewise, but instances that were there before the call that is captured, and are no structures, stay as they are: a
// program of many modules is not walked through at each of its breaks.
PyRef new_without_symbols(PyRef object);

// For as long as it lives, what takes the place of a tuple that holds symbols is one object, wherever it is met.
class OneForOne {
 public:
  using Made = std::unordered_map<PyObject*, std::pair<PyRef, PyRef>>;  // what was met, and what took its place
  OneForOne();
  ~OneForOne();
  OneForOne(const OneForOne&) = delete;
  // Of a tuple that stood in the place of `plain`: that very one takes its place again.
  static void stood_for(PyObject* symbolic, const PyRef& plain);

 private:
  Made made_;
  Made* around_;
};
// The arguments of an exception, whose text may name the types of symbols where the program has numbers.
PyRef with_plain_names(PyRef args);

// `__class__`, which singledispatch, abstract classes and C code's isinstance() go by, is the plain number's from now
// on; torch's own code, which knows of symbols, still sees what they are.
void show_number_as(PyTypeObject* symbolic, PyTypeObject* plain);

// What the program is told that sets an attribute, or an item, of a number: throws.
void no_attributes_of(PyObject* number, PyObject* name);
void no_items_of(PyObject* number, PyObject* key, PyObject* value);

// The node of a SymInt, SymFloat or SymBool: the compiler's own, not torch's wrapping of it.
c10::SymNode node_of(PyObject* number);
// The other way, for a float and for a boolean.
PyRef python_float(const c10::SymNode& node);
PyRef python_bool(const c10::SymNode& node);

}  // namespace cresset::frontend
