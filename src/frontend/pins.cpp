#include "frontend/pins.h"

#include <bit>
#include <map>
#include <unordered_set>
#include <utility>

#include "bridge/capture_kernel.h"
#include "bridge/sym_node.h"
#include "frontend/eval/bytecode.h"
#include "frontend/items.h"
#include "frontend/py_objects.h"
#include "frontend/symbols.h"

namespace cresset::frontend {
namespace {

struct Pins {
  PyRef code;  // keeps the address taken
  std::unordered_set<int64_t> values;
};
using PlaceInCode = std::pair<PyCodeObject*, const void*>;

// Values of one place. An operator may take one of a few as it is: a dimension, of which there are as many as a tensor
// has, from either end.
constexpr size_t kFew = 4, kFewOfOperator = 8, kFewLengths = 2;
constexpr size_t kMostCodes = 1000;  // calls may make codes anew

std::map<PlaceInCode, Pins>& noted() {
  static auto& pins = *new std::map<PlaceInCode, Pins>;  // not destroyed after Python
  return pins;
}

// Methods are bound anew at each call.
const void* operator_of(const CressetCall& call) {
  if (is_c_function(call.callable)) return ((PyCFunctionObject*)call.callable)->m_ml;
  if (Py_IS_TYPE(call.callable, &PyMethodDescr_Type)) return ((PyMethodDescrObject*)call.callable)->d_method;
  return call.callable;
}

std::optional<int64_t> bits_of(PyObject* number) {
  const PyRef plain = without_symbols(PyRef::borrow(number));
  if (PyFloat_Check(plain.get())) return std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(plain.get()));
  const long long value = PyLong_AsLongLong(plain.get());
  if (value == -1 && PyErr_Occurred() != nullptr) return PyErr_Clear(), std::nullopt;
  return value;
}

void note(const PlaceInCode& place, std::optional<int64_t> value, size_t most) {
  if (!value || (noted().size() >= kMostCodes && noted().count(place) == 0)) return;
  Pins& pins = noted()[place];
  pins.code = PyRef::borrow((PyObject*)place.first);
  if (pins.values.size() < most) pins.values.insert(*value);
}

bool too_often(const PlaceInCode& place, size_t most) {
  if (noted().empty()) return false;
  const auto found = noted().find(place);
  return found != noted().end() && found->second.values.size() >= most;
}

// Of this thread's capture.
struct Loops {
  struct Decision {
    const void* frame;
    int instruction, count;
  };
  bool met = false;
  int64_t lists = 0;
  std::vector<Decision> decisions;
};
thread_local Loops loops;
constexpr int kRounds = 3;           // decided by one instruction of a frame
constexpr size_t kMostPlaces = 256;  // of a capture: a function without loops decides at few

bool is_plain_item(PyObject* object) {
  return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
         PyBytes_CheckExact(object) || is_plain_tensor(object);
}

}  // namespace

bool is_unpinned(PyObject* number) {
  if (is_symint(number)) return !node_of(number)->maybe_as_int();
  return is_symfloat(number) && bridge::SymNode::is_open_float(node_of(number));
}

std::vector<PyRef> unpinned_among(const CressetCall& call) {
  std::vector<PyRef> found;
  const auto note = [&](PyObject* object) {
    if (may_be_symbolic(object) && !is_exact_tensor(object) && is_unpinned(object))
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

void note_pin(const CressetActivation& activation, PyObject* number) {
  note({activation.code, nullptr}, bits_of(number), kFew);
}

void note_pin(const CressetActivation& activation, const CressetCall& call, PyObject* number) {
  note({activation.code, operator_of(call)}, bits_of(number), kFewOfOperator);
}

bool pins_too_often(const CressetActivation& activation) { return too_often({activation.code, nullptr}, kFew); }

bool pins_too_often(const CressetActivation& activation, const CressetCall& call) {
  return too_often({activation.code, operator_of(call)}, kFewOfOperator);
}

bool is_of_many_lengths(const CressetActivation& activation, int64_t length) {
  note_loop();
  const PlaceInCode place{activation.code, (const void*)(uintptr_t(activation.instruction) + 1)};  // where nothing lies
  if (too_often(place, kFewLengths)) return true;
  return note(place, length, kFewLengths), false;
}

void forget_pins() { noted().clear(); }

void begin_loops() { loops = {.lists = bridge::lists_by_size()}; }

void note_loop() { loops.met = true; }

void note_rows(PyObject* iterated) {
  if (loops.met || !is_exact_tensor(iterated) || tensor_of(iterated).dim() == 0) return;
  const PyRef length = PyRef::steal(PyObject_CallMethod(iterated, "size", "i", 0));
  if (!length) return PyErr_Clear();
  if (is_symint(length.get()) && is_unpinned(length.get())) note_loop();
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

bool met_loops() { return loops.met || loops.lists != bridge::lists_by_size(); }

}  // namespace cresset::frontend
