// The user's marks on the dimensions of a tensor: cresset.mark_dynamic and related functions, and torch's own
// (torch._dynamo.mark_dynamic, maybe_mark_dynamic, mark_static, mark_unbacked), which are attributes of the tensor.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bridge/capture/captured.h"

namespace cresset::frontend {

// The marked dimensions for each kind of mark, as bits. Dimensions from 64 on are left out.
struct MarkedDims {
  uint64_t dynamic = 0, maybe = 0, unbacked = 0, fixed = 0;
  bool any() const { return (dynamic | maybe | unbacked | fixed) != 0; }
  // Whether a program for tensors with these marks serves a tensor with the marks `now`. torch's rule: fewer marks are
  // served, and a new mark asks for a new program.
  bool serve(const MarkedDims& now) const {
    return ((now.dynamic & ~dynamic) | (now.maybe & ~maybe) | (now.unbacked & ~unbacked) | (now.fixed & ~fixed)) == 0;
  }
};

// The marks of the tensors of a cache entry, by their positions among the tensors of a call. Most entries have none.
using MarksOfInputs = std::vector<std::pair<uint32_t, MarkedDims>>;

// Whether any tensor of the process may have a mark: cresset's functions were called, or torch's compiler is imported.
bool may_have_marks();
void note_marks();  // cresset's functions were called

MarkedDims marked_dims(PyObject* tensor);
// The marks of a tensor, for a capture: one for each dimension, or empty without marks. `python` is the tensor's
// object. Throws PythonError (ConstraintError) for a size outside of the range in its mark.
std::vector<bridge::DimMark> dim_marks(PyObject* python, const at::Tensor& tensor, const std::string& name);

}  // namespace cresset::frontend
