// What functions of Python's do while autograd's record is run for the capture (Session::run_part).
#pragma once

#include <vector>

#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

struct RecordRun {
  // A call by autograd: of a hook, of a custom function's backward, of what unpacks a saved tensor.
  struct Call {
    std::vector<PyRef> codes;    // of the functions that were entered, the outermost first
    std::vector<PyRef> objects;  // of the program's call, that they have looked at: containers, cells, instances
  };
  // An attribute that one of them set, of an object of the program's call.
  struct Change {
    PyRef owner, name, before;  // before: empty when there was none
    size_t call;
  };
  // A container or a cell of the program's call that one of them has changed, and what it held before.
  struct Contents {
    PyRef object, before;  // before of a cell: what was in it; empty when nothing was
  };
  void remember(PyObject* object);  // before it is changed
  // Where the record is given up: what autograd is to do later has not happened yet.
  void undo();

  const CressetActivation* outside = nullptr;
  std::vector<Call> calls;
  std::vector<Change> changes;
  std::vector<Contents> contents;
  bool failed = false;  // by what the last of the calls does
};

}  // namespace cresset::frontend
