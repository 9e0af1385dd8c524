// Reads of objects that are older than the call. They become guards on later calls.
#include <structmember.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "bridge/capture/trace_tensor.h"
#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/container_snapshot.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/of_type.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/replay/reconstruction.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/wrapper_tensors.h"
#include "frontend/variants/growing_containers.h"

namespace cresset::frontend {

static bool is_generator(PyObject* value) {
  return value != nullptr && (PyGen_CheckExact(value) || PyCoro_CheckExact(value));
}

// A guard would keep a generator alive, and the generator differs at each call.
bool Session::refuse_generator(PyObject* value, PyObject* container, PyObject* key) {
  if (!is_generator(value) || is_opaque(value)) return false;
  if (container != nullptr && PyGen_CheckExact(value))
    found_generators_.push_back({{PyRef::borrow(container), PyRef::borrow(key)}});
  refuse(BreakKind::UnguardedState, "finds a generator in state that was there before");
  return true;
}

bool Session::are_slots_known(PyObject* object) {
  return is_whole(object) && (!is_snapshot_container(object) || argument_paths_.count(object) != 0);
}

// Whether the key is read for the first time. A few recorded keys are searched linearly among the guards.
bool Session::is_listed_first(ObjectRecord& dict, PyObject* key) {
  constexpr size_t kFew = 32;
  if (!dict.listed && facts_->known_of(dict.fact).size() > kFew) list_keys(dict);
  return dict.listed ? seen_.insert({dict.object, key}) : !facts_->has_item(dict.fact, key);
}

void Session::list_keys(ObjectRecord& dict) {
  if (std::exchange(dict.listed, true)) return;
  for (const auto& [key, _] : facts_->known_of(dict.fact)) seen_.insert({dict.object, key.get()});
}

// Whether other objects can be equal to the key, and its death cannot be observed.
bool Session::is_value_as_key(PyObject* key) const {
  if (PyTuple_CheckExact(key)) {
    PyObject** const items = PySequence_Fast_ITEMS(key);
    return std::all_of(items, items + PyTuple_GET_SIZE(key),
                       [this](PyObject* item) { return is_value_as_key(item) || existed(item); });
  }
  return !is_heap_type(Py_TYPE(key)) && !PyWeakref_Check(key) && !PyType_Check(key) && !PyFunction_Check(key) &&
         !PyMethod_Check(key) && !is_tensor(key);
}

// The first of several equal keys, because records are keyed by address. Keys which the program compares are excluded.
PyObject* Session::one_key(PyObject* key) {
  if (PyUnicode_CheckExact(key)) {
    if (PyUnicode_CHECK_INTERNED(key)) return key;
    PyObject* same = Py_NewRef(key);
    PyUnicode_InternInPlace(&same);
    return kept_.emplace_back(PyRef::steal(same)).get();
  }
  if (asks_program(key)) return key;
  PyRef plain = without_symbols(PyRef::borrow(key));
  if (!is_value_as_key(plain.get())) return plain.get() == key ? key : kept_.emplace_back(std::move(plain)).get();
  if (!keys_met_) keys_met_ = checked(PyDict_New());
  PyObject* const met = PyDict_SetDefault(keys_met_.get(), plain.get(), plain.get());
  return met != nullptr ? met : (PyErr_Clear(), key);
}

// Marks the key as read without a guard.
void Session::mark_read(PyObject* container, PyObject* key) {
  key = one_key(key);
  list_keys(objects_[container]);
  seen_.insert({container, key});
}

void Session::read_key(ObjectRecord& record, PyObject* key, PyObject* value) {
  PyObject* const dict = record.object;
  if (!PyUnicode_CheckExact(key)) {
    if (asks_program(key)) return read_asked(record, key, value);
    note_key(dict, key, value != nullptr);
  }
  key = one_key(key);  // a varying number was specialized when it was hashed
  record.looked = true;
  if (record.whole) return learn(value);
  const bool first = is_first_read(record, key);
  if (is_generator(value) && refuse_generator(value, dict, key)) return;
  learn(value);
  if (!first || facts_->dict_item(record.fact, dict, key, value)) return;  // the guard keeps both alive
  mark_read(dict, key);
  kept_.push_back(PyRef::borrow(dict));
  kept_.push_back(PyRef::borrow(key));
}

// A key that functions of the program hashed and compared. They were evaluated, and return the same results for the
// same keys again. Later calls find the entry by the identity of its key.
void Session::read_asked(ObjectRecord& record, PyObject* key, PyObject* value) {
  PyObject* const dict = record.object;
  record.looked = true;
  learn(value);
  if (record.whole) return;
  const auto before = contents_before_.find(dict);
  PyObject* const contents = before != contents_before_.end() ? before->second.get() : dict;
  const auto hold = [&](PyObject* there) {
    PyObject* const then = value_under(contents, there);
    if (then == nullptr || !is_first_read(record, there) || (is_generator(then) && refuse_generator(then))) return;
    if (!facts_->dict_item(record.fact, dict, there, then)) mark_read(dict, there);
  };
  if (value_under(contents, key) != nullptr) return hold(key);
  learn_keys(dict);
  facts_->whole_list(dict, contents);  // guards its keys
  PyObject *there, *held;
  for (Py_ssize_t at = 0; value != nullptr && PyDict_Next(contents, &at, &there, &held);)
    if (held == value) hold(there);
}

void Session::read_whole(PyObject* container, int depth) {
  touch(container);
  ObjectRecord* const known = objects_.find(container);
  if (known == nullptr || !known->known) return depth == 0 ? meet_unknown(container) : void();
  ObjectRecord& record = *known;
  if (record.whole && PyDict_Check(container)) return record.looked = true, void();
  if (depth > 50) return refuse(BreakKind::UnguardedState, "reads containers more than 50 levels deep");
  if (PyObject* inside = viewed(container)) return learn(inside), read_whole(inside, depth + 1);
  if (PyTuple_CheckExact(container)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(container); ++i) {
      learn(PyTuple_GET_ITEM(container, i));
      read_whole(PyTuple_GET_ITEM(container, i), depth + 1);
    }
    return;
  }
  if (PyExceptionInstance_Check(container)) {
    static PyObject* const args = PyUnicode_InternFromString("args");
    const PyRef value = checked(PyObject_GetAttr(container, args));
    return read_computed(container, args, _PyType_Lookup(Py_TYPE(container), args), value.get());
  }
  if (!is_snapshot_container(container)) return;
  record.looked = true;
  if (std::exchange(record.whole, true)) return;
  if (record.keys_written && contents_before_.count(container) == 0)
    return refuse(BreakKind::UnguardedState, "a namespace is read as a whole after it was written");
  const auto before = contents_before_.find(container);
  if (before == contents_before_.end() && PyDict_Check(container) && PyDict_GET_SIZE(container) == 0)
    return facts_->whole_dict(record.fact, container, container), learn_keys(container);
  const PyRef contents = before != contents_before_.end() ? before->second : PyRef::borrow(container);
  if (PyList_Check(contents.get()) || PyDict_Check(contents.get())) {
    const PyRef items = checked(PyDict_Check(contents.get()) ? PyDict_Values(contents.get())
                                                             : PySequence_List(items_of(contents.get()).get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
      if (refuse_generator(PyList_GET_ITEM(items.get(), i))) return;
  }
  if (PyDict_Check(container)) facts_->whole_dict(record.fact, container, contents.get());
  if (PyDict_Check(container)) learn_keys(container);
  if (PyODict_Check(container) && PyDict_GET_SIZE(container) > 1)  // an OrderedDict has its own order
    facts_->whole_list(container, contents.get());
  if (PyList_Check(container) || is_deque(container)) facts_->whole_list(container, contents.get());
  if (PyAnySet_Check(container)) facts_->whole_set(container, contents.get());
  if (PyDict_Check(contents.get()) && PyDict_GET_SIZE(contents.get()) == 0) return;
  const PyRef items = checked(PyDict_Check(contents.get()) ? PyDict_Values(contents.get())
                                                           : PySequence_List(items_of(contents.get()).get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    learn(PyList_GET_ITEM(items.get(), i));
    read_whole(PyList_GET_ITEM(items.get(), i), depth + 1);
  }
}

void Session::read_instance(ObjectRecord& record, PyObject* name, PyObject* value) {
  PyObject* const owner = record.object;
  read_class(Py_TYPE(owner), name);
  PyObject* dict = instance_dict(owner);
  if (dict == nullptr) {
    if (Py_TYPE(owner)->tp_dictoffset == 0) return;
    const PyRef made = PyRef::steal(PyObject_GenericGetDict(owner, nullptr));
    if (!made) return PyErr_Clear();
    dict = made.get();  // the owner keeps it
  }
  if (!std::exchange(record.dictionary_held, true)) facts_->classes().dictionary(owner, dict);
  if (record.names == nullptr || record.names->object != dict) record.names = &objects_[dict];
  read_key(*record.names, name, value);
}

// Whether C code set the member at the creation of the object and never changes it.
static bool never_changes(PyObject* owner, PyObject* member) {
  return Py_IS_TYPE(member, &PyMemberDescr_Type) && !is_heap_type(Py_TYPE(owner)) &&
         (((PyMemberDescrObject*)member)->d_member->flags & READONLY) != 0;
}

// Whether an instance attribute may hide the class attribute, or its absence. Methods are excluded, since programs do
// not replace methods of a single tensor.
static bool may_be_hidden(PyObject* found) { return found == nullptr || Py_TYPE(found)->tp_descr_get == nullptr; }

// A quick test: instances of most classes are smaller.
static bool is_module_object(PyObject* object) {
  return Py_TYPE(object)->tp_basicsize >= PyModule_Type.tp_basicsize && is_of_module_type(object);
}

// Whether the function is the class's __getattribute__. It runs before every lookup, so the read does not depend on the
// instance's attributes yet.
static bool is_getattribute(PyObject* owner, PyObject* function) {
  static PyObject* const name = PyUnicode_InternFromString("__getattribute__");
  return PyFunction_Check(function) && _PyType_Lookup(Py_TYPE(owner), name) == function;
}

// Whether the value may come from a __get__ written in Python. A guard on an object that it created would hold an
// object that nobody else has.
static bool is_given_by_python(PyObject* found, PyObject* value) {
  return found != nullptr && value != found && is_heap_type(Py_TYPE(found)) && is_heap_type(Py_TYPE(value));
}

void Session::read_attribute(const CressetAttributeRead& read) {
  PyObject* owner = read.owner;
  if (is_text(owner)) return;
  touch(owner);
  ObjectRecord* record = objects_.find(owner);
  if ((record == nullptr || !record->known) && is_module_object(owner))
    adopt_module(owner), record = objects_.find(owner);
  if (record == nullptr || !record->known) {
    meet_unknown(owner);
    read_of_new(read);
    return read.stores != 0 ? read_stores(read) : void();
  }
  switch (read.place) {
    case CRESSET_AT_INSTANCE:
      if (is_tensor(owner) && argument_tensors_.count(owner) != 0) return read_of_tensor(owner, read.name);
      return read_instance(*record, read.name, read.value);
    case CRESSET_AT_MODULE:
      return read_key(PyModule_GetDict(owner), read.name, read.value);
    case CRESSET_AT_SLOT:
      read_class(Py_TYPE(owner), read.name);
      learn(read.value);
      if (is_tensor(owner) || never_changes(owner, read.found) || are_slots_known(owner)) return;
      if (first(owner, read.name)) facts_->member(owner, read.found, read.value);
      return;
    case CRESSET_AT_GETSET:
      return read_computed(owner, read.name, read.found, read.value);
    case CRESSET_AT_TYPE:
    case CRESSET_AT_PYTHON:
    case CRESSET_AT_NOWHERE:
      learn(read.found);
      if (read.found != nullptr && is_getattribute(owner, read.found)) return;
      if (!is_tensor(owner))
        read_instance(*record, read.name, nullptr);
      else if (may_be_hidden(read.found))
        read_of_tensor(owner, read.name);
      if (read.found != nullptr && read.value == read.found) learn(read.value);
      return read.stores != 0 ? read_stores(read) : void();
    case CRESSET_AT_CLASS:
      if (read.found != nullptr && Py_TYPE(read.found) == &PyGetSetDescr_Type &&
          _PyType_Lookup((PyTypeObject*)owner, read.name) != read.found)
        return read_computed(owner, read.name, read.found, read.value);
      read_class((PyTypeObject*)owner, read.name);
      learn(read.found);
      if (!is_given_by_python(read.found, read.value) || !is_young(read.value)) learn(read.value);
      return;
    case CRESSET_AT_SUPER:
      learn(read.found);
      return;
    case CRESSET_AT_FOREIGN:
      if (is_thread_local(owner) && first(owner, read.name)) facts_->member(owner, read.name, read.value);
      if (is_foreign(owner))
        refuse(BreakKind::UnguardedState, std::string("reads an attribute of a ") + Py_TYPE(owner)->tp_name);
      learn(read.value);
      return;
  }
}

// A __getattr__ which the evaluator resolved without a frame. Its reads are recorded as if it had run.
void Session::read_stores(const CressetAttributeRead& read) {
  if (ObjectRecord* const found = objects_.find(read.found);
      found != nullptr && found->known && !std::exchange(found->function_held, true))
    facts_->classes().function(read.found);
  PyObject* const dict = instance_dict(read.owner);
  if (dict == nullptr) return;  // the dictionary was removed in the meantime
  if (existed(read.owner)) learn(dict);
  ObjectRecord& names = objects_[dict];
  for (Py_ssize_t i = 0; i < read.stores; ++i) {
    PyObject* const key = PyTuple_GET_ITEM(cresset_eval_stores(), i);
    PyObject* const store = cresset_eval_item(dict, key);
    touch(dict);
    names.known ? read_key(names, key, store) : meet_unknown(dict);
    if (store != nullptr) read_contains(store, read.name);
  }
}

// Also reads the value in the container.
void Session::read_contains(PyObject* container, PyObject* item, bool found) {
  touch(container);
  ObjectRecord* const record = objects_.find(container);
  if (record == nullptr || !record->known) return note_key(container, item, found), meet_unknown(container);
  if (!PyDict_Check(container)) return note_key(container, item, found), read_whole(container);
  read_key(*record, item,
           PyUnicode_CheckExact(item) ? cresset_eval_item(container, item) : value_under(container, item));
}

// The result of a C getter: guarded if a second call returns the same value.
void Session::read_computed(PyObject* owner, PyObject* name, PyObject* found, PyObject* value) {
  const std::string_view text = utf8(name);
  if (is_tensor(owner)) {
    static const std::unordered_set<std::string_view> kOfAutograd = {"grad",    "_grad",    "requires_grad",  "is_leaf",
                                                                     "grad_fn", "_version", "_backward_hooks"};
    // Attributes that no guard covers and no program reproduces.
    static const std::unordered_set<std::string_view> kOfThisOne = {
        "_version", "_base", "_cdata", "output_nr", "retains_grad", "name", "_post_accumulate_grad_hooks"};
    if (kOfThisOne.count(text) != 0 && !is_own_tensor(owner))
      return refuse(BreakKind::UnguardedState, "reads ." + std::string(text) + " of a tensor that was there before");
    if (argument_tensors_.count(owner) != 0 &&
        !facts_->is_tied(owner)) {  // requires_grad and is_leaf are guarded with the tensor
      const bool guarded = text == "requires_grad" || text == "is_leaf" || (text == "grad_fn" && value == Py_None);
      if (kOfAutograd.count(text) != 0 && !guarded)
        refuse(BreakKind::UnguardedState, "reads ." + std::string(text) + " of a tensor among the arguments");
      return;
    }
    if (text == "__dict__") learn(value);
    if (kOfAutograd.count(text) == 0) return hold_metadata(owner);
    if (bridge::TraceTensor::from(tensor_of(owner)) != nullptr && text != "grad" && text != "_grad") return;
  }
  learn(value);
  if (PyCell_Check(owner)) {
    if (mark_whole(owner)) facts_->cell(owner, value);
    return;
  }
  // A guard on an attribute of an object requires guards on its class and its dictionary.
  if (text == "__dict__" && value != nullptr && value == instance_dict(owner) &&
      !std::exchange(objects_[owner].dictionary_held, true))
    facts_->classes().dictionary(owner, value);
  if (PyCode_Check(owner)) return;
  if (PyFunction_Check(owner) && (text == "__code__" || text == "__defaults__" || text == "__kwdefaults__"))
    return facts_->classes().function(owner);
  if (text == "__dict__" || text == "__class__" || found == nullptr || Py_TYPE(found) != &PyGetSetDescr_Type) return;
  if (value == nullptr || !first(owner, name)) return;
  const PyRef again = PyRef::steal(Py_TYPE(found)->tp_descr_get(found, owner, (PyObject*)Py_TYPE(owner)));
  if (!again) return PyErr_Clear();
  if (same_constant(value, again.get())) facts_->member(owner, found, value);
}

// Lifts an older tensor to a constant of the program, which guards its sizes, dtype, ...
void Session::hold_metadata(PyObject* tensor) {
  if (!open() || !existed(tensor) || argument_tensors_.count(tensor) != 0) return;
  const at::Tensor& real = tensor_of(tensor);
  if (!real.defined() || bridge::TraceTensor::from(real) != nullptr || inside_transform()) return;
  if (real.layout() != c10::kStrided || real.is_conj() || real.is_neg() || !real.device().is_cpu() ||
      real.unsafeGetTensorImpl()->is_python_dispatch())
    return;
  try {
    capture_->lift(real);
  } catch (const bridge::CaptureAbort& e) {
    capture_->flush(e.reason());
  }
}

// Guards the keys that program code compares, and the items of sets.
void Session::learn_keys(PyObject* container) {
  if (PyObject_Size(container) == 0 || !first(container, Py_NotImplemented)) return;
  const std::function<void(PyObject*)> learn_key = [&](PyObject* key) {
    learn(key);
    if (!PyTuple_CheckExact(key) && !PyFrozenSet_CheckExact(key)) return;
    const PyRef parts = items_of(key);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts.get()); ++i) learn_key(PyTuple_GET_ITEM(parts.get(), i));
  };
  if (!PyDict_Check(container)) return learn_key(checked(PyFrozenSet_New(container)).get());
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(container, &position, &key, &value)) learn_key(key);
}

