// Reads of objects that are older than the call. They become guards on later calls.
#include "frontend/session/read_log.h"

#include <structmember.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "bridge/capture/trace_tensor.h"
#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/container_snapshot.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/of_type.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/replay/reconstruction.h"
#include "frontend/trace_rules/c_function_effects.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/bound_methods.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/wrapper_tensors.h"

namespace cresset::frontend {

static bool is_generator(PyObject* value) {
  return value != nullptr && (PyGen_CheckExact(value) || PyCoro_CheckExact(value));
}

// A guard would keep a generator alive, and the generator differs at each call.
bool ReadLog::refuse_generator(PyObject* value, PyObject* container, PyObject* key) {
  if (!is_generator(value) || provenance_.is_opaque(value)) return false;
  if (container != nullptr && PyGen_CheckExact(value))
    provenance_.found_generators().push_back({{PyRef::borrow(container), PyRef::borrow(key)}});
  segment_.refuse(BreakKind::UnguardedState, "finds a generator in state that was there before");
  return true;
}

// Whether the key is read for the first time. A few recorded keys are searched linearly among the guards.
bool ReadLog::is_listed_first(ObjectRecord& dict, PyObject* key) {
  constexpr size_t kFew = 32;
  if (!dict.listed && segment_.guards().known_of(dict.guard).size() > kFew) list_keys(dict);
  return dict.listed ? seen_.insert({dict.object, key}) : !segment_.guards().has_item(dict.guard, key);
}

void ReadLog::list_keys(ObjectRecord& dict) {
  if (std::exchange(dict.listed, true)) return;
  for (const auto& [key, _] : segment_.guards().known_of(dict.guard)) seen_.insert({dict.object, key.get()});
}

// Whether other objects can be equal to the key, and its death cannot be observed.
bool ReadLog::is_value_as_key(PyObject* key) const {
  if (PyTuple_CheckExact(key)) {
    PyObject** const items = PySequence_Fast_ITEMS(key);
    return std::all_of(items, items + PyTuple_GET_SIZE(key),
                       [this](PyObject* item) { return is_value_as_key(item) || provenance_.existed(item); });
  }
  return !is_heap_type(Py_TYPE(key)) && !PyWeakref_Check(key) && !PyType_Check(key) && !PyFunction_Check(key) &&
         !PyMethod_Check(key) && !is_tensor(key);
}

// The first of several equal keys, because records are keyed by address. Keys which the program compares are excluded.
PyObject* ReadLog::one_key(PyObject* key) {
  if (PyUnicode_CheckExact(key)) {
    if (PyUnicode_CHECK_INTERNED(key)) return key;
    PyObject* same = Py_NewRef(key);
    PyUnicode_InternInPlace(&same);
    return provenance_.keep(PyRef::steal(same));
  }
  if (asks_program(key)) return key;
  PyRef plain = without_symbols(PyRef::borrow(key));
  if (!is_value_as_key(plain.get())) return plain.get() == key ? key : provenance_.keep(std::move(plain));
  if (!keys_met_) keys_met_ = checked(PyDict_New());
  PyObject* const met = PyDict_SetDefault(keys_met_.get(), plain.get(), plain.get());
  return met != nullptr ? met : (PyErr_Clear(), key);
}

// Marks the key as read without a guard.
void ReadLog::mark_read(PyObject* container, PyObject* key) {
  key = one_key(key);
  list_keys(provenance_.record(container));
  seen_.insert({container, key});
}

void ReadLog::read_key(ObjectRecord& record, PyObject* key, PyObject* value) {
  PyObject* const dict = record.object;
  if (!PyUnicode_CheckExact(key)) {
    if (asks_program(key)) return read_asked(record, key, value);
    identities_.note_key(dict, key, value != nullptr);
  }
  key = one_key(key);  // a varying number was specialized when it was hashed
  record.looked = true;
  if (record.whole) return learn(value);
  const bool first = is_first_read(record, key);
  if (is_generator(value) && refuse_generator(value, dict, key)) return;
  learn(value);
  if (!first || segment_.guards().dict_item(record.guard, dict, key, value)) return;  // the guard keeps both alive
  mark_read(dict, key);
  provenance_.keep(PyRef::borrow(dict));
  provenance_.keep(PyRef::borrow(key));
}

// A key that functions of the program hashed and compared. They were evaluated, and return the same results for the
// same keys again. Later calls find the entry by the identity of its key.
void ReadLog::read_asked(ObjectRecord& record, PyObject* key, PyObject* value) {
  PyObject* const dict = record.object;
  record.looked = true;
  learn(value);
  if (record.whole) return;
  PyObject* const before = provenance_.contents_before(dict);
  PyObject* const contents = before != nullptr ? before : dict;
  const auto hold = [&](PyObject* there) {
    PyObject* const then = value_under(contents, there);
    if (then == nullptr || !is_first_read(record, there) || (is_generator(then) && refuse_generator(then))) return;
    if (!segment_.guards().dict_item(record.guard, dict, there, then)) mark_read(dict, there);
  };
  if (value_under(contents, key) != nullptr) return hold(key);
  learn_keys(dict);
  segment_.guards().whole_list(dict, contents);  // guards its keys
  PyObject *there, *held;
  for (Py_ssize_t at = 0; value != nullptr && PyDict_Next(contents, &at, &there, &held);)
    if (held == value) hold(there);
}

void ReadLog::read_whole(PyObject* container, int depth) {
  subgraphs_.touch(container);
  ObjectRecord* const known = provenance_.record_of(container);
  if (known == nullptr || !known->known) return depth == 0 ? meet_unknown(container) : void();
  ObjectRecord& record = *known;
  if (record.whole && PyDict_Check(container)) return record.looked = true, void();
  if (depth > 50) return segment_.refuse(BreakKind::UnguardedState, "reads containers more than 50 levels deep");
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
  if (record.keys_written && provenance_.contents_before(container) == nullptr)
    return segment_.refuse(BreakKind::UnguardedState, "a namespace is read as a whole after it was written");
  PyObject* const before = provenance_.contents_before(container);
  if (before == nullptr && PyDict_Check(container) && PyDict_GET_SIZE(container) == 0)
    return segment_.guards().whole_dict(record.guard, container, container), learn_keys(container);
  const PyRef contents = PyRef::borrow(before != nullptr ? before : container);
  if (PyList_Check(contents.get()) || PyDict_Check(contents.get())) {
    const PyRef items = checked(PyDict_Check(contents.get()) ? PyDict_Values(contents.get())
                                                             : PySequence_List(items_of(contents.get()).get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
      if (refuse_generator(PyList_GET_ITEM(items.get(), i))) return;
  }
  if (PyDict_Check(container)) segment_.guards().whole_dict(record.guard, container, contents.get());
  if (PyDict_Check(container)) learn_keys(container);
  if (PyODict_Check(container) && PyDict_GET_SIZE(container) > 1)  // an OrderedDict has its own order
    segment_.guards().whole_list(container, contents.get());
  if (PyList_Check(container) || is_deque(container)) segment_.guards().whole_list(container, contents.get());
  if (PyAnySet_Check(container)) segment_.guards().whole_set(container, contents.get());
  if (PyDict_Check(contents.get()) && PyDict_GET_SIZE(contents.get()) == 0) return;
  const PyRef items = checked(PyDict_Check(contents.get()) ? PyDict_Values(contents.get())
                                                           : PySequence_List(items_of(contents.get()).get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    learn(PyList_GET_ITEM(items.get(), i));
    read_whole(PyList_GET_ITEM(items.get(), i), depth + 1);
  }
}

// Also reads the value in the container.
void ReadLog::read_contains(PyObject* container, PyObject* item, bool found) {
  subgraphs_.touch(container);
  ObjectRecord* const record = provenance_.record_of(container);
  if (record == nullptr || !record->known) return identities_.note_key(container, item, found), meet_unknown(container);
  if (!PyDict_Check(container)) return identities_.note_key(container, item, found), read_whole(container);
  read_key(*record, item,
           PyUnicode_CheckExact(item) ? cresset_eval_item(container, item) : value_under(container, item));
}

// The result of a C getter: guarded if a second call returns the same value.
void ReadLog::read_computed(PyObject* owner, PyObject* name, PyObject* found, PyObject* value) {
  const std::string_view text = utf8(name);
  if (is_tensor(owner)) {
    static const std::unordered_set<std::string_view> kOfAutograd = {"grad",    "_grad",    "requires_grad",  "is_leaf",
                                                                     "grad_fn", "_version", "_backward_hooks"};
    // Attributes that no guard covers and no program reproduces.
    static const std::unordered_set<std::string_view> kOfThisOne = {
        "_version", "_base", "_cdata", "output_nr", "retains_grad", "name", "_post_accumulate_grad_hooks"};
    if (kOfThisOne.count(text) != 0 && !is_own_tensor(owner))
      return segment_.refuse(BreakKind::UnguardedState,
                             "reads ." + std::string(text) + " of a tensor that was there before");
    if (provenance_.is_argument_tensor(owner) &&
        !segment_.guards().is_tied(owner)) {  // requires_grad and is_leaf are guarded with the tensor
      const bool guarded = text == "requires_grad" || text == "is_leaf" || (text == "grad_fn" && value == Py_None);
      if (kOfAutograd.count(text) != 0 && !guarded)
        segment_.refuse(BreakKind::UnguardedState, "reads ." + std::string(text) + " of a tensor among the arguments");
      return;
    }
    if (text == "__dict__") learn(value);
    if (kOfAutograd.count(text) == 0) return hold_metadata(owner);
    if (bridge::TraceTensor::from(tensor_of(owner)) != nullptr && text != "grad" && text != "_grad") return;
  }
  learn(value);
  if (PyCell_Check(owner)) {
    if (provenance_.mark_whole(owner)) segment_.guards().cell(owner, value);
    return;
  }
  // A guard on an attribute of an object requires guards on its class and its dictionary.
  if (text == "__dict__" && value != nullptr && value == instance_dict(owner) &&
      !std::exchange(provenance_.record(owner).dictionary_held, true))
    segment_.guards().classes().dictionary(owner, value);
  if (PyCode_Check(owner)) return;
  if (PyFunction_Check(owner) && (text == "__code__" || text == "__defaults__" || text == "__kwdefaults__"))
    return segment_.guards().classes().function(owner);
  if (text == "__dict__" || text == "__class__" || found == nullptr || Py_TYPE(found) != &PyGetSetDescr_Type) return;
  if (value == nullptr || !first(owner, name)) return;
  const PyRef again = PyRef::steal(Py_TYPE(found)->tp_descr_get(found, owner, (PyObject*)Py_TYPE(owner)));
  if (!again) return PyErr_Clear();
  if (same_constant(value, again.get())) segment_.guards().member(owner, found, value);
}

// Lifts an older tensor to a constant of the program, which guards its sizes, dtype, ...
void ReadLog::hold_metadata(PyObject* tensor) {
  if (!segment_.is_open() || !provenance_.existed(tensor) || provenance_.is_argument_tensor(tensor)) return;
  const at::Tensor& real = tensor_of(tensor);
  if (!real.defined() || bridge::TraceTensor::from(real) != nullptr || inside_transform()) return;
  if (real.layout() != c10::kStrided || real.is_conj() || real.is_neg() || !real.device().is_cpu() ||
      real.unsafeGetTensorImpl()->is_python_dispatch())
    return;
  try {
    segment_.capture().lift(real);
  } catch (const bridge::CaptureAbort& e) {
    segment_.capture().flush(e.reason());
  }
}

// Guards the keys that program code compares, and the items of sets.
void ReadLog::learn_keys(PyObject* container) {
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

// Objects without a guard are assumed to be from the call. If such an object is older than the call, a hook missed a
// read, and later calls would not be guarded on its contents.
void ReadLog::meet_unknown(PyObject* object) {
  if (object != nullptr && provenance_.any_sums()) look_at_sum(object);
  if (object == nullptr || !can_tell_tales(object)) return;
  if (const ObjectRecord* const known = provenance_.record_of(object);
      known != nullptr && (known->known || known->made))
    return;
  if (provenance_.is_new(object)) return;
  const CressetActivation* const innermost = cresset_eval_current();
  if (innermost != nullptr && is_of_torch(innermost->code)) return;
  provenance_.add_changed_unseen(object);
  if (segment_.is_refused()) return;
  // Finalizers are not part of the program.
  for (const CressetActivation* a = innermost; a != nullptr; a = a->caller)
    if (a->entered_from_c && a->function != nullptr && !provenance_.existed(a->function) &&
        !provenance_.is_new(a->function))
      return;
  segment_.refuse(BreakKind::UnguardedState, std::string("reads a ") + Py_TYPE(object)->tp_name +
                                                 " that was there before, found in a way that is not known");
}

void ReadLog::read_item(PyObject* container, PyObject* key, PyObject* value) {
  if (!is_container(container)) return;
  subgraphs_.touch(container);
  if (!provenance_.existed(container)) return identities_.note_key(container, key, true), meet_unknown(container);
  if (PyDict_Check(container)) {
    const bool has_it = value != nullptr && PyDict_CheckExact(container);
    return read_key(container, key, has_it ? value : value_under(container, key));  // not the result of __missing__
  }
  read_whole(container);
  if (!PySlice_Check(key)) learn(value);  // reading a slice creates a new object
}

void ReadLog::learn_object(PyObject* object) {
  ObjectRecord& record = provenance_.record(object);
  if (record.known || record.made) return;
  record.known = true;
  record.kept = PyRef::borrow(object);
  if (!is_plain_tensor(object)) meet(object);
}

// Records further guards for an object that is met for the first time.
void ReadLog::meet(PyObject* object) {
  if (PyType_Check(object)) learn_class((PyTypeObject*)object);
  if (PyMethod_Check(object)) learn_function(object);
  // The items of a named tuple are read by name without a hook. Tuples of the call are excluded.
  if (PyTuple_Check(object) && !PyTuple_CheckExact(object) && !provenance_.is_new(object))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) learn(PyTuple_GET_ITEM(object, i));
  if (is_heap_type(Py_TYPE(object))) {
    segment_.guards().classes().instance(object);
    learn((PyObject*)Py_TYPE(object));
  }
  for (const PyRef& inner : behind(object)) {
    learn(inner.get());
    if (PyTuple_Check(inner.get()) || PyDict_Check(inner.get())) read_whole(inner.get());  // of a partial function
    if (PyType_Check(inner.get())) segment_.guards().classes().makes_instances((PyTypeObject*)inner.get());
  }
}

// An object which is guarded elsewhere, including its class.
void ReadLog::learn_guarded(PyObject* object) {
  if (object == nullptr || is_constant_value(object)) return;
  ObjectRecord& record = provenance_.record(object);
  if (!std::exchange(record.known, true)) record.kept = PyRef::borrow(object);
  record.dictionary_held = true;  // differs at each call: no guard may mention it
  if (!is_tensor(object)) learn((PyObject*)Py_TYPE(object));
}

void ReadLog::ignore(PyObject* dict_or_class, const char* key) {
  PyObject* const name = provenance_.keep(checked(PyUnicode_InternFromString(key)));
  ignored_.insert({dict_or_class, name});
  mark_read(dict_or_class, name);
  if (segment_.has_begun() && PyType_Check(dict_or_class))
    segment_.guards().classes().elsewhere((PyTypeObject*)dict_or_class, name);
}

void ReadLog::learn_function(PyObject* function) {
  learn(function);
  if (!PyMethod_Check(function)) return;
  learn(PyMethod_GET_SELF(function));
  learn(PyMethod_GET_FUNCTION(function));
}

// Reads a container, and nested containers of the call. read_whole() handles older containers.
void ReadLog::read_deep(PyObject* object, int depth) {
  if (provenance_.existed(object)) return read_whole(object);
  if (provenance_.any_sums()) look_at_sum(object);
  if (depth > 50 || !is_container(object)) return;
  if (PyDict_Check(object)) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) read_deep(value, depth + 1);
  } else if (PyList_Check(object) || PyTuple_Check(object)) {
    PyObject** items = PySequence_Fast_ITEMS(object);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) read_deep(items[i], depth + 1);
  }
}

// Turns the concatenation into an ordinary list because it is inspected. Its parts then count as inspected.
void ReadLog::look_at_sum(PyObject* list) {
  if (const PyRef opened = provenance_.open_sum(list)) read_whole(opened.get());
}

std::vector<PyRef> ReadLog::behind(PyObject* object) {
  std::vector<PyRef> out;
  const auto add = [&](const char* name) {
    PyRef member = PyRef::steal(PyObject_GetAttrString(object, name));
    if (!member) return PyErr_Clear();
    if (member.get() != Py_None) out.push_back(std::move(member));
  };
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyProperty_Type) add("fget"), add("fset"), add("fdel");
  static PyObject* const partial = module_attribute("functools", "partial");
  if (type == (PyTypeObject*)partial) add("func"), add("args"), add("keywords");
  if (type == &PyStaticMethod_Type || type == &PyClassMethod_Type) add("__func__");
  if (is_c_function(object) && has_own_self(object) && !is_foreign(PyCFunction_GET_SELF(object)))
    out.push_back(PyRef::borrow(PyCFunction_GET_SELF(object)));
  return out;
}

