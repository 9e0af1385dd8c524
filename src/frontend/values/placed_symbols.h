// Symbolic numbers which temporarily replace plain numbers in the caller's containers, while a segment is captured.
//
// A container which the program may write must keep its identity, so the program cannot receive a copy with symbols.
// The symbol is stored in the number's place, and the number is restored at the end of the segment unless the program
// overwrote it.
#pragma once

#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/values/object_layout_parts.h"

namespace cresset::frontend {

class PlacedNumbers {
 public:
  PlacedNumbers() = default;
  PlacedNumbers(const PlacedNumbers&) = delete;
  ~PlacedNumbers() { take_back(); }
  // value: a symbol, or a tuple which contains symbols. Throws PythonError.
  void put(PlaceOfItem place, PyRef value);
  void take_back();  // keeps a pending exception
  bool any() const { return !placed_.empty(); }

 private:
  struct Placed {
    PlaceOfItem place;
    PyRef before, now;
  };
  std::vector<Placed> placed_;
};

// The value in the place: borrowed, or nullptr.
PyObject* held_by(const PlaceOfItem& place);
bool is_thread_local(PyObject* object);  // of exactly this type
// Whether a descriptor leads to a place of this kind.
bool is_place(PyObject* descriptor);

}  // namespace cresset::frontend