void Session::read_context_variable(PyObject* variable, bool will_change) {
  PyObject* now = nullptr;
  if (PyContextVar_Get(variable, nullptr, &now) < 0) return PyErr_Clear();
  const PyRef value = PyRef::steal(now);
  if (variables_before_.count(variable) != 0) return;  // set by this segment
  if (first(variable, Py_None)) facts_->member(variable, Py_None, value.get());
  learn(value.get());
  if (will_change) variables_before_.emplace(variable, value);
}

// Guards a module which was reached without a name or attribute lookup.
void Session::adopt_module(PyObject* module) {
  if (existed(module)) return;
  PyObject* const modules = PyImport_GetModuleDict();
  PyObject* const name = PyDict_GetItemString(PyModule_GetDict(module), "__name__");
  if (name == nullptr || PyDict_GetItemWithError(modules, name) != module) return PyErr_Clear();
  read_module(modules, name, module);
}

namespace {

// Whether a read of the object may return another value at the next call.
bool can_tell_tales(PyObject* object) {
  if (PyTuple_CheckExact(object) || is_tensor(object) || PyType_Check(object) || PyFrozenSet_CheckExact(object))
    return false;
  static PyObject* const overload = private_attribute("torch._ops", "OpOverload");
  if ((PyObject*)Py_TYPE(object) == overload) return false;
  return is_container(object) || is_heap_type(Py_TYPE(object)) || is_of_module_type(object);
}

// torch's own code receives objects of the call from C++ code: hooks, contexts of autograd functions.
bool is_of_torch(PyCodeObject* code) { return !path_in_torch(code->co_filename).empty(); }

}  // namespace

