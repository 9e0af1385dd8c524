#include "frontend/values/frame_image.h"

#include "frontend/cpython/py_objects.h"
#include "frontend/eval/bytecode.h"

namespace cresset::frontend {

PyObject* unset() {
  static PyObject* const type = PyObject_CallFunction((PyObject*)&PyType_Type, "s(){}", "unset");
  return type;
}

static PyRef slots_of(PyObject* const* values, int count) {
  PyRef out = checked(PyTuple_New(count));
  for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(out.get(), i, Py_NewRef(values[i] != nullptr ? values[i] : unset()));
  return out;
}

std::string Place::text() const {
  if (frames.empty()) return "?";
  auto* code = (PyCodeObject*)frames.back().code.get();
  const int line = PyCode_Addr2Line(code, frames.back().last * 2);
  return std::string(PyUnicode_AsUTF8(code->co_qualname)) + " (" + PyUnicode_AsUTF8(code->co_filename) + ":" +
         std::to_string(line) + ")";
}

bool Place::drops_value() const {
  if (frames.empty() || keeps_operand || frames.back().continuation != 0) return false;
  return cresset_eval_drops_value((PyCodeObject*)frames.back().code.get(), frames.back().last) != 0;
}

PyRef frame_contents(const CressetFrameImage& image) {
  const PyRef slots = slots_of(image.slots, image.slot_count), stack = slots_of(image.stack, image.stack_depth);
  return checked(PyTuple_Pack(5, image.function != nullptr ? image.function : unset(),
                              image.continuation_value != nullptr ? image.continuation_value : unset(), slots.get(),
                              stack.get(), handles_exception(image) ? image.handled : Py_None));
}

// A generator is resumed in its own frame, which receives the changes of the image.
void FrameImage::into_generator() {
  slots.assign(image.slots, image.slots + image.slot_count);
  stack.assign(image.stack, image.stack + image.stack_depth);
  image.slots = slots.data();
  image.stack = stack.data();
  CressetFrameImage own = image, before;
  if (cresset_eval_generator_image(image.generator, &before) != 0) throw PythonError{};
  const PyRef handled = PyRef::borrow(before.handled);
  own.handled = handled.get();
  if (cresset_eval_set_generator(image.generator, &own) < 0) throw PythonError{};
}

FrameImage::FrameImage(const Place::Frame& frame, PyObject* contents) {
  if (!PyTuple_Check(contents)) {  // its own frame is resumed, and holds its handled exceptions
    cresset_eval_generator_image(contents, &image);
    image.handled = nullptr;
    image.continuation = frame.continuation;
    image.continuation_operand = frame.continuation_operand;
    return;
  }
  const auto set = [](PyObject* object) { return object == unset() ? nullptr : object; };
  const auto all = [&](PyObject* tuple, std::vector<PyObject*>& out) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) out.push_back(set(PyTuple_GET_ITEM(tuple, i)));
  };
  all(PyTuple_GET_ITEM(contents, 2), slots);
  all(PyTuple_GET_ITEM(contents, 3), stack);
  image.function = set(PyTuple_GET_ITEM(contents, 0));
  image.code = (PyCodeObject*)frame.code.get();
  image.slot_count = static_cast<int>(slots.size());
  image.stack_depth = static_cast<int>(stack.size());
  image.slots = slots.data();
  image.stack = stack.data();
  image.last = frame.last;
  image.continuation = frame.continuation;
  image.continuation_operand = frame.continuation_operand;
  image.continuation_value = set(PyTuple_GET_ITEM(contents, 1));
  PyObject* handled = PyTuple_GET_ITEM(contents, 4);
  image.handled = handled != Py_None ? handled : nullptr;
}

}  // namespace cresset::frontend
