// Side effects of a call on objects which existed before the call.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// A write to an object which existed before the call.
struct LoggedWrite {
  enum class Kind : uint8_t { Attribute, Item, Cell, InPlace, Method } kind;
  PyRef owner, key;           // Method: key is the C method (a descriptor of the owner's type)
  std::vector<PyRef> values;  // empty for Attribute, Item, Cell: deleted
  PyRef kwnames;              // Method
  int operation = 0;          // InPlace: NB_INPLACE_*
  bool had_key = false;       // Item: the dictionary had the key before
};

}  // namespace cresset::frontend
