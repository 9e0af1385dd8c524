// Objects of C types that are made by one call and then stay as they are: slices, frozen sets, partial functions,
// getters of the operator module, views of dictionaries; and library values that hold nothing of a program's.
#pragma once

#include <functional>

#include "frontend/anatomy.h"

namespace cresset::frontend {

// Kind::Value, or Kind::None for other objects.
Anatomy anatomy_of_value(PyObject* object);
bool is_partial_function(PyObject* object);  // of functools.partial itself
bool is_partial_function(const Anatomy& anatomy);
// list[int], int | None: equal where what they consist of is.
bool is_type_form(PyObject* object);
// Whether it holds of all that tuples and such forms consist of.
bool all_in_form(PyObject* object, const std::function<bool(PyObject*)>& holds);
// One of a function, class or alias that is nothing but a name: without bounds and defaults, which are evaluated when
// they are asked for, and keep what came of it.
bool is_plain_type_parameter(PyObject* object);
// Dates, decimal numbers, patterns and matches, plain type parameters: two calls may share one.
bool is_library_value(PyObject* object);

// A tuple, or a torch.Size.
bool is_tuple_or_size(PyObject* object);

}  // namespace cresset::frontend
