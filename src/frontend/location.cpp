#include "frontend/location.h"

#include <Python.h>
#include <frameobject.h>

#include <cstring>

#include "frontend/py_ref.h"

namespace cresset::frontend {
namespace {

// Frames that are not the user's: torch's own, and what stands in for Python's builtins while capturing.
bool in_library(PyObject* filename) {
  const char* name = PyUnicode_AsUTF8(filename);
  if (name == nullptr) return PyErr_Clear(), false;
  for (const char* part : {"/torch/", "\\torch\\", "/cresset/_capture_patches.py"})
    if (std::strstr(name, part) != nullptr) return true;
  return false;
}

std::string describe(PyFrameObject* frame, PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const char* name = PyUnicode_AsUTF8(code->co_qualname);
  return std::string(file != nullptr ? file : "?") + ":" + std::to_string(PyFrame_GetLineNumber(frame)) + " in " +
         (name != nullptr ? name : "?");
}

class GilHeld {
 public:
  GilHeld() : state_(PyGILState_Ensure()) {}
  ~GilHeld() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace

// torch's bindings give the GIL up before they dispatch.
void LocationTracker::update(bridge::Capture& capture) {
  const GilHeld gil;
  PyRef frame = PyRef::borrow((PyObject*)PyEval_GetFrame());
  while (frame) {
    auto* f = (PyFrameObject*)frame.get();
    PyCodeObject* code = PyFrame_GetCode(f);
    Py_DECREF(code);  // the frame keeps it
    auto [library, fresh_code] = is_library_.try_emplace(code, false);
    if (fresh_code) library->second = in_library(code->co_filename);
    if (!library->second) {
      auto [known, fresh] = known_.try_emplace(Key{code, PyFrame_GetLasti(f)}, 0);
      if (fresh) known->second = capture.graph().add_location(describe(f, code));
      capture.graph().current_location = known->second;
      return;
    }
    frame = PyRef::steal((PyObject*)PyFrame_GetBack(f));
  }
}

}  // namespace cresset::frontend
