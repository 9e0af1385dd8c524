#pragma once

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// The interface to the object which captures segments.
class SegmentMaker {
 public:
  virtual ~SegmentMaker() = default;
  // The segment in progress ended; the operation in progress ran in CPython and returned `value` or raised `exception`.
  // Another segment may begin. Returns the replacement of the value, where a number becomes an input of the next
  // segment.
  virtual PyRef go_on(CressetActivation* activation, CressetPoint point, PyObject* value,
                      PyObject* exception = nullptr) = 0;
  // The capture had ended inside of C functions which call back; the last of them has returned.
  virtual void out_of_calls(CressetActivation* activation) = 0;
  // Forward differentiation begins. torch may require plain sizes inside, and no segment can end there. Returns whether
  // a segment with plain sizes begins here, because the current capture cannot begin again.
  virtual bool begins_plainly() = 0;
  // Whether the program has released the object, which only the capture keeps alive.
  virtual bool only_we_hold(PyObject* object) const = 0;
};

}  // namespace cresset::frontend
