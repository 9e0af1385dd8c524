// Log of the Python functions which run while the autograd graph is executed for the capture (Session::run_subgraph).
#pragma once

#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

struct AutogradTraceRun {
  // A call by autograd: a hook, the backward of a custom function, or the unpacking of a saved tensor.
  struct Call {
    std::vector<PyRef> codes;    // of the entered functions, outermost first
    std::vector<PyRef> objects;  // objects of the program's call which the functions read: containers, cells, instances
  };
  // An attribute of an object of the program's call, set by a function.
  struct Change {
    PyRef owner, name, before;  // before: empty for a new attribute
    size_t call;
  };
  // A container or cell of the program's call which a function changed, with its earlier contents.
  struct Contents {
    PyRef object, before;  // before, for a cell: its value; empty for an empty cell
  };
  void remember(PyObject* object);  // called before the change
  // Undoes the changes when the capture of the autograd graph is abandoned, since autograd will run these functions
  // later.
  void undo();

  const CressetActivation* outside = nullptr;
  std::vector<Call> calls;
  std::vector<Change> changes;
  std::vector<Contents> contents;
  bool failed = false;  // because of the last call
};

}  // namespace cresset::frontend