// Whether the call created the object. Also true if this cannot be determined.
bool Session::is_young(PyObject* object) {
  return young_ == nullptr || !PyObject_IS_GC(object) || !PyObject_GC_IsTracked(object) || young_->holds(object);
}

// Objects without a guard are assumed to be from the call. If such an object is older than the call, a hook missed a
// read, and later calls would not be guarded on its contents.
void Session::meet_unknown(PyObject* object) {
  if (object != nullptr && !sums_.empty()) look_at_sum(object);
  if (object == nullptr || !can_tell_tales(object)) return;
  if (const ObjectRecord* const known = objects_.find(object); known != nullptr && (known->known || known->made))
    return;
  if (is_young(object)) return;
  const CressetActivation* const innermost = cresset_eval_current();
  if (innermost != nullptr && is_of_torch(innermost->code)) return;
  if (changed_unseen_.empty() || changed_unseen_.back().get() != object)
    changed_unseen_.push_back(PyRef::borrow(object));
  if (!refusal_.empty()) return;
  // Finalizers are not part of the program.
  for (const CressetActivation* a = innermost; a != nullptr; a = a->caller)
    if (a->entered_from_c && a->function != nullptr && !existed(a->function) && !is_young(a->function)) return;
  refuse(BreakKind::UnguardedState, std::string("reads a ") + Py_TYPE(object)->tp_name +
                                        " that was there before, found in a way that is not known");
}

