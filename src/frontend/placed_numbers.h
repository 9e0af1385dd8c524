// Symbolic numbers in the containers of the caller, in the place of plain ones, for as long as a piece is captured.
//
// A container that the program may write to must stay that very container: it cannot be given a copy with symbols in
// it. So the symbol is put where the number was, and taken back when the piece ends, unless the program wrote there.
#pragma once

#include <vector>

#include "frontend/py_ref.h"

namespace cresset::frontend {

// key: a dict's key, a list's or a deque's index, the name of the args of a partial function or an exception, a class's
// own name, a name in a threading.local, the descriptor of a slot or of a tensor's .grad; empty: a cell. In .grad there
// are tensors alone.
struct PlaceOfItem {
  PyRef container, key;
};

class PlacedNumbers {
 public:
  PlacedNumbers() = default;
  PlacedNumbers(const PlacedNumbers&) = delete;
  ~PlacedNumbers() { take_back(); }
  // value: a symbol, or a tuple with symbols in it. Throws PythonError.
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

// What the place holds: borrowed, or nullptr.
PyObject* held_by(const PlaceOfItem& place);
bool is_thread_local(PyObject* object);  // of exactly that type
// Whether a descriptor leads to such a place.
bool is_place(PyObject* descriptor);

}  // namespace cresset::frontend
