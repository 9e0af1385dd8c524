// Tensors of classes with __torch_dispatch__ that have no memory of their own but wrap others
// (torch.Tensor._make_wrapper_subclass). Operators on them are the program's, in Python: what those do with the tensors
// inside is captured. The wrapper itself is an object with attributes, and with sizes, which are symbolic in a capture
// as those of other tensors are (bridge::Guest).
#pragma once

#include "frontend/anatomy.h"

namespace cresset::frontend {

bool is_wrapper(PyObject* object);

// Anatomy::Kind::Wrapper.
Anatomy anatomy_of_wrapper(PyObject* wrapper);
PyRef make_wrapper(const Anatomy& anatomy);
constexpr size_t kWrapperNumbers = 3;  // the first parts: sizes, strides, storage offset

// Inside of a capture: until it is closed, the wrapper has these, tuples of ints and symbolic ones. strides: nullptr
// for those of a contiguous tensor.
void give_sizes(PyObject* wrapper, PyObject* sizes, PyObject* strides);

// For the module: _make_wrapper(cls, size, {name: argument}): TensorBase._make_wrapper_subclass, of symbolic sizes too
// while something is captured.
PyObject* make_wrapper_of_call(PyObject* module, PyObject* args);

}  // namespace cresset::frontend
