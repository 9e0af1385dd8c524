#include "frontend/feedback/specializations.h"

#include <bit>
#include <utility>

#include "bridge/capture/sym_node.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/eval/bytecode.h"
#include "frontend/feedback/feedback.h"
#include "frontend/feedback/thresholds.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

struct PlaceInCode {
  PyCodeObject* code;
  const void* what = nullptr;  // an operator or a loop
  PyObject* keeper = nullptr;  // keeps its address in use
};

// Bound methods are new objects at each call, so the definition in the type is the key.
PlaceInCode place_of(const CressetActivation& activation, const CressetCall& call) {
  PyObject* const callable = call.callable;
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
    return {activation.code, ((PyMethodDescrObject*)callable)->d_method, (PyObject*)PyDescr_TYPE(callable)};
  if (!is_c_function(callable)) return {activation.code, callable, callable};
  PyObject* const self = PyCFunction_GET_SELF(callable);
  const bool is_bound = self != nullptr && !PyModule_Check(self) && !PyCapsule_CheckExact(self) && !PyType_Check(self);
  return {activation.code, ((PyCFunctionObject*)callable)->m_ml, is_bound ? (PyObject*)Py_TYPE(self) : callable};
}

std::optional<int64_t> bits_of(PyObject* number) {
  const PyRef plain = without_symbols(PyRef::borrow(number));
  if (PyFloat_Check(plain.get())) return std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(plain.get()));
  const long long value = PyLong_AsLongLong(plain.get());
  if (value == -1 && PyErr_Occurred() != nullptr) return PyErr_Clear(), std::nullopt;
  return value;
}

void note(const PlaceInCode& place, std::optional<int64_t> value, size_t most) {
  Feedback* const known = Feedback::current();
  if (!value || known == nullptr) return;
  const std::pair key((PyObject*)place.code, place.what);
  if (known->specializations.size() >= threshold::kMostPlaces && known->specializations.count(key) == 0) return;
  Feedback::Specializations& specializations = known->specializations[key];
  specializations.code = PyRef::borrow(key.first);
  specializations.keeper = PyRef::borrow(place.keeper);
  if (specializations.values.size() < most) specializations.values.insert(*value);
}

bool too_often(const PlaceInCode& place, size_t most) {
  const Feedback* const known = Feedback::current();
  if (known == nullptr || known->specializations.empty()) return false;
  const auto found = known->specializations.find({(PyObject*)place.code, place.what});
  return found != known->specializations.end() && found->second.values.size() >= most;
}

// State of this thread's capture.
struct Loops {
  struct Decision {
    const void* frame;
    int instruction, count;
  };
  bool met = false;
  std::vector<Decision> decisions;
};
thread_local Loops loops;
constexpr int kRounds = 3;           // iterations decided by the same instruction of a frame
constexpr size_t kMostPlaces = 256;  // per capture; functions without loops have few decisions

bool is_plain_item(PyObject* object) {
  return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
         PyBytes_CheckExact(object) || is_plain_tensor(object);
}

}  // namespace

std::vector<PyRef> unspecialized_among(const CressetCall& call) {
  std::vector<PyRef> found;
  const auto note = [&](PyObject* object) {
    if (may_be_symbolic(object) && !is_exact_tensor(object) && is_unspecialized(object))
      found.push_back(PyRef::borrow(object));
  };
  const Py_ssize_t named = cresset_count_named(&call);
  for (Py_ssize_t i = 0; i < call.nargs + named; ++i) {
    PyObject* const given = call.args[i];
    note(given);
    if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given)) continue;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(given); ++k) note(PySequence_Fast_GET_ITEM(given, k));
  }
  return found;
}

bool is_plain_result(PyObject* object) {
  if (!PyTuple_Check(object)) return is_plain_item(object);
  PyObject* const* items = PySequence_Fast_ITEMS(object);
  return all_among(items, items + PyTuple_GET_SIZE(object), is_plain_item);
}

void note_specialization(const CressetActivation& activation, PyObject* number) {
  note({activation.code}, bits_of(number), threshold::kSpecializations);
}

void note_specialization(const CressetActivation& activation, const CressetCall& call, PyObject* number) {
  note(place_of(activation, call), bits_of(number), threshold::kSpecializationsOfOperator);
}

bool specializes_too_often(const CressetActivation& activation) {
  return too_often({activation.code}, threshold::kSpecializations);
}

bool specializes_too_often(const CressetActivation& activation, const CressetCall& call) {
  return too_often(place_of(activation, call), threshold::kSpecializationsOfOperator);
}

bool is_of_many_lengths(const CressetActivation& activation, int64_t length) {
  note_loop();
  // odd: no object's address
  const PlaceInCode place{activation.code, (const void*)(uintptr_t(activation.instruction) + 1)};
  if (too_often(place, threshold::kLengthsOfLoop)) return true;
  return note(place, length, threshold::kLengthsOfLoop), false;
}

void begin_loops() { loops = {}; }

void note_loop() { loops.met = true; }

void note_rows(PyObject* iterated) {
  if (loops.met || !is_exact_tensor(iterated) || tensor_of(iterated).dim() == 0) return;
  const PyRef length = PyRef::steal(PyObject_CallMethod(iterated, "size", "i", 0));
  if (!length) return PyErr_Clear();
  if (is_symint(length.get()) && is_unspecialized(length.get())) note_loop();
}

void note_decision(const CressetActivation& activation) {
  if (loops.met || cresset_hides_frames_of(activation.code)) return;
  for (Loops::Decision& known : loops.decisions)
    if (known.frame == activation.frame && known.instruction == activation.instruction) {
      loops.met = ++known.count >= kRounds;
      return;
    }
  if (loops.decisions.size() < kMostPlaces) loops.decisions.push_back({activation.frame, activation.instruction, 1});
}

void note_frame(const CressetActivation& activation) {
  if (!loops.decisions.empty())
    std::erase_if(loops.decisions, [&](const Loops::Decision& d) { return d.frame == activation.frame; });
}

bool met_loops() { return loops.met; }

}  // namespace cresset::frontend