// Reads from an object of the call, whose class may be older.
void Session::read_of_new(const CressetAttributeRead& read) {
  if (read.place == CRESSET_AT_SUPER) return read_super(read);
  if (read.place == CRESSET_AT_MODULE) return;
  learn_old_class(Py_TYPE(read.owner));
  auto* type = read.place == CRESSET_AT_CLASS ? (PyTypeObject*)read.owner : Py_TYPE(read.owner);
  if (!existed((PyObject*)type)) {  // a class of the call: its base may be older
    type = cresset_attribute_holder(&read);
    if (type != nullptr) learn_old_class(type);
  }
  if (type == nullptr || !existed((PyObject*)type)) return;
  read_class(type, read.name);
  learn(read.found);
}

// A super object is new at each use. The value found lies in a class of the object's MRO.
void Session::read_super(const CressetAttributeRead& read) {
  PyTypeObject* const type = cresset_super_class(read.owner);
  if (type == nullptr || !existed((PyObject*)type)) return;
  read_class(type, read.name);
  learn(read.found);
}

bool Session::looks_into_opaque(const CressetAttributeRead& read) {
  const bool of_itself = read.place == CRESSET_AT_INSTANCE || read.place == CRESSET_AT_GETSET;
  if (of_itself && is_tensor(read.owner) && read.value != nullptr && !read.asked &&
      is_of_this_call(read.owner, read.name))
    return true;
  if (opaque_.empty() || !is_opaque(read.owner) || read.place == CRESSET_AT_TYPE || read.place == CRESSET_AT_PYTHON)
    return false;
  if (read.value != nullptr && !read.asked) return true;
  refuse(BreakKind::UnguardedState, std::string("asks for an attribute of a ") + Py_TYPE(read.owner)->tp_name);
  return false;
}

