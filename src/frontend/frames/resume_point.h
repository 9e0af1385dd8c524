// A resume point (`ResumePoint`) between two graph segments of a call: the position of its frames, and the operation
// which needed data.
//
// A segment ends where Python needs a value which depends on tensor data. The program of the segment runs, CPython
// performs the operation, and a new segment begins with the contents of the frames. A later call repeats these steps
// without evaluating Python frames. The contents of the frames are reconstructed, and the next segment is looked up
// among the resume entries of this place. Frames are rebuilt and evaluated only when no entry fits.
#pragma once

#include <string>
#include <vector>

#include "frontend/cpython/operation.h"
#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"
#include "frontend/values/frame_image.h"
#include "frontend/values/object_layout.h"

namespace cresset::frontend {

// Frames as a place and a tuple: per frame the result of frame_contents(), or the generator which owns the frame.
struct Frames {
  Place place;
  PyRef contents;
  RunningGenerators running;
};
// The opcode of the instruction in progress, as the compiler emitted it.
int opcode_in_progress(const CressetActivation& activation);

// The frames of the thread's activations, from `innermost` outwards, without the top `dropped` values of the innermost
// stack. Empty contents when the frames cannot be rebuilt; `why` receives the reason.
Frames frames_of(CressetActivation* innermost, CressetPoint point, int dropped, std::string* why);
// The frames in their state after the operation in progress, with the result not yet on the stack.
Frames frames_after(CressetActivation* activation, bool is_truth, std::string* why);
// Performs the operation with the frames below it, for code which inspects the stack. Changes to frame slots by this
// code are in `contents` afterwards.
PyRef perform_at(const Place& place, PyRef& contents, const Operation& operation);
// The exception handled in the frames; None when there is none. Borrowed.
PyObject* handled_in(PyObject* contents);

// Resumes the frames with `value` on the innermost stack, or raising `exception`, and runs to the end of the outermost
// frame. natively: in CPython's evaluator, else in cresset's, between begin and end. Returns nullptr with an exception
// set. A caller which keeps the contents keeps alive objects which the program may release.
PyRef resume(const Place& place, PyRef contents, PyObject* value, PyObject* exception, bool natively);

// Passes every value in live frames of the thread to `replace` and stores the result in its place.
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
    if (image.handled != nullptr) replace(image.handled);  // changed in place
  }
}

// Stores the symbols of the new segment in the live frames. `given`: `contents`, with symbols.
void put_into_frames(CressetActivation* innermost, PyObject* given, PyObject* contents);

}  // namespace cresset::frontend
