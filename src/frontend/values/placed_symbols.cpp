#include "frontend/values/placed_symbols.h"

#include <algorithm>

#include "frontend/cpython/containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/eval/hooks.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbols.h"
#include "frontend/values/value_objects.h"

namespace cresset::frontend {

bool is_thread_local(PyObject* object) {
  static PyObject* const type = module_attribute("_thread", "_local");
  return (PyObject*)Py_TYPE(object) == type;
}

namespace {

// The slot in the frame of a generator, which is referenced weakly; nullptr when the generator is dead.
PyObject** slot_in(const PlaceOfItem& place) {
  PyObject* generator = PyWeakref_GetObject(place.container.get());
  if (generator == Py_None) return nullptr;
  return cresset_eval_generator_slot(generator, static_cast<int>(PyLong_AsLong(place.key.get())));
}

void set_arguments(PyObject* partial, PyObject* args) {
  const ObjectLayout layout = decompose(partial);
  PyObject* const state = layout.parts[1].get();  // function, arguments, keywords, attributes
  checked(PyObject_CallMethod(partial, "__setstate__", "((OOOO))", PyTuple_GET_ITEM(state, 0), args,
                              PyTuple_GET_ITEM(state, 2), PyTuple_GET_ITEM(state, 3)));
}

// Stores the value without calling methods of a subclass.
void set(const PlaceOfItem& place, PyObject* value) {
  PyObject *container = place.container.get(), *key = place.key.get();
  if (PyWeakref_CheckRefExact(container)) {
    if (PyObject** slot = slot_in(place)) const PyRef before = PyRef::steal(std::exchange(*slot, Py_NewRef(value)));
    return;
  }
  if (key != nullptr && is_slot(key)) return set_slot(container, key, value);
  if (PyDict_Check(container)) return put_under(container, key, value);
  if (is_partial_function(container)) return set_arguments(container, value);
  if (PyExceptionInstance_Check(container)) {
    Py_SETREF(((PyBaseExceptionObject*)container)->args, Py_NewRef(value));
    return;
  }
  const int done = PyCell_Check(container)      ? PyCell_Set(container, value)
                   : PyType_Check(container)    ? PyType_Type.tp_setattro(container, key, value)
                   : is_thread_local(container) ? PyObject_SetAttr(container, key, value)
                   : is_deque(container)        ? PySequence_SetItem(container, PyLong_AsSsize_t(key), value)
                                                : PyList_SetItem(container, PyLong_AsSsize_t(key), Py_NewRef(value));
  if (done < 0) throw PythonError{};
}

// Moves the original iterator to the position which its symbolic substitute has reached.
void catch_up(PyObject* before, PyObject* now) {
  ObjectLayout layout = decompose(now);
  for (PyRef& part : layout.parts) part = without_symbols(std::move(part));
  fill(before, layout);
}

}  // namespace

bool is_place(PyObject* descriptor) {
  static PyObject* const gradient =
      PyObject_GetAttrString(PyRef::steal(module_attribute("torch", "Tensor")).get(), "grad");
  return is_slot(descriptor) || descriptor == gradient;
}

PyObject* held_by(const PlaceOfItem& place) {
  PyObject *container = place.container.get(), *key = place.key.get();
  if (PyCell_Check(container)) return PyCell_GET(container);
  if (key != nullptr && Py_IS_TYPE(key, &PyGetSetDescr_Type)) {
    const PyRef gradient = PyRef::steal(Py_TYPE(key)->tp_descr_get(key, container, (PyObject*)Py_TYPE(container)));
    if (!gradient) PyErr_Clear();
    return gradient.get();  // kept alive by the tensor
  }
  if (is_slot(key)) return held_in_slot(container, key).get();  // kept alive by the object
  if (PyWeakref_CheckRefExact(container)) {
    PyObject** slot = slot_in(place);
    return slot != nullptr ? *slot : nullptr;
  }
  if (PyList_Check(container)) {
    const Py_ssize_t i = PyLong_AsSsize_t(key);
    return i < PyList_GET_SIZE(container) ? PyList_GET_ITEM(container, i) : nullptr;
  }
  if (is_deque(container)) {
    const PyRef item = item_of_deque(container, PyLong_AsSsize_t(key));
    return item.get();  // kept alive by the deque
  }
  if (is_partial_function(container))
    return PyTuple_GET_ITEM(decompose(container).parts[1].get(), 1);  // kept alive by the function
  if (PyExceptionInstance_Check(container)) return ((PyBaseExceptionObject*)container)->args;
  if (is_thread_local(container)) {
    const PyRef value = PyRef::steal(PyObject_GetAttr(container, key));
    if (!value) PyErr_Clear();
    return value.get();  // kept alive by the thread's dictionary
  }
  PyObject* const dict = PyType_Check(container) ? type_dict((PyTypeObject*)container) : container;
  return value_under(dict, key);
}

void PlacedNumbers::put(PlaceOfItem place, PyRef value) {
  PyRef before = PyRef::borrow(held_by(place));
  set(place, value.get());
  placed_.push_back({std::move(place), std::move(before), std::move(value)});
}

void PlacedNumbers::take_back() {
  if (placed_.empty()) return;
  const SavedError pending;
  std::vector<Placed> placed = std::exchange(placed_, {});
  std::reverse(placed.begin(), placed.end());  // a place with two paths received two symbols
  for (const Placed& p : placed) {
    try {
      if (p.before && PyIter_Check(p.before.get())) catch_up(p.before.get(), p.now.get());
      if (p.now && p.before) OneForOne::stood_for(p.now.get(), p.before);
      if (held_by(p.place) == p.now.get()) set(p.place, p.before.get());  // otherwise the program overwrote it
    } catch (const PythonError&) {
      PyErr_Clear();
    }
  }
}

}  // namespace cresset::frontend