// getattr(owner, name), reported only with its result.
void Session::read_attribute(PyObject* owner, PyObject* name, PyObject* value) {
  if (!PyUnicode_Check(name)) return;
  touch(owner);
  if (PyModule_Check(owner)) adopt_module(owner);
  if (PyType_Check(owner)) learn_old_class((PyTypeObject*)owner);
  if (!existed(owner)) {
    meet_unknown(owner);
    learn_old_class(Py_TYPE(owner));
    read_class(Py_TYPE(owner), name);
    PyObject* found = existed((PyObject*)Py_TYPE(owner)) ? _PyType_Lookup(Py_TYPE(owner), name) : nullptr;
    return learn(found), value == found ? learn(value) : void();
  }
  if (is_thread_local(owner) && first(owner, name)) facts_->member(owner, name, value);
  if (PyModule_Check(owner)) {  // may be the default of getattr(), or hasattr()'s answer
    PyObject* const own = PyDict_GetItemWithError(PyModule_GetDict(owner), name);
    return read_key(PyModule_GetDict(owner), name, own), own != value ? learn(value) : void();
  }
  if (PyType_Check(owner)) {
    read_class((PyTypeObject*)owner, name);
    if (value == nullptr || (is_given_by_python(_PyType_Lookup((PyTypeObject*)owner, name), value) && is_young(value)))
      return;
    return learn(value);
  }
  PyObject* found = _PyType_Lookup(Py_TYPE(owner), name);
  if (found != nullptr && Py_TYPE(found) == &PyGetSetDescr_Type) return read_computed(owner, name, found, value);
  if (argument_tensors_.count(owner) != 0) return may_be_hidden(found) ? read_of_tensor(owner, name) : void();
  if (found != nullptr && Py_TYPE(found) == &PyMemberDescr_Type) {
    const PyRef now = PyRef::steal(Py_TYPE(found)->tp_descr_get(found, owner, (PyObject*)Py_TYPE(owner)));
    if (!now) PyErr_Clear();
    read_class(Py_TYPE(owner), name);
    learn(now.get());
    if (!are_slots_known(owner) && first(owner, name)) facts_->member(owner, found, now.get());
    return;
  }
  PyObject* dict = instance_dict(owner);
  PyObject* own = dict != nullptr ? PyDict_GetItemWithError(dict, name) : nullptr;
  read_instance(objects_[owner], name, own);
  if (own != nullptr || found == nullptr) return;
  learn(found);
  if (value == found) learn(value);
}

