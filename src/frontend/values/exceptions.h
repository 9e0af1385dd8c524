// Object layouts of exceptions and tracebacks (object_layout.h). A traceback is rebuilt from empty frames: it shows
// code positions, without local variables.
#pragma once

#include <functional>

#include "frontend/values/object_layout_parts.h"

namespace cresset::frontend {

ObjectLayout of_exception(PyObject* object);
ObjectLayout of_traceback(PyObject* object);
size_t first_attribute(const ObjectLayout& layout);  // among its parts
PlaceOfItem place_in_exception(PyObject* exception, const ObjectLayout& layout,
                               size_t i);  // in its args, or an attribute
PyRef make_exception(const ObjectLayout& layout);
void fill_exception(PyObject* made, const ObjectLayout& layout);
PyRef make_traceback(const ObjectLayout& layout);

// Remembers, during its lifetime, the exception which was handled when this thread's call began. Exceptions raised by
// the call may have it as their context, which the layout replaces by a placeholder. Without an `OuterHandled`, the
// exception handled now is used.
class OuterHandled {
 public:
  OuterHandled();
  ~OuterHandled();
  OuterHandled(const OuterHandled&) = delete;

 private:
  PyRef handled_;
  PyObject* before_;
};

// Visits the objects which the frames of a traceback hold, directly or in containers.
void visit_frames_of(PyObject* traceback, const std::function<void(PyObject*)>& visit);

// Whether a frame which is evaluated now may catch an exception of its current operation: by an `except`, or by a
// `finally` which does more than clean up.
bool may_be_caught();

}  // namespace cresset::frontend
