// Immutable objects of C types which a single call creates: slices, frozen sets, partial functions, getters of the
// operator module, dictionary views. Also library values without references to program objects.
#pragma once

#include <functional>

#include "frontend/cpython/library_values.h"
#include "frontend/values/object_layout_parts.h"

namespace cresset::frontend {

// Kind::Value, or Kind::None for other objects.
ObjectLayout layout_of_value(PyObject* object);
bool is_partial_function(PyObject* object);  // of functools.partial itself
bool is_partial_function(const ObjectLayout& layout);
// list[int], int | None: equal when their components are equal.
bool is_type_form(PyObject* object);
// Whether `holds` is true for all components of tuples and type forms.
bool all_in_form(PyObject* object, const std::function<bool(PyObject*)>& holds);

// A tuple or a torch.Size.
bool is_tuple_or_size(PyObject* object);

}  // namespace cresset::frontend
