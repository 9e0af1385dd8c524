#include "frontend/trace_rules/hook_ids.h"

#include <unordered_map>

#include "frontend/cpython/py_objects.h"
#include "frontend/values/pending_error.h"

namespace cresset::frontend {
namespace {

PyObject* id_name() {
  static PyObject* const name = PyUnicode_InternFromString("id");
  return name;
}

// Renames a key in place: the keys keep their order.
void rename_key(PyObject* dictionary, PyObject* key, PyObject* number) {
  const PyRef items = checked(PyObject_CallMethod(dictionary, "items", nullptr));
  const PyRef pairs = checked(PySequence_List(items.get()));
  checked(PyObject_CallMethod(dictionary, "clear", nullptr));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.get()); ++i) {
    PyObject *pair = PyList_GET_ITEM(pairs.get(), i), *of = PyTuple_GET_ITEM(pair, 0);
    const int same = PyObject_RichCompareBool(of, key, Py_EQ);
    if (same < 0 || PyObject_SetItem(dictionary, same == 1 ? number : of, PyTuple_GET_ITEM(pair, 1)) < 0)
      throw PythonError();
  }
}

}  // namespace

thread_local HooksOfCall* HooksOfCall::current_ = nullptr;

PyObject* HooksOfCall::counter() {
  static PyObject* const type = private_attribute("torch.utils.hooks", "RemovableHandle");
  return type;
}

void HooksOfCall::begin_segment(const void* place) {
  constexpr long long kNoNumberOfTorch = 1LL << 40, kMostOfSegment = 1LL << 20;
  static auto& begins = *new std::unordered_map<const void*, long long>;  // not destroyed after Python
  if (current_ == nullptr) return;
  const auto next = static_cast<long long>(begins.size());
  current_->next_ = kNoNumberOfTorch + kMostOfSegment * begins.emplace(place, next).first->second;
}

long long HooksOfCall::next_number() { return current_ != nullptr ? current_->next_++ : 0; }

void HooksOfCall::note(PyObject* handle, PyObject* references, bool in_own) {
  if (current_ == nullptr) return;
  static PyObject* const next = PyUnicode_InternFromString("next_id");
  PyRef number = checked(PyObject_GetAttr(counter(), next));
  const PyRef one = checked(PyLong_FromLong(1));
  const PyRef after = checked(PyNumber_Add(number.get(), one.get()));
  if (PyObject_SetAttr(counter(), next, after.get()) < 0) throw PythonError();
  current_->hooks_.push_back({PyRef::borrow(handle), PyRef::borrow(references),
                              checked(PyObject_GetAttr(handle, id_name())), std::move(number), in_own});
}

bool HooksOfCall::number_those_that_stay() {
  bool any = false;
  const SavedError pending;
  for (const Hook& hook : hooks_) {
    bool stays = Py_REFCNT(hook.handle.get()) > 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(hook.references.get()); ++i) {
      const PyRef dictionary = PyRef::borrow(PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(hook.references.get(), i)));
      if (dictionary.get() == Py_None || PyDict_Contains(dictionary.get(), hook.key.get()) != 1) continue;
      rename_key(dictionary.get(), hook.key.get(), hook.number.get());
      stays |= !hook.in_own;
    }
    if (stays && PyObject_SetAttr(hook.handle.get(), id_name(), hook.number.get()) < 0) throw PythonError();
    any |= stays;
  }
  hooks_.clear();
  return any;
}

}  // namespace cresset::frontend
