// Which objects the call that is captured has made, by the lists of CPython's garbage collector, which rests meanwhile
// (no_collection.h): each object is looked at once, however often it is asked for.
#pragma once

#include <utility>

#include "base/address_table.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

// Under the GIL, by the thread that captures; the innermost capture's answers.
class Young {
 public:
  // from_empty: there is nothing young yet.
  explicit Young(bool from_empty);
  ~Young() { innermost_ = around_; }
  Young(const Young&) = delete;
  static Young* innermost() { return innermost_; }

  // Whether the call made it, of what is collected. What an address once held that was young is so for as long as
  // nothing is collected: the address is used again for what is made later.
  bool holds(PyObject* object);
  void let_go() { newest_ = {}; }

 private:
  void look();

  static thread_local Young* innermost_;
  AddressSet<PyObject*> seen_;
  PyRef newest_;  // what was made after it is not in `seen_` yet
  Young* const around_;
};

}  // namespace cresset::frontend
