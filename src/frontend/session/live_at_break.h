// Objects which the program may still change after the end of a segment.
#pragma once

#include <Python.h>

namespace cresset::frontend {

class ReconstructionBuilder;
class Session;

// For a container, instance or cell which Python functions of the autograd graph read: whether code after the segment
// may change it before the backward pass. recipes: the reconstruction at the end of the segment.
bool lives_on(PyObject* object, const ReconstructionBuilder& builder, const Session& session, bool at_break);

}  // namespace cresset::frontend
