// Conversion of symbolic numbers to plain numbers, when they leave a capture.
#pragma once

#include <c10/core/SymNodeImpl.h>

#include <unordered_map>
#include <utility>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Replaces the symbolic numbers in an object by their values in this call. Lists, dictionaries and instances are
// changed in place; a tuple with symbols is replaced by a new tuple. All other objects stay the same.
PyRef without_symbols(PyRef object);
// The same, but skips instances which are older than the captured call and are not structures. A program with many
// modules would otherwise be traversed at each graph break.
PyRef new_without_symbols(PyRef object);

// During its lifetime, every occurrence of a tuple with symbols is replaced by the same new tuple.
class OneForOne {
 public:
  using Made = std::unordered_map<PyObject*, std::pair<PyRef, PyRef>>;  // from the old object to (old, replacement)
  OneForOne();
  ~OneForOne();
  OneForOne(const OneForOne&) = delete;
  // Registers a tuple which took the place of `plain`: `plain` itself replaces it again.
  static void stood_for(PyObject* symbolic, const PyRef& plain);

 private:
  Made made_;
  Made* around_;
};
// The arguments of an exception, with the names of symbolic types in messages replaced by the names of Python's types.
PyRef with_plain_names(PyRef args);

// From now on `__class__` of the symbolic type is the plain type. singledispatch, abstract classes and isinstance() in
// C read this attribute; torch's own code still sees the symbolic type.
void show_number_as(PyTypeObject* symbolic, PyTypeObject* plain);

// Raise the error for setting an attribute or an item of a number.
void no_attributes_of(PyObject* number, PyObject* name);
void no_items_of(PyObject* number, PyObject* key, PyObject* value);

// The node of a SymInt, SymFloat or SymBool: cresset's own node, not torch's wrapper.
c10::SymNode node_of(PyObject* number);
// Whether the symbolic number has not been specialized by a guard.
bool is_unspecialized(PyObject* number);
// The inverse conversions for a float and a boolean.
PyRef python_float(const c10::SymNode& node);
PyRef python_bool(const c10::SymNode& node);

}  // namespace cresset::frontend
