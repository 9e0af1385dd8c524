// The position and the contents of frames.
#pragma once

#include <string>
#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// The position of frames: code and instruction of each frame, outermost first.
struct Place {
  struct Frame {
    PyRef code;
    int last = 0, continuation_operand = 0;
    uint8_t continuation = 0;
    bool operator==(const Frame& other) const {
      return code.get() == other.code.get() && last == other.last && continuation == other.continuation &&
             continuation_operand == other.continuation_operand;
    }
  };
  std::vector<Frame> frames;
  bool keeps_operand = false;  // a branch of `and` or `or`, whose operand remains on the stack below the outcome
  bool operator==(const Place& other) const = default;
  std::string text() const;  // "function (file.py:12)" of the innermost frame
  bool drops_value() const;  // whether the frame drops the result of the operation
};

// A placeholder for an empty slot. It is a class, so reconstructions and guards treat it by identity.
PyObject* unset();
inline bool handles_exception(const CressetFrameImage& image) {
  return image.handled != nullptr && image.handled != Py_None;
}
// The contents of a single frame: (function, value kept by its continuation, slots, stack, handled exception).
PyRef frame_contents(const CressetFrameImage& image);
// The inverse of frame_contents(); borrows from `contents`, which may be a suspended generator.
struct FrameImage {
  FrameImage(const Place::Frame& frame, PyObject* contents);
  FrameImage(const FrameImage&) = delete;
  FrameImage(FrameImage&&) = default;  // moved vectors keep their memory
  void into_generator();
  std::vector<PyObject*> slots, stack;
  CressetFrameImage image{};
};

}  // namespace cresset::frontend