// C code calls its __get__ before the hook for the lookup.
static bool is_python_descriptor(PyObject* object) {
  return is_heap_type(Py_TYPE(object)) && Py_TYPE(object)->tp_descr_get != nullptr;
}

// Includes the methods that C code calls without a hook.
void ReadLog::learn_class(PyTypeObject* type) {
  if (is_class_of_numbers(type) || segment_.guards().classes().type(type) == nullptr) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = (PyTypeObject*)PyTuple_GET_ITEM(type->tp_mro, i);
    if (!is_heap_type(base) || !first((PyObject*)base, Py_NotImplemented)) continue;
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(type_dict(base), &position, &name, &value))
      if (is_python_descriptor(value) || (is_special_name(name) && (PyFunction_Check(value) || !behind(value).empty())))
        learn(value);
  }
}

// The program looks up a name in a class that it did not create.
void ReadLog::read_class(PyTypeObject* type, PyObject* name) {
  AddressPair& recent = class_reads_[address_hash(AddressPair{type, name}) >> (64 - kClassReads)];
  if (recent == AddressPair{type, name} || !provenance_.existed((PyObject*)type)) return;
  recent = {type, name};
  if (!first((PyObject*)type, name) || is_class_of_numbers(type)) return;
  if (!PyUnicode_CHECK_INTERNED(name)) provenance_.keep(PyRef::borrow(name));
  segment_.guards().classes().name(type, name);
}

