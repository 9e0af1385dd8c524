// Object layouts of exceptions and tracebacks (object_layout.h). A traceback is rebuilt from empty frames: it shows
// code positions, without local variables.
#pragma once

#include <functional>

#include "frontend/values/object_layout.h"

namespace cresset::frontend {

Anatomy of_exception(PyObject* object);
Anatomy of_traceback(PyObject* object);
size_t first_attribute(const Anatomy& anatomy);                                         // among its parts
PlaceOfItem place_in_exception(PyObject* exception, const Anatomy& anatomy, size_t i);  // in its args, or an attribute
PyRef make_exception(const Anatomy& anatomy);
void fill_exception(PyObject* made, const Anatomy& anatomy);
PyRef make_traceback(const Anatomy& anatomy);

// Visits the objects which the frames of a traceback hold, directly or in containers.
void visit_frames_of(PyObject* traceback, const std::function<void(PyObject*)>& visit);

// Whether a frame which is evaluated now may catch an exception of its current operation: by an `except`, or by a
// `finally` which does more than clean up.
bool may_be_caught();

}  // namespace cresset::frontend
