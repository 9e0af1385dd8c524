#include "frontend/values/symbols.h"

#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "bridge/capture/sym_node.h"
#include "frontend/cpython/c_iterator_contents.h"
#include "frontend/cpython/containers.h"
#include "frontend/cpython/new_objects.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/slots.h"
#include "frontend/eval/hooks.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/numpy_ints.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/value_objects.h"

namespace cresset::frontend {
namespace {

thread_local OneForOne::Made* all_made = nullptr;

class Replacer {
 public:
  explicit Replacer(bool new_alone = false) : new_alone_(new_alone && NewObjects::innermost() != nullptr) {}

  // Returns a new reference to the replacement, or to the object itself when nothing changes.
  PyRef replaced(PyObject* object, int depth) {
    if (is_symint(object)) return number(object);
    if (is_symfloat(object)) return checked(PyNumber_Float(object));
    if (is_symbool(object)) return PyRef::borrow(truth(object) ? Py_True : Py_False);
    if (is_symbolic_string(object)) return plain_text(object);
    if (PyMethod_Check(object) && is_symbolic_string(PyMethod_GET_SELF(object))) return method_of_plain(object);
    if (const auto made = made_.find(object); made != made_.end()) return made->second.second;
    if (new_alone_ && is_old(object)) return PyRef::borrow(object);
    if (depth > 64 || !may_hold(object) || !seen_.insert(object).second) return PyRef::borrow(object);
    if (PyCell_Check(object)) return cell(object, depth), PyRef::borrow(object);
    if (PyFunction_Check(object)) return function(object, depth), PyRef::borrow(object);
    if (PyType_Check(object)) return class_(object, depth), PyRef::borrow(object);
    if (PyGen_CheckExact(object) || PyCoro_CheckExact(object)) return generator(object, depth), PyRef::borrow(object);
    if (is_iterator(object)) return iterator(object, depth);
    if (PySlice_Check(object) || is_partial_function(object)) return value(object, depth);
    if (PyTuple_Check(object)) return tuple(object, depth);
    if (PyFrozenSet_CheckExact(object)) return frozen_set(object, depth);
    if (PySet_Check(object)) set(object, depth);
    if (is_deque(object)) deque(object, depth);
    if (PyList_Check(object)) list(object, depth);
    if (PyDict_Check(object)) dict(object, depth);
    if (PyMethod_Check(object)) replaced(PyMethod_GET_SELF(object), depth + 1);
    if (PyObject* inside = viewed(object)) replaced(inside, depth + 1);
    if (PyExceptionInstance_Check(object)) exception(object, depth);
    if (holds_inside(object)) inside(object, depth);
    if (Py_IS_TYPE(object, &PyStaticMethod_Type) || Py_IS_TYPE(object, &PyClassMethod_Type)) held(object, depth);
    if (PyObject** slot = _PyObject_GetDictPtr(object); slot != nullptr && *slot != nullptr) dict(*slot, depth);
    if (is_heap_type(Py_TYPE(object))) slots(object, depth);
    if (is_met_first(Py_TYPE(object)) && is_new_class((PyObject*)Py_TYPE(object)))
      replaced((PyObject*)Py_TYPE(object), depth + 1);
    return PyRef::borrow(object);
  }