// Guards the class of an object of the call, if the class is older and was reached without a hook.
void ReadLog::learn_old_class(PyTypeObject* type) {
  if (is_heap_type(type) && !provenance_.existed((PyObject*)type) && !provenance_.is_new((PyObject*)type))
    learn((PyObject*)type);
}

void ReadLog::read_weakref(PyObject* reference, PyObject* result) {
  if (!provenance_.existed(reference) || provenance_.argument_path(reference) != nullptr)
    return;  // among the arguments it is a part of them
  if (first(reference, Py_None))
    segment_.guards().member(reference, Py_None, checked(PyLong_FromVoidPtr(PyWeakref_GET_OBJECT(reference))).get());
  learn(result);
}

// C methods which look an argument up. All other methods report the key that they read.
void ReadLog::note_keys(const CCall& what, const CressetCall& call) {
  if (what.self == nullptr || what.first >= static_cast<size_t>(call.nargs)) return;
  PyObject* const key = call.args[what.first];
  const std::string_view name = what.name;
  if (!provenance_.existed(what.self))
    return is_equal_by_identity(key) ? identities_.note_key(what.self, key, true) : void();
  // The method may compare the key with existing keys.
  if ((PyDict_Check(what.self) || PyAnySet_Check(what.self)) && !is_constant_value(key)) learn_keys(what.self);
  if (name == "__contains__" && PyAnySet_Check(what.self) && is_equal_by_identity(key))
    return identities_.note_member(what.self, key);
  static constexpr std::array<std::string_view, 8> kOfOneKey = {"setdefault", "pop",   "discard",     "remove",
                                                                "index",      "count", "__setitem__", "__delitem__"};
  if (is_among(kOfOneKey, name)) identities_.note_key(what.self, key, true);
}

