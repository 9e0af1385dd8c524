// Which objects the captured call has created, by the generation lists of CPython's garbage collector. The collector is
// paused meanwhile (gc_pause.h). Each object is visited once, independent of the number of queries.
#pragma once

#include <utility>

#include "base/address_table.h"
#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// Used under the GIL, by the capturing thread; queries go to the innermost capture.
class NewObjects {
 public:
  // from_empty: the young generation is empty now.
  explicit NewObjects(bool from_empty);
  ~NewObjects() { innermost_ = around_; }
  NewObjects(const NewObjects&) = delete;
  static NewObjects* innermost() { return innermost_; }

  // Whether the call created the object, which must be tracked by the collector. An address which held a young object
  // stays young until the next collection, because it is reused only for newer objects.
  bool holds(PyObject* object);
  void let_go() { newest_ = {}; }

 private:
  void look();

  static thread_local NewObjects* innermost_;
  AddressSet<PyObject*> seen_;
  PyRef newest_;  // newer objects are not in `seen_` yet
  NewObjects* const around_;
};

}  // namespace cresset::frontend