 private:
  static bool is_symbolic(PyObject* object) { return is_symbolic_number(object) || is_symbolic_string(object); }
  static PyRef method_of_plain(PyObject* method) {
    static PyObject* const name = PyUnicode_InternFromString("__name__");
    const PyRef called = checked(PyObject_GetAttr(PyMethod_GET_FUNCTION(method), name));
    return checked(PyObject_GetAttr(plain_text(PyMethod_GET_SELF(method)).get(), called.get()));
  }
  static PyRef number(PyObject* object) {
    PyRef value = checked(PyNumber_Long(object));
    return is_numpy_int(object) ? numpy_int_of(value.get()) : value;
  }
  static bool truth(PyObject* object) {
    const int is = PyObject_IsTrue(object);
    if (is < 0) throw PythonError{};
    return is == 1;
  }
  // Iterators of CPython.
  static bool is_iterator(PyObject* object) {
    return PyIter_Check(object) != 0 && _PyObject_GetDictPtr(object) == nullptr && !PyGen_CheckExact(object);
  }
  static bool may_hold(PyObject* object) {
    return PyCell_Check(object) || PyGen_CheckExact(object) || PyCoro_CheckExact(object) || PyFunction_Check(object) ||
           PyTuple_Check(object) || PyList_Check(object) || PyDict_Check(object) || PySet_Check(object) ||
           PyFrozenSet_CheckExact(object) || is_deque(object) || is_iterator(object) || PySlice_Check(object) ||
           PyMethod_Check(object) || holds_beside_attributes(object) || !slots_of(Py_TYPE(object)).empty() ||
           (PyType_Check(object) ? is_new_class(object) : !PyModule_Check(object) && has_attributes(object));
  }
  static bool has_attributes(PyObject* object) {
    return !PyFunction_Check(object) && !PyType_Check(object) && _PyObject_GetDictPtr(object) != nullptr;
  }
  // Objects that hold references in C fields.
  static bool holds_beside_attributes(PyObject* object) {
    return PyExceptionInstance_Check(object) || viewed(object) != nullptr || holds_inside(object);
  }

  // Avoids repeated age queries, which are slow.
  bool is_met_first(PyTypeObject* type) { return is_heap_type(type) && classes_.insert(type).second; }
  // The age is only known during a capture.
  static bool is_new(PyObject* object) {
    if (!PyObject_IS_GC(object) || !PyObject_GC_IsTracked(object)) return false;
    NewObjects* const new_objects = NewObjects::innermost();
    return new_objects != nullptr && new_objects->holds(object);
  }
  // An instance that is older than the call and not guarded by structure.
  static bool is_old(PyObject* object) {
    return has_attributes(object) && !PyIter_Check(object) && !holds_beside_attributes(object) &&
           !is_structure(object) && PyObject_GC_IsTracked(object) && !NewObjects::innermost()->holds(object);
  }
  static bool is_new_class(PyObject* object) { return is_heap_type((PyTypeObject*)object) && is_new(object); }
  void class_(PyObject* object, int depth) {
    auto* type = (PyTypeObject*)object;
    dict(type_dict(type), depth);
    PyType_Modified(type);
  }

  // Records the replacement, so that two references to the same object stay the same object.
  PyRef made(PyObject* object, PyRef now) {
    made_.emplace(object, std::pair(PyRef::borrow(object), now));
    return now;
  }

  PyRef tuple(PyObject* object, int depth) {
    std::vector<PyRef> items;
    bool changed = false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      items.push_back(replaced(PyTuple_GET_ITEM(object, i), depth + 1));
      changed = changed || items.back().get() != PyTuple_GET_ITEM(object, i);
    }
    if (!changed) return PyRef::borrow(object);
    PyRef now = made(object, tuple_as((PyObject*)Py_TYPE(object), tuple_of(items)));
    PyObject *name, *value, *const dict = instance_dict(object);  // of a subclass
    Py_ssize_t position = 0;
    while (dict != nullptr && PyDict_Next(dict, &position, &name, &value))
      if (PyObject_GenericSetAttr(now.get(), name, replaced(value, depth + 1).get()) < 0) throw PythonError{};
    return now;
  }

  // Handles numbers, containers of numbers, and new objects. Other objects in a closure may lead to a large part of the
  // program.
  void cell(PyObject* object, int depth) {
    PyObject* value = PyCell_GET(object);
    if (value == nullptr || (!is_symbolic(value) && _PyObject_GetDictPtr(value) != nullptr && !is_new(value))) return;
    const PyRef now = replaced(value, depth + 1);
    if (now.get() != value && PyCell_Set(object, now.get()) < 0) throw PythonError{};
  }