// Two objects, compared by `is`. The guard that led to an object in state determines its identity.
void ReadLog::note_is(PyObject* left, PyObject* right) {
  identities_.note_is_of_values(left, right);
  if (left == right) {  // or by the identity guard of another argument
    if (provenance_.argument_path(left) != nullptr && has_read(left, Py_Ellipsis)) segment_.guards().same_object(left);
    return;
  }
  if (provenance_.is_argument(left) && provenance_.is_argument(right)) return segment_.guards().all_different();
  for (auto [one, other] : {std::pair(left, right), std::pair(right, left)})
    if (provenance_.is_argument(one) && Py_TYPE(one) == Py_TYPE(other) && provenance_.existed(other) &&
        !is_constant_value(other))
      segment_.guards().stranger(one, checked(PyTuple_Pack(1, other)).get(), StateGuards::HeldBy::Identity);
}

void ReadLog::read_cell(PyObject* cell, PyObject* value) {
  subgraphs_.touch(cell);
  if (!provenance_.existed(cell) || (!provenance_.is_whole(cell) && refuse_generator(value, cell))) return;
  learn(value);
  if (provenance_.mark_whole(cell)) segment_.guards().cell(cell, value);
}

void ReadLog::begin() {
  seen_.clear();
  keys_met_ = {};
  class_reads_.fill({});
  ignored_.each([&](const AddressPair& ignored, auto) {
    mark_read((PyObject*)ignored.a, (PyObject*)ignored.b);
    if (PyType_Check((PyObject*)ignored.a))
      segment_.guards().classes().elsewhere((PyTypeObject*)ignored.a, (PyObject*)ignored.b);
  });
}

}  // namespace cresset::frontend
