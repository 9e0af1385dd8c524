#include "frontend/location.h"

#include <Python.h>

#include <cstring>

namespace cresset::frontend {
namespace {

// Frames that are not the user's: torch's own, and what stands in for Python's builtins while capturing.
bool in_library(PyObject* filename) {
  const char* name = PyUnicode_AsUTF8(filename);
  if (name == nullptr) return PyErr_Clear(), false;
  for (const char* part : {"/torch/", "\\torch\\", "/cresset/_capture_patches.py", "/cresset/_control.py",
                           "/cresset/_control_flow.py", "/cresset/_places.py", "/cresset/_equivalents.py"})
    if (std::strstr(name, part) != nullptr) return true;
  return false;
}

std::string describe(const CressetStackFrame& at) {
  const char* file = PyUnicode_AsUTF8(at.code->co_filename);
  const char* name = PyUnicode_AsUTF8(at.code->co_qualname);
  return std::string(file != nullptr ? file : "?") + ":" + std::to_string(PyCode_Addr2Line(at.code, at.instruction)) +
         " in " + (name != nullptr ? name : "?");
}

class GilHeld {
 public:
  GilHeld() : state_(PyGILState_Ensure()) {}
  ~GilHeld() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace

// torch's bindings give the GIL up before they dispatch; it is taken back for what is met for the first time only.
void LocationTracker::update(bridge::Capture& capture) {
  CressetStackFrame at;
  for (int found = cresset_stack_top(&at); found != 0; found = cresset_stack_next(&at)) {
    if (is_library(at.code)) continue;
    auto [known, fresh] = known_.try_emplace(Key{at.code, at.instruction}, 0);
    if (fresh) known->second = add(capture, at);
    capture.graph().current_location = known->second;
    return;
  }
}

bool LocationTracker::is_library(PyCodeObject* code) {
  auto [library, fresh] = is_library_.try_emplace(code, false);
  if (fresh) {
    const GilHeld gil;
    library->second = in_library(code->co_filename);
  }
  return library->second;
}

uint32_t LocationTracker::add(bridge::Capture& capture, const CressetStackFrame& at) {
  const GilHeld gil;
  return capture.graph().add_location(describe(at));
}

}  // namespace cresset::frontend