  void function(PyObject* object, int depth) {
    PyObject *closure = PyFunction_GET_CLOSURE(object), *defaults = PyFunction_GET_DEFAULTS(object);
    for (Py_ssize_t i = 0; closure != nullptr && i < PyTuple_GET_SIZE(closure); ++i)
      cell(PyTuple_GET_ITEM(closure, i), depth + 1);
    auto* const parts = (PyFunctionObject*)object;
    for (PyObject* named : {parts->func_kwdefaults, parts->func_dict, parts->func_annotations})
      if (named != nullptr) replaced(named, depth + 1);
    if (defaults == nullptr) return;
    const PyRef now = replaced(defaults, depth + 1);
    if (now.get() != defaults && PyFunction_SetDefaults(object, now.get()) < 0) throw PythonError{};
  }

  void inside(PyObject* object, int depth) {
    replace_held(object, [&](PyObject* held) { return replaced(held, depth + 1); });
  }

  // The function inside a static or class method, which keeps its identity.
  void held(PyObject* object, int depth) {
    std::vector<PyRef> all;
    const auto note = [](PyObject* part, void* out) {
      return static_cast<std::vector<PyRef>*>(out)->push_back(PyRef::borrow(part)), 0;
    };
    Py_TYPE(object)->tp_traverse(object, note, &all);
    for (const PyRef& part : all)
      if (PyFunction_Check(part.get())) replaced(part.get(), depth + 1);
  }

  // The contents of a suspended frame. Callers handle running frames (resume_point.h).
  void generator(PyObject* object, int depth) {
    CressetFrameImage image;
    if (cresset_eval_generator_image(object, &image) != 0 && cresset_eval_is_being_closed(object) == 0) return;
    for (int i = 0;; ++i) {
      PyObject** slot = cresset_eval_generator_slot(object, i);
      if (slot == nullptr) return;
      if (*slot == nullptr) continue;
      PyRef now = replaced(*slot, depth + 1);
      if (now.get() != *slot) const PyRef before = PyRef::steal(std::exchange(*slot, now.release()));
    }
  }

  // A list iterator observes changes of the list. A range or tuple iterator is replaced by a new iterator. In itertools
  // objects and similar iterators the references are exchanged.
  PyRef iterator(PyObject* object, int depth) {
    ObjectLayout& layout = taken_.emplace_back(decompose(object));
    if (layout.kind != ObjectLayout::Kind::Iterator) {
      if (holds_inside(object)) inside(object, depth);
      return PyRef::borrow(object);
    }
    bool changed = false;
    for (PyRef& part : layout.parts) {
      PyRef now = replaced(part.get(), depth + 1);
      changed = changed || now.get() != part.get();
      if (changed) kept_.push_back(std::exchange(part, std::move(now)));
    }
    return changed ? made(object, make_whole(layout)) : PyRef::borrow(object);
  }

  // A partial function keeps its identity.
  PyRef value(PyObject* object, int depth) {
    ObjectLayout& layout = taken_.emplace_back(decompose(object));
    bool changed = false;
    for (PyRef& part : layout.parts) {
      PyRef now = replaced(part.get(), depth + 1);
      changed = changed || now.get() != part.get();
      if (changed) kept_.push_back(std::exchange(part, std::move(now)));
    }
    if (!changed) return PyRef::borrow(object);
    if (!is_partial_function(object)) return made(object, make_whole(layout));
    checked(PyObject_CallMethod(object, "__setstate__", "(O)", layout.parts.back().get()));
    return PyRef::borrow(object);
  }

  // Its arguments, cause and context, and the exceptions of a group.
  void exception(PyObject* object, int depth) {
    auto* raised = (PyBaseExceptionObject*)object;
    const PyRef args = replaced(raised->args, depth + 1);
    if (args.get() != raised->args) Py_SETREF(raised->args, Py_NewRef(args.get()));
    for (PyObject* other : {raised->cause, raised->context})
      if (other != nullptr) replaced(other, depth + 1);
    if (PyObject_TypeCheck(object, (PyTypeObject*)PyExc_BaseExceptionGroup))
      replaced(((PyBaseExceptionGroupObject*)object)->excs, depth + 1);
  }

  void slots(PyObject* object, int depth) {
    for (PyObject* slot : slots_of(Py_TYPE(object))) {
      const PyRef held = held_in_slot(object, slot);
      if (!held) continue;
      const PyRef now = replaced(held.get(), depth + 1);
      if (now.get() != held.get()) set_slot(object, slot, now.get());
    }
  }

