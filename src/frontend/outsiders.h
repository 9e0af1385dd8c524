// Generators that were there before the call: among its arguments, or in state. What they hold is their own business:
// pieces hand them on, of whatever code they are, and taking an item of one (next, a loop, send) ends the piece and is
// done natively. Those that the call makes itself consist of their frames (anatomy.h).
#pragma once

#include <Python.h>

namespace cresset::frontend {

// From then on, and for as long as the generator lives, it is known for one wherever frames of the function hold it.
void note_outsider(PyObject* generator);
extern bool any_outsiders;  // of any function in the process
bool is_known_outsider(PyObject* object);
inline bool is_outsider(PyObject* object) { return any_outsiders && is_known_outsider(object); }

}  // namespace cresset::frontend
