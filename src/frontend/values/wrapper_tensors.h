// Wrapper tensors: instances of classes with __torch_dispatch__ which have no memory of their own and wrap other
// tensors (torch.Tensor._make_wrapper_subclass). Operators on them run the program's Python code, and the operators
// inside on the wrapped tensors are captured. The wrapper itself is an object with attributes and sizes. During capture
// its sizes are symbolic, like the sizes of other tensors (bridge::Guest).
#pragma once

#include "frontend/values/object_layout_parts.h"

namespace cresset::frontend {

bool is_wrapper(PyObject* object);

// Anatomy::Kind::Wrapper.
ObjectLayout layout_of_wrapper(PyObject* wrapper);
PyRef make_wrapper(const ObjectLayout& layout);
constexpr size_t kWrapperNumbers = 3;  // the first parts: sizes, strides, storage offset

// During capture: sets the sizes and strides of the wrapper until the capture closes, as tuples of plain and symbolic
// ints. strides: nullptr for contiguous strides.
void give_sizes(PyObject* wrapper, PyObject* sizes, PyObject* strides);

// Module function _make_wrapper(cls, size, {name: argument}): TensorBase._make_wrapper_subclass, which also accepts
// symbolic sizes during capture.
PyObject* make_wrapper_of_call(PyObject* module, PyObject* args);

}  // namespace cresset::frontend