  void list(PyObject* object, int depth) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) {
      PyRef item = replaced(PyList_GET_ITEM(object, i), depth + 1);
      if (item.get() != PyList_GET_ITEM(object, i)) PyList_SetItem(object, i, item.release());
    }
  }

  // A symbolic number has the hash of its value, so lookups of a key which contains it still work.
  static bool is_symbolic_key(PyObject* key) {
    if (PyFrozenSet_CheckExact(key)) return is_symbolic_key(checked(PySequence_Tuple(key)).get());
    if (!PyTuple_Check(key)) return is_symbolic(key);
    PyObject** items = PySequence_Fast_ITEMS(key);
    return std::any_of(items, items + PyTuple_GET_SIZE(key), is_symbolic_key);
  }
  void dict_keys(PyObject* object, int depth) {
    const PyRef keys = keys_in_order(object);
    PyObject** items = PySequence_Fast_ITEMS(keys.get());
    const Py_ssize_t count = PyList_GET_SIZE(keys.get());
    for (Py_ssize_t i = 0; i < count; ++i)  // first, because hash and comparison functions are program code
      if (PyObject* key = items[i]; !PyUnicode_CheckExact(key) && !is_symbolic_key(key)) replaced(key, depth + 1);
    if (!std::any_of(items, items + count, is_symbolic_key)) return;
    const PyRef all = checked(PyDict_Copy(object));
    for (Py_ssize_t i = 0; i < count; ++i) set_item(object, items[i], nullptr);
    for (Py_ssize_t i = 0; i < count; ++i) {
      const PyRef plain = is_symbolic_key(items[i]) ? replaced(items[i], depth + 1) : PyRef::borrow(items[i]);
      set_item(object, plain.get(), PyDict_GetItemWithError(all.get(), items[i]));
    }
  }

  // Replaces keys and values in place when the stored hashes stay valid. Returns false when keys must be hashed again.
  bool dict_in_place(PyObject* object, int depth) {
    bool changed = false;
    PyObject **key, **value;
    // the replacement may run code that changes the dictionary
    const auto exchange = [&](Py_ssize_t i, PyObject**& slot) {
      const PyRef before = PyRef::borrow(*slot);
      PyRef now = replaced(before.get(), depth + 1);
      if (now.get() == before.get() || cresset_eval_dict_entry(object, i, &key, &value) <= 0 || *slot != before.get())
        return;
      changed = true;
      const PyRef held = PyRef::steal(std::exchange(*slot, now.release()));
    };
    Py_ssize_t i = 0;
    int found;
    for (; (found = cresset_eval_dict_entry(object, i, &key, &value)) > 0; ++i) {
      if (*value == nullptr) continue;
      if (is_symbolic_key(*key) && !PyODict_Check(object))
        exchange(i, key);
      else if (!PyUnicode_CheckExact(*key))
        replaced(PyRef::borrow(*key).get(), depth + 1);
      if (cresset_eval_dict_entry(object, i, &key, &value) > 0 && *value != nullptr) exchange(i, value);
    }
    if (changed && cresset_eval_dict_changed(object) < 0) throw PythonError{};
    return found == 0;
  }

  void dict(PyObject* object, int depth) {
    if (PyODict_Check(object)) dict_keys(object, depth);  // it also stores its keys elsewhere
    if (dict_in_place(object, depth)) return;
    dict_keys(object, depth);
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) {
      const PyRef hold = PyRef::borrow(key);
      const PyRef item = replaced(value, depth + 1);
      if (item.get() != value) set_item(object, key, item.get());
    }
  }

  // A symbolic number has the hash of its value, so its entry stays valid. A replaced function has another hash.
  void set(PyObject* object, int depth) {
    std::vector<std::pair<PyRef, PyRef>> others;
    for (Py_ssize_t i = 0; i <= ((PySetObject*)object)->mask; ++i) {
      const PyRef before = PyRef::borrow(used_key(((PySetObject*)object)->table[i]));
      if (!before) continue;
      PyRef now = replaced(before.get(), depth + 1);
      auto* const table = (PySetObject*)object;  // may have changed
      if (now.get() == before.get() || i > table->mask || table->table[i].key != before.get()) continue;
      if (is_symbolic_key(before.get()))
        const PyRef held = PyRef::steal(std::exchange(table->table[i].key, now.release()));
      else
        others.emplace_back(before, std::move(now));
    }
    for (const auto& [before, now] : others)
      if (PySet_Discard(object, before.get()) < 0 || PySet_Add(object, now.get()) < 0) throw PythonError{};
  }
  // nullptr for an unused or deleted entry.
  static PyObject* used_key(const setentry& entry) { return entry.hash != -1 ? entry.key : nullptr; }

  PyRef frozen_set(PyObject* object, int depth) {
    const auto& table = *(PySetObject*)object;
    bool changes = false;
    for (Py_ssize_t i = 0; i <= table.mask; ++i)
      if (PyObject* const item = used_key(table.table[i])) changes = replaced(item, depth + 1).get() != item || changes;
    if (!changes) return PyRef::borrow(object);
    const PyRef now = made(object, checked(PyFrozenSet_New(object)));
    set(now.get(), depth);
    return now;
  }

  // The items, and whether any differs.
  std::pair<PyRef, bool> items_of(PyObject* object, int depth) {
    PyRef items = checked(PySequence_List(object));
    bool changed = false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyRef item = replaced(PyList_GET_ITEM(items.get(), i), depth + 1);
      if (item.get() == PyList_GET_ITEM(items.get(), i)) continue;
      changed = true;
      PyList_SetItem(items.get(), i, item.release());
    }
    return {std::move(items), changed};
  }

  void deque(PyObject* object, int depth) {
    const auto [items, changed] = items_of(object, depth);
    for (Py_ssize_t i = 0; changed && i < PyList_GET_SIZE(items.get()); ++i)
      if (PySequence_SetItem(object, i, PyList_GET_ITEM(items.get(), i)) < 0) throw PythonError{};
  }

  std::unordered_set<PyObject*> seen_;
  std::deque<ObjectLayout> taken_;  // decomposed parts, whose addresses must not be reused
  std::vector<PyRef> kept_;         // for the same reason
  const bool new_alone_;
  std::unordered_set<PyTypeObject*> classes_;
  OneForOne::Made own_made_;
  OneForOne::Made& made_ = all_made != nullptr ? *all_made : own_made_;
};

}  // namespace

