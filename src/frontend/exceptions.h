// Exceptions and tracebacks, taken apart and put together (anatomy.h). A traceback is put together from frames that
// hold nothing: it says where, not with which locals.
#pragma once

#include <functional>

#include "frontend/anatomy.h"

namespace cresset::frontend {

Anatomy of_exception(PyObject* object);
Anatomy of_traceback(PyObject* object);
size_t first_attribute(const Anatomy& anatomy);                                         // among its parts
PlaceOfItem place_in_exception(PyObject* exception, const Anatomy& anatomy, size_t i);  // of its args, or an attribute
PyRef make_exception(const Anatomy& anatomy);
void fill_exception(PyObject* made, const Anatomy& anatomy);
PyRef make_traceback(const Anatomy& anatomy);

// Objects that are held by the frames of a traceback, directly or in containers.
void visit_frames_of(PyObject* traceback, const std::function<void(PyObject*)>& visit);

// Whether a frame that is evaluated now may keep an exception of what it does: by an `except`, or a `finally` that does
// not only clean up.
bool may_be_caught();

}  // namespace cresset::frontend
