// A point between two pieces of a call: where its frames stand, and the operation that needed data.
//
// A piece ends where Python asks for what only data can tell. Its program runs, the operation is done natively, and a
// new piece begins with what the frames hold then. A later call does the same without evaluating anything: the frames'
// contents are made by recipe, and what follows is looked up among the pieces that begin at this place. Only when none
// fits are frames rebuilt, to be evaluated from there.
#pragma once

#include <string>
#include <vector>

#include "frontend/anatomy.h"
#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

// An operation of the program. Operands: as the stack has them.
struct Operation {
  enum class Kind : uint8_t { Call, Binary, Unary, Compare, Subscript, Contains, Format, Truth };
  Kind kind = Kind::Call;
  int operation = 0;  // NB_*, Py_LT, ...; '+', '-', '~'; the conversion of a format
  Py_ssize_t positional = 0;
  PyRef kwnames;
  std::vector<PyRef> operands;  // Call: the callable first
};
// New reference, or nullptr with an exception set.
PyRef perform(const Operation& operation);

// Where frames stand: code and instruction of each, outermost first.
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
  bool keeps_operand = false;  // a branch of `and` or `or`, whose operand is still on the stack, under the outcome
  bool operator==(const Place& other) const = default;
  std::string text() const;  // "function (file.py:12)" of the innermost
  bool drops_value() const;  // that the operation gives
};

// Frames as a place and a tuple: for each frame what frame_contents() says, or the generator whose frame it is.
struct Frames {
  Place place;
  PyRef contents;
  RunningGenerators running;
};
inline bool handles_exception(const CressetFrameImage& image) {
  return image.handled != nullptr && image.handled != Py_None;
}
// What one frame holds: (function, value that its continuation keeps, slots, stack, exception that is handled).
PyRef frame_contents(const CressetFrameImage& image);
// The reverse; borrows from `contents`, which may be a suspended generator.
struct FrameImage {
  FrameImage(const Place::Frame& frame, PyObject* contents);
  FrameImage(const FrameImage&) = delete;
  FrameImage(FrameImage&&) = default;  // vectors keep their memory
  void into_generator();
  std::vector<PyObject*> slots, stack;
  CressetFrameImage image{};
};

// The opcode of the instruction in progress, as the compiler wrote it.
int opcode_in_progress(const CressetActivation& activation);

// Of the thread's activations, from `innermost` outwards, less `dropped` values on top of the innermost stack. Empty
// contents when they cannot be rebuilt, and why.
Frames frames_of(CressetActivation* innermost, CressetPoint point, int dropped, std::string* why);
// The frames as they stand once the operation in progress is done, its result not yet on the stack.
Frames frames_after(CressetActivation* activation, bool is_truth, std::string* why);
// The operation, with the frames below it for code that looks at them. What that puts into their slots is in `contents`
// afterwards.
PyRef perform_at(const Place& place, PyRef& contents, const Operation& operation);
// The exception that is handled there; None when there is none. Borrowed.
PyObject* handled_in(PyObject* contents);

// Goes on from there with `value` on the innermost stack, or raising `exception`; to the end of the outermost frame.
// natively: in CPython's evaluator, else in ours, between begin and end. nullptr with an exception set. Whoever else
// keeps the contents keeps alive what the program may drop.
PyRef resume(const Place& place, PyRef contents, PyObject* value, PyObject* exception, bool natively);

// Every value that live frames of the thread hold is given to `replace`, whose result takes its place.
template <class F>
void replace_values(CressetActivation* innermost, F&& replace) {
  for (CressetActivation* a = innermost; a != nullptr; a = a->caller) {
    CressetFrameImage image;
    cresset_eval_image(a, CRESSET_BEFORE, &image);
    const auto one = [&](PyObject** slot) {
      if (*slot == nullptr) return;
      PyRef now = replace(*slot);
      if (now.get() == *slot) return;
      PyObject* old = std::exchange(*slot, now.release());
      Py_DECREF(old);
    };
    for (int i = 0; i < image.slot_count; ++i) one(&image.slots[i]);
    for (int i = 0; i < image.stack_depth; ++i) one(&image.stack[i]);
    if (image.handled != nullptr) replace(image.handled);  // which is changed where it lies
  }
}

// Live frames go on with the symbols that take part in the new piece. `given`: `contents`, with symbols.
void put_into_frames(CressetActivation* innermost, PyObject* given, PyObject* contents);

}  // namespace cresset::frontend