OneForOne::OneForOne() : around_(std::exchange(all_made, &made_)) {}
OneForOne::~OneForOne() { all_made = around_; }

void OneForOne::stood_for(PyObject* symbolic, const PyRef& plain) {
  if (all_made != nullptr && (PyTuple_Check(symbolic) || PyIter_Check(symbolic)))
    all_made->emplace(symbolic, std::pair(PyRef::borrow(symbolic), plain));
}

PyRef without_symbols(PyRef object) { return Replacer().replaced(object.get(), 0); }
PyRef new_without_symbols(PyRef object) { return Replacer(true).replaced(object.get(), 0); }

namespace {

bool torch_asks() {
  static PyObject* const name = PyUnicode_InternFromString("__name__");
  PyObject* const globals = PyEval_GetGlobals();
  PyObject* const module = globals != nullptr ? PyDict_GetItemWithError(globals, name) : nullptr;
  if (module == nullptr) return PyErr_Clear(), false;
  const std::string_view text = utf8(module);
  return text == "torch" || text.starts_with("torch.");
}

py::object node_attribute(PyObject* number) {
  static PyObject* const name = PyUnicode_InternFromString("node");
  PyObject* const node = PyObject_GetAttr(number, name);
  if (node == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(node);
}

// The pointer in a pybind11 object of exactly this class, read without pybind11's type tables; nullptr for other
// objects.
c10::SymNodeImpl* node_held_by(PyObject* node) {
  static PyObject* const type = py::type::of<c10::SymNodeImpl>().release().ptr();
  if ((PyObject*)Py_TYPE(node) != type) return nullptr;
  const auto* const instance = reinterpret_cast<const py::detail::instance*>(node);
  return instance->simple_layout ? static_cast<c10::SymNodeImpl*>(instance->simple_value_holder[0]) : nullptr;
}

PyObject* class_of_number(PyObject* number, void* plain) {
  if (torch_asks()) return Py_NewRef((PyObject*)Py_TYPE(number));
  try {
    const py::object node = node_attribute(number);
    const c10::SymNodeImpl* const held = node_held_by(node.ptr());
    const bool own = held != nullptr
                         ? !held->is_nested_int()
                         : py::isinstance<c10::SymNodeImpl>(node) && !py::cast<c10::SymNode>(node)->is_nested_int();
    return Py_NewRef(own ? (PyObject*)plain : (PyObject*)Py_TYPE(number));
  } catch (py::error_already_set& e) {
    e.restore();
    return nullptr;
  }
}

}  // namespace

void show_number_as(PyTypeObject* symbolic, PyTypeObject* plain) {
  // Lives as long as the class, which is never freed.
  auto* const entry = new PyGetSetDef{"__class__", &class_of_number, nullptr, nullptr, plain};
  const PyRef descriptor = checked(PyDescr_NewGetSet(symbolic, entry));
  if (PyDict_SetItemString(type_dict(symbolic), "__class__", descriptor.get()) < 0) throw PythonError{};
  PyType_Modified(symbolic);
}

c10::SymNode node_of(PyObject* number) {
  const py::object node = node_attribute(number);
  if (c10::SymNodeImpl* own = node_held_by(node.ptr())) return c10::SymNode::reclaim_copy(own);
  if (py::isinstance<c10::SymNodeImpl>(node)) return py::cast<c10::SymNode>(node);
  return c10::make_intrusive<torch::impl::PythonSymNodeImpl>(node);
}

PyRef python_float(const c10::SymNode& node) {
  return checked(PyObject_CallOneArg((PyObject*)symfloat_class(), py::cast(node).ptr()));
}

PyRef python_bool(const c10::SymNode& node) {
  return checked(PyObject_CallOneArg((PyObject*)symbool_class(), py::cast(node).ptr()));
}

PyRef with_plain_names(PyRef args) {
  if (!PyTuple_CheckExact(args.get()) || PyTuple_GET_SIZE(args.get()) != 1) return args;
  PyObject* message = PyTuple_GET_ITEM(args.get(), 0);
  if (!PyUnicode_CheckExact(message)) return args;
  std::string text = utf8(message, "");
  // Schemas in torch's messages contain these names in eager mode, too.
  if (text.find("Sym") == std::string::npos || text.find("aten::") != std::string::npos) return args;
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"torch.SymInt", "int"}, {"SymInt", "int"}, {"SymFloat", "float"}, {"SymBool", "bool"}};
  const std::string before = text;
  for (const auto& [symbolic, plain] : kNames)
    for (size_t at = text.find(symbolic); at != std::string::npos; at = text.find(symbolic, at))
      text.replace(at, symbolic.size(), plain);
  if (text == before) return args;
  const PyRef renamed = checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  return checked(PyTuple_Pack(1, renamed.get()));
}

// A plain number of the same type, for the error messages of its type.
static PyObject* alike(PyObject* number) {
  static PyObject *const zero = PyLong_FromLong(0), *const float_zero = PyFloat_FromDouble(0);
  return is_symfloat(number) ? float_zero : is_symbool(number) ? Py_False : zero;
}

// Raises the error of a plain number.
void no_attributes_of(PyObject* number, PyObject* name) {
  if (PyObject_SetAttr(alike(number), name, Py_None) < 0) throw PythonError{};
}

void no_items_of(PyObject* number, PyObject* key, PyObject* value) {
  PyObject* const of = alike(number);
  if ((value != nullptr ? PyObject_SetItem(of, key, value) : PyObject_DelItem(of, key)) < 0) throw PythonError{};
}

bool is_unspecialized(PyObject* number) {
  if (is_symint(number)) return !node_of(number)->maybe_as_int();
  return is_symfloat(number) && bridge::SymNode::is_open_float(node_of(number));
}

}  // namespace cresset::frontend