// The statement `import name` returned `value`, a module or its package.
void Session::read_module(PyObject* modules, PyObject* name, PyObject* value) {
  learn(modules);
  if (value == nullptr) return PyDict_Contains(modules, name) == 0 ? read_key(modules, name, nullptr) : void();
  PyObject* const own_name =
      PyModule_Check(value) ? PyDict_GetItemString(PyModule_GetDict(value), "__name__") : nullptr;
  for (PyObject* key : {name, own_name}) {
    PyObject* module = key != nullptr ? PyDict_GetItemWithError(modules, key) : nullptr;
    if (module == nullptr) PyErr_Clear();
    if (module != nullptr) read_key(modules, key, module);
  }
  learn(value);
}

// Reading a missing key from an older defaultdict is a write.
void Session::will_insert(PyObject* dict, PyObject* key) {
  static PyObject* const insert =
      PyDict_GetItemString(type_dict((PyTypeObject*)module_attribute("collections", "defaultdict")), "__missing__");
  static PyObject* const name = PyUnicode_InternFromString("__missing__");
  if (PyDict_CheckExact(dict) || !existed(dict) || _PyType_Lookup(Py_TYPE(dict), name) != insert) return;
  if (value_under(dict, key) != nullptr) return;
  static PyObject* const factory = PyUnicode_InternFromString("default_factory");
  const PyRef maker = checked(PyObject_GenericGetAttr(dict, factory));
  if (!are_slots_known(dict) && first(dict, factory))
    facts_->member(dict, _PyType_Lookup(Py_TYPE(dict), factory), maker.get());
  learn(maker.get());
  if (maker.get() == Py_None) return;
  if (!is_whole(dict)) read_key(dict, key, nullptr);
  const CressetWrite write{CRESSET_WRITE_ITEM, dict, key, nullptr, 0};
  before_write(write);
  inserting_.emplace_back(dict, key);
}

void Session::read_item(PyObject* container, PyObject* key, PyObject* value) {
  if (!is_container(container)) return;
  touch(container);
  if (!inserting_.empty() && inserting_.back() == std::pair(container, key)) {
    inserting_.pop_back();
    return after_write({CRESSET_WRITE_ITEM, container, key, value, 0});
  }
  if (!existed(container)) return note_key(container, key, true), meet_unknown(container);
  if (PyDict_Check(container)) {
    const bool has_it = value != nullptr && PyDict_CheckExact(container);
    return read_key(container, key, has_it ? value : value_under(container, key));  // not the result of __missing__
  }
  read_whole(container);
  if (!PySlice_Check(key)) learn(value);  // reading a slice creates a new object
}

}  // namespace cresset::frontend
