// The effects of C functions on a captured program: the table behind every call which the evaluator does not enter.
#pragma once

#include <string>

#include "frontend/cpython/containers.h"
#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

enum class CEffect : uint8_t {
  Pure,            // reads no mutable state except tensors; has no side effect
  Reads,           // reads the contents of its container arguments
  Writes,          // mutates its first argument, a container; the same call repeats the mutation
  ReadsAndWrites,  // a mutation whose result or effect depends on the previous contents
  SetsAttribute,   // setattr(owner, name, value) and similar functions
  GetsAttribute,   // getattr, hasattr
  Untraceable,     // untraceable: uses files, clocks, random state, other libraries
};

struct CCall {
  CEffect effect = CEffect::Pure;
  PyObject* self = nullptr;  // borrowed: the container or object which the call reads or writes; may be null
  const char* name = "";
  size_t first = 0;           // position of the first argument after self
  bool by_arguments = false;  // a module function, whose effect depends on its arguments
};

// `args` follows the vectorcall convention.
CCall classify_call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs);

// "module.name" for messages.
std::string describe_callable(PyObject* callable);

}  // namespace cresset::frontend
