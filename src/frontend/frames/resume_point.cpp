#include "frontend/frames/resume_point.h"

#include <algorithm>

#include "frontend/cpython/observed_locals.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/eval/bytecode.h"
#include "frontend/eval/synthetic_stack.h"
#include "frontend/values/symbolic_strings.h"

namespace cresset::frontend {
namespace {

// Whether the program cannot observe the object's death: values, tensors, and containers of these.
bool goes_unnoticed(PyObject* object, int depth = 0) {
  if (object == Py_None || PyLong_Check(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
      is_exact_tensor(object) || is_symbolic_number(object) || is_symbolic_string(object))
    return true;
  if (depth > 3 || (!PyTuple_Check(object) && !PyList_CheckExact(object))) return false;
  PyObject** items = PySequence_Fast_ITEMS(object);
  return std::all_of(items, items + PySequence_Fast_GET_SIZE(object),
                     [&](PyObject* item) { return goes_unnoticed(item, depth + 1); });
}

// Clears locals which are no longer read, both in the frame and in its kept contents. Otherwise they would be outputs
// of the segment and guards of the next segment.
void drop_dead_slots(const CressetFrameImage& image) {
  std::vector<uint8_t> live(static_cast<size_t>(image.slot_count));
  if (cresset_eval_live_slots(image.code, image.last, live.data()) < 0) return;
  const auto is_dropped = [&](int i) {
    return image.slots[i] != nullptr && !live[static_cast<size_t>(i)] && goes_unnoticed(image.slots[i]);
  };
  int first = 0;
  while (first < image.slot_count && !is_dropped(first)) ++first;
  if (first == image.slot_count || may_look_at_locals(image)) return;
  for (int i = first; i < image.slot_count; ++i) {
    PyObject*& slot = image.slots[i];
    if (!is_dropped(i)) continue;
    const PyRef dropped = PyRef::steal(std::exchange(slot, nullptr));
  }
}

// Why a frame cannot be rebuilt; nullptr when it can.
const char* obstacle(const CressetActivation& activation, const CressetFrameImage& image) {
  if (activation.is_generator && PyAsyncGen_CheckExact(activation.generator)) return "inside an asynchronous generator";
  if (image.names != nullptr) return "inside a class body";
  return nullptr;
}

}  // namespace

namespace {

// Python code may inspect its calling frames, and warnings do. C code without Python arguments calls no Python code.
bool may_look_at_frames(const Operation& op) {
  if (op.kind == Operation::Kind::Call && is_warn(op.operands[0].get())) return true;
  return std::any_of(op.operands.begin(), op.operands.end(), [](const PyRef& operand) {
    PyObject* const object = operand.get();
    if (PyFunction_Check(object) || PyMethod_Check(object)) return true;
    const auto* const type = PyType_Check(object) ? (PyTypeObject*)object : Py_TYPE(object);
    return is_heap_type(type) && !is_tensor(object) && !PyModule_Check(object);
  });
}

std::vector<FrameImage> frames_at(const Place& place, PyObject* contents) {
  std::vector<FrameImage> frames;
  for (size_t i = 0; i < place.frames.size(); ++i)
    frames.emplace_back(place.frames[i], PyTuple_GET_ITEM(contents, static_cast<Py_ssize_t>(i)));
  return frames;
}

std::vector<CressetFrameImage> images_of(const std::vector<FrameImage>& frames) {
  std::vector<CressetFrameImage> images;
  for (const FrameImage& frame : frames) images.push_back(frame.image);
  return images;
}

PyRef with_item(PyObject* tuple, Py_ssize_t at, PyRef item) {
  std::vector<PyRef> items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) items.push_back(PyRef::borrow(PyTuple_GET_ITEM(tuple, i)));
  items[static_cast<size_t>(at)] = std::move(item);
  return tuple_of(items);
}

struct SyntheticStack {
  const Operation& operation;
  PyRef& contents;
};

PyObject* perform_on_synthetic_stack(void* context) {
  return perform(static_cast<SyntheticStack*>(context)->operation).release();
}

void change_slot(void* context, int frame, int slot, PyObject* value) {
  constexpr Py_ssize_t kSlots = 2;
  PyRef& contents = static_cast<SyntheticStack*>(context)->contents;
  PyObject* const own = PyTuple_GET_ITEM(contents.get(), frame);
  if (!PyTuple_Check(own)) {  // a generator
    const PyRef old = PyRef::steal(std::exchange(*cresset_eval_generator_slot(own, slot), Py_XNewRef(value)));
    return;
  }
  PyRef slots = with_item(PyTuple_GET_ITEM(own, kSlots), slot, PyRef::borrow(value != nullptr ? value : unset()));
  contents = with_item(contents.get(), frame, with_item(own, kSlots, std::move(slots)));
}

}  // namespace

PyRef perform_at(const Place& place, PyRef& contents, const Operation& op) {
  if (!may_look_at_frames(op)) return perform(op);
  const PyRef before = contents;  // the images borrow from it
  const std::vector<FrameImage> frames = frames_at(place, before.get());
  const std::vector<CressetFrameImage> images = images_of(frames);
  SyntheticStack synthetic_stack{op, contents};
  return PyRef::steal(cresset_eval_perform_in(images.data(), static_cast<int>(images.size()),
                                              &perform_on_synthetic_stack, &change_slot, &synthetic_stack));
}

int opcode_in_progress(const CressetActivation& activation) {
  const PyRef code = checked(PyCode_GetCode(activation.code));
  return static_cast<unsigned char>(PyBytes_AS_STRING(code.get())[2 * activation.instruction]);
}

Frames frames_of(CressetActivation* innermost, CressetPoint point, int dropped, std::string* why) {
  Frames out;
  std::vector<PyRef> contents;
  for (CressetActivation* a = innermost; a != nullptr; a = a->caller) {
    CressetFrameImage image;
    cresset_eval_image(a, a == innermost ? point : CRESSET_BEFORE, &image);
    if (const char* reason = obstacle(*a, image)) return *why = reason, Frames{};
    if (a == innermost) image.stack_depth -= dropped;
    out.place.frames.push_back(
        {PyRef::borrow((PyObject*)image.code), image.last, image.continuation_operand, image.continuation});
    drop_dead_slots(image);
    if (a->is_generator) {
      contents.push_back(PyRef::borrow(a->generator));
      out.running.emplace_back(contents.back(), layout_of_generator(a->generator, image));
    } else {
      contents.push_back(frame_contents(image));
    }
    if (!a->entered_from_c) continue;
    if (a->caller != nullptr || a->is_generator) return *why = "inside a call that C code made", Frames{};
    break;
  }
  std::reverse(out.place.frames.begin(), out.place.frames.end());
  std::reverse(contents.begin(), contents.end());
  out.contents = tuple_of(contents);
  return out;
}

namespace {

// `a or b`: if the outcome decides the branch, the operand is the value, and execution continues behind b. Otherwise
// the branch is executed with the outcome in the operand's place. The result goes on top of the stack.
PyRef decide(FrameImage& frame, PyObject* outcome) {
  const PyRef code = checked(PyCode_GetCode(frame.image.code));
  const auto* units = (const unsigned char*)PyBytes_AS_STRING(code.get());
  int at = frame.image.last + 1, jump = 0;
  for (; units[2 * at] == EXTENDED_ARG; ++at) jump = (jump | units[2 * at + 1]) << 8;
  jump |= units[2 * at + 1];
  const PyRef operand = PyRef::borrow(frame.image.stack[--frame.image.stack_depth]);
  const bool taken = (cresset_jumps_when(units[2 * at]) != 0) == (outcome == Py_True);
  if (taken) frame.image.last = at + jump;
  if (frame.image.generator != nullptr) frame.into_generator();
  return taken ? operand : PyRef::borrow(outcome);
}

}  // namespace

// Whether the branch leaves its operand on the stack, so that the outcome alone does not determine the result.
static bool keeps_operand(const CressetActivation& activation) {
  return cresset_jump_keeps_operand(opcode_in_progress(activation)) != 0;
}

Frames frames_after(CressetActivation* activation, bool is_truth, std::string* why) {
  if (!is_truth || cresset_truth_is_result() != 0) return frames_of(activation, CRESSET_AFTER, 0, why);
  // The branch instruction runs again, with the outcome in place of the tensor.
  const bool keeps = keeps_operand(*activation);
  Frames frames = frames_of(activation, CRESSET_BEFORE, keeps ? 0 : 1, why);
  frames.place.keeps_operand = keeps;
  return frames;
}

PyObject* handled_in(PyObject* contents) {
  for (Py_ssize_t i = PyTuple_GET_SIZE(contents); i-- > 0;) {
    PyObject *frame = PyTuple_GET_ITEM(contents, i), *handled = nullptr;
    CressetFrameImage image;
    if (PyTuple_Check(frame))
      handled = PyTuple_GET_ITEM(frame, 4);
    else if (cresset_eval_generator_image(frame, &image) == 0)
      handled = image.handled;
    if (handled != nullptr && handled != Py_None) return handled;
  }
  return Py_None;
}

PyRef resume(const Place& place, PyRef contents, PyObject* value, PyObject* exception, bool natively) {
  std::vector<FrameImage> frames = frames_at(place, contents.get());
  PyRef decided;
  if (place.keeps_operand && value != nullptr) {
    decided = decide(frames.back(), value);
    value = decided.get();
  }
  const std::vector<CressetFrameImage> images = images_of(frames);
  PyObject* held = contents.release();
  PyRef result = PyRef::steal(
      cresset_eval_resume(images.data(), static_cast<int>(images.size()), value, exception, natively ? 1 : 0, &held));
  const PyRef left = PyRef::steal(held);  // set when the frames could not be rebuilt
  return result;
}

void put_into_frames(CressetActivation* innermost, PyObject* given, PyObject* contents) {
  if (given == contents) return;
  Py_ssize_t i = PyTuple_GET_SIZE(contents);
  for (CressetActivation* a = innermost; a != nullptr && i-- > 0; a = a->caller) {
    CressetFrameImage image;
    cresset_eval_image(a, CRESSET_BEFORE, &image);
    if (a->is_generator) continue;  // its frame already holds the symbols
    const auto put = [&](PyObject** places, Py_ssize_t part) {
      PyObject* now = PyTuple_GET_ITEM(PyTuple_GET_ITEM(given, i), part);
      PyObject* then = PyTuple_GET_ITEM(PyTuple_GET_ITEM(contents, i), part);
      for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(now); ++j) {
        PyObject* value = PyTuple_GET_ITEM(now, j);
        if (value == PyTuple_GET_ITEM(then, j)) continue;
        PyObject* old = std::exchange(places[j], Py_NewRef(value));
        Py_DECREF(old);
      }
    };
    put(image.slots, 2);
    put(image.stack, 3);
  }
}

}  // namespace cresset::frontend
