// External generators, which existed before the call: among its arguments or in state. Their contents are not
// inspected. Segments pass them on, independent of their code. Taking an item (next, a loop, send) causes a graph break
// and runs in CPython. Generators which the call creates are decomposed into their frames (object_layout.h).
#pragma once

#include <Python.h>

namespace cresset::frontend {

// Marks the generator as external for its whole lifetime, wherever frames of the function hold it.
void note_external_generator(PyObject* generator);
extern bool any_external_generators;  // of any function in the process
bool is_known_external_generator(PyObject* object);
inline bool is_external_generator(PyObject* object) {
  return any_external_generators && is_known_external_generator(object);
}

}  // namespace cresset::frontend
