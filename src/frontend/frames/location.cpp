#include "frontend/frames/location.h"

#include <Python.h>

#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {
namespace {

std::string describe(const CressetStackFrame& at, int line) {
  const char* file = PyUnicode_AsUTF8(at.code->co_filename);
  const char* name = PyUnicode_AsUTF8(at.code->co_qualname);
  return std::string(file != nullptr ? file : "?") + ":" + std::to_string(line) + " in " +
         (name != nullptr ? name : "?");
}

}  // namespace

// Most programs execute their lines in order. The search continues from the last read position of the line table, if
// this CPython version has a function for it.
int LocationTracker::line_of(const CressetStackFrame& at) {
#if PY_VERSION_HEX < 0x030E0000
  if (at.instruction < 0) return at.code->co_firstlineno;
  Lines& lines = lines_[at.code];
  const char* const table = PyBytes_AS_STRING(at.code->co_linetable);
  const Py_ssize_t size = PyBytes_GET_SIZE(at.code->co_linetable);
  if (lines.table != table || lines.size != size || lines.first != at.code->co_firstlineno) {
    lines = {table, size, at.code->co_firstlineno, {}};
    lines.read.opaque.lo_next = (const uint8_t*)table;
    lines.read.opaque.limit = lines.read.opaque.lo_next + size;
    lines.read.opaque.computed_line = at.code->co_firstlineno;
    lines.read.ar_start = -1;
    lines.read.ar_line = -1;
  }
  return _PyCode_CheckLineNumber(at.instruction, &lines.read);
#else
  return PyCode_Addr2Line(at.code, at.instruction);
#endif
}

// torch's bindings release the GIL before they dispatch. It is taken only for a code position that is met for the first
// time.
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
  return capture.graph().add_location(describe(at, line_of(at)));
}

}  // namespace cresset::frontend
