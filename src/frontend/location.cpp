#include "frontend/location.h"

#include <Python.h>

#include "frontend/code_origin.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {
namespace {

std::string describe(const CressetStackFrame& at) {
  const char* file = PyUnicode_AsUTF8(at.code->co_filename);
  const char* name = PyUnicode_AsUTF8(at.code->co_qualname);
  return std::string(file != nullptr ? file : "?") + ":" + std::to_string(PyCode_Addr2Line(at.code, at.instruction)) +
         " in " + (name != nullptr ? name : "?");
}

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
    library->second = !path_in_torch(code->co_filename).empty() || !path_in_cresset(code->co_filename).empty();
  }
  return library->second;
}

uint32_t LocationTracker::add(bridge::Capture& capture, const CressetStackFrame& at) {
  const GilHeld gil;
  return capture.graph().add_location(describe(at));
}

}  // namespace cresset::frontend
