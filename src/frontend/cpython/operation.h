// Operations of Python programs as data.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// An operation of the program, with its operands in stack order.
struct Operation {
  enum class Kind : uint8_t { Call, Binary, Unary, Compare, Subscript, Contains, Format, Truth };
  Kind kind = Kind::Call;
  int operation = 0;  // NB_*, Py_LT, ...; '+', '-', '~'; the conversion of a format
  Py_ssize_t positional = 0;
  PyRef kwnames;
  std::vector<PyRef> operands;  // Call: the callable first
};
// Returns a new reference, or nullptr with an exception set.
PyRef perform(const Operation& operation);

}  // namespace cresset::frontend
