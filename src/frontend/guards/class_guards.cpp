#include "frontend/guards/class_guards.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "frontend/cpython/kept_for_good.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/eval/class_version.h"
#include "frontend/guards/state_guards.h"

namespace cresset::frontend {
namespace {

// Returns 0 if changes of the type are not visible.
unsigned type_version(PyTypeObject* type) {
  if (const unsigned version = cresset_class_version(type); version != 0) return version;
  static PyObject* const name = PyUnicode_InternFromString("__class__");
  _PyType_Lookup(type, name);  // assigns a version
  return cresset_class_version(type);
}

bool can_change(PyTypeObject* type) { return is_heap_type(type); }

// Special names which are looked up only to create, copy or describe instances. Lookups by a program are reported
// through a hook.
bool is_about_making(PyObject* name) {
  static constexpr std::array<std::string_view, 9> names = {"__init__",     "__new__",    "__setstate__",
                                                            "__getstate__", "__reduce__", "__reduce_ex__",
                                                            "__module__",   "__doc__",    "__annotations__"};
  return std::find(names.begin(), names.end(), utf8(name)) != names.end();
}

PyRef registration_token() {
  static PyObject* const ask = module_attribute("_abc", "get_cache_token");
  return checked(PyObject_CallNoArgs(ask));
}

// Appends [(class, its registrations)] for an abstract class and its derived classes.
void add_registered(PyObject* type, const PyRef& out) {
  static PyObject* const dump = module_attribute("_abc", "_get_dump");
  const PyRef state = PyRef::steal(PyObject_CallOneArg(dump, type));
  if (!state) PyErr_Clear();
  PyObject* registry = state ? PyTuple_GET_ITEM(state.get(), 0) : nullptr;
  if (registry != nullptr && PySet_GET_SIZE(registry) > 0)
    if (PyList_Append(out.get(), checked(PyTuple_Pack(2, type, registry)).get()) < 0) throw PythonError{};
  const PyRef derived = checked(PyObject_CallMethod((PyObject*)&PyType_Type, "__subclasses__", "O", type));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(derived.get()); ++i)
    add_registered(PyList_GET_ITEM(derived.get(), i), out);
}

PyRef registered_with(PyObject* type) {
  PyRef out = checked(PyList_New(0));
  add_registered(type, out);
  return out;
}

// Interns the name, like the keys of a class.
PyRef interned(PyObject* name) {
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  return PyRef::steal(name);
}

// Whether one function is the other, wrapped by torch.compile to number the modules that are made from then on: its
// first use in a process does so to Module.__init__ and Module.__setstate__.
bool numbers_modules(PyObject* wrapper, PyObject* function) {
  if (wrapper == nullptr || function == nullptr || !PyFunction_Check(wrapper) || !PyFunction_Check(function))
    return false;
  const auto* outer = (PyFunctionObject*)wrapper;
  PyObject* const module = PyDict_GetItemString(outer->func_globals, "__name__");
  if (module == nullptr || std::string_view(utf8(module)) != "torch._dynamo.mutation_guard" ||
      outer->func_closure == nullptr)
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outer->func_closure); ++i)
    if (PyCell_GET(PyTuple_GET_ITEM(outer->func_closure, i)) == function) return true;
  return false;
}

PyFunctionObject* as_function(const PyRef& function) { return (PyFunctionObject*)function.get(); }

}  // namespace

bool is_special_name(PyObject* name) {
  const std::string_view text = utf8(name);
  return text.size() > 4 && text.starts_with("__") && text.ends_with("__");
}

size_t ClassGuards::namespace_of(PyTypeObject* type) {
  const auto [known, fresh] = namespace_of_.emplace((PyObject*)type, namespaces_.size());
  if (!fresh) return known->second;
  PyRef contents = checked(PyDict_Copy(type_dict(type)));
  for (const Name& other : elsewhere_)  // the place of an input holds a symbol
    if (other.type == (PyObject*)type && PyDict_DelItem(contents.get(), other.name) < 0) PyErr_Clear();
  namespaces_.push_back({PyRef::borrow((PyObject*)type), std::move(contents), dict_version(type_dict(type))});
  return known->second;
}

ClassGuards::Type* ClassGuards::type(PyTypeObject* type) {
  if (!can_change(type)) return nullptr;
  const auto [known, fresh] = type_of_.emplace((PyObject*)type, types_.size());
  if (!fresh) return &types_[known->second];
  Type guard;
  guard.type = PyRef::borrow((PyObject*)type);
  guard.mro = PyRef::borrow(type->tp_mro);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = (PyTypeObject*)PyTuple_GET_ITEM(type->tp_mro, i);
    if (can_change(base)) guard.namespaces.push_back(namespace_of(base));
  }
  types_.push_back(std::move(guard));
  tags_.push_back({type, type_version(type)});
  return &types_.back();
}

void ClassGuards::name(PyTypeObject* type, PyObject* name) {
  Type* const guard = this->type(type);
  if (guard == nullptr || !PyUnicode_CheckExact(name)) return;
  PyRef kept = interned(name);
  if (guard->names.insert(kept.get()).second) guard->kept_names.push_back(std::move(kept));
}

void ClassGuards::elsewhere(PyTypeObject* type, PyObject* name) {
  PyRef kept = interned(name);
  if (!elsewhere_.insert({(PyObject*)type, kept.get()}).second) return;
  kept_.push_back(PyRef::borrow((PyObject*)type));
  kept_.push_back(std::move(kept));
}

bool ClassGuards::speaks_of(PyTypeObject* type, PyObject* name) const {
  const auto known = namespace_of_.find((PyObject*)type);
  if (known == namespace_of_.end()) return false;
  const PyRef key = interned(name);
  return std::any_of(types_.begin(), types_.end(), [&](const Type& guard) {
    return guard.names.count(key.get()) != 0 &&
           std::find(guard.namespaces.begin(), guard.namespaces.end(), known->second) != guard.namespaces.end();
  });
}

void ClassGuards::changed(const Changed& tell) const {
  for (const Type& guard : types_)
    for (const size_t at : guard.namespaces) {
      const Namespace& then = namespaces_[at];
      PyObject* const now = type_dict((PyTypeObject*)then.type.get());
      PyObject *name, *value;
      Py_ssize_t position = 0;
      while (PyDict_Next(then.contents.get(), &position, &name, &value)) {
        PyObject* other = PyDict_GetItemWithError(now, name);
        if (other == nullptr) PyErr_Clear();
        if (other != nullptr && other != value && counts(guard, then, name)) tell(then.type.get(), name, value, other);
      }
    }
}

void ClassGuards::makes_instances(PyTypeObject* type) {
  if (Type* const guard = this->type(type)) guard->makes_instances = true;
}

void ClassGuards::instance(PyObject* object) {
  if (can_change(Py_TYPE(object)))
    instances_.push_back({PyRef::borrow(object), PyRef::borrow((PyObject*)Py_TYPE(object))});
}

void ClassGuards::dictionary(PyObject* object, PyObject* dict) {
  PyObject* const* place = _PyObject_GetDictPtr(object);
  if (place != nullptr && *place == dict && can_change(Py_TYPE(object)))
    dictionaries_.push_back({PyRef::borrow(object), place, PyRef::borrow(dict)});
}

void ClassGuards::function(PyObject* function) {
  if (!PyFunction_Check(function) || !known_functions_.insert(function).second) return;
  const auto* f = (PyFunctionObject*)function;
  functions_.push_back({PyRef::borrow(function), PyRef::borrow(f->func_code), PyRef::borrow(f->func_defaults),
                        PyRef::borrow(f->func_kwdefaults)});
}

void ClassGuards::abstract(PyTypeObject* type, PyObject* asked, bool answer) {
  if (!token_) token_ = registration_token();
  auto guard = std::find_if(abstracts_.begin(), abstracts_.end(),
                            [&](const Abstract& known) { return known.type.get() == (PyObject*)type; });
  if (guard == abstracts_.end())
    guard = abstracts_.insert(guard, {PyRef::borrow((PyObject*)type), registered_with((PyObject*)type), {}});
  const auto is_asked = [&](const auto& known) { return known.first.get() == asked; };
  if (std::none_of(guard->answers.begin(), guard->answers.end(), is_asked))
    guard->answers.emplace_back(PyRef::borrow(asked), answer);
}

bool ClassGuards::Abstract::answers_hold() const {
  static PyObject* const ask = module_attribute("_abc", "_abc_subclasscheck");
  return std::all_of(answers.begin(), answers.end(), [&](const auto& known) {
    const PyRef now = PyRef::steal(PyObject_CallFunctionObjArgs(ask, type.get(), known.first.get(), nullptr));
    if (!now) PyErr_Clear();
    return now && (now.get() == Py_True) == known.second;
  });
}

bool ClassGuards::abstracts_hold(std::string* why) {
  if (!token_) return true;
  PyRef now = registration_token();
  if (PyObject_RichCompareBool(now.get(), token_.get(), Py_EQ) == 1) return true;
  for (Abstract& guard : abstracts_) {
    PyRef registered = registered_with(guard.type.get());
    if (PyObject_RichCompareBool(registered.get(), guard.registered.get(), Py_EQ) == 1) continue;
    PyErr_Clear();
    if (!guard.answers_hold()) {
      if (why != nullptr)
        *why = std::string("a class was registered with ") + ((PyTypeObject*)guard.type.get())->tp_name;
      return false;
    }
    guard.registered = std::move(registered);
  }
  token_ = std::move(now);
  return true;
}

bool ClassGuards::counts(const Type& guard, const Namespace& then, PyObject* key) const {
  const PyRef kept = interned(key);  // keys of a class made by type() may not be interned
  PyObject* const name = kept.get();
  if (elsewhere_.count({then.type.get(), name}) != 0) return false;
  if (is_kept_in_class(name)) return false;
  if (guard.makes_instances || guard.names.count(name) != 0) return true;
  return is_special_name(name) && !is_about_making(name);
}

bool ClassGuards::same(const Type& guard, const Namespace& then, std::string* why) const {
  PyObject* const now = type_dict((PyTypeObject*)then.type.get());
  const uint64_t version = dict_version(now);
  if (version != 0 && version == then.version) return true;
  const auto differs = [&](PyObject* left, PyObject* right) {
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(left, &position, &name, &value)) {
      PyObject* other = PyDict_GetItemWithError(right, name);
      if (other == nullptr) PyErr_Clear();
      if (other == value || !counts(guard, then, name)) continue;
      if (other != nullptr && same_constant(value, other)) continue;
      if (numbers_modules(value, other) || numbers_modules(other, value)) continue;
      if (why != nullptr)
        *why = std::string("class ") + ((PyTypeObject*)guard.type.get())->tp_name + ": " + utf8(name) + " changed";
      return true;
    }
    return false;
  };
  return !differs(then.contents.get(), now) && !differs(now, then.contents.get());
}

bool ClassGuards::same(const Type& guard, std::string* why) const {
  if (((PyTypeObject*)guard.type.get())->tp_mro != guard.mro.get()) {
    if (why != nullptr) *why = std::string("class ") + ((PyTypeObject*)guard.type.get())->tp_name + ": other bases";
    return false;
  }
  return std::all_of(guard.namespaces.begin(), guard.namespaces.end(),
                     [&](size_t at) { return same(guard, namespaces_[at], why); });
}

bool ClassGuards::types_hold(std::string* why) {
  for (size_t i = 0; i < tags_.size(); ++i) {
    TypeTag& tag = tags_[i];
    if (tag.type->tp_version_tag == tag.version && tag.version != 0) continue;  // a changed class loses its tag
    const unsigned now = type_version(tag.type);
    if ((now == 0 || now != tag.version) && !same(types_[i], why)) return false;
    tag.version = now;
  }
  return true;
}

bool ClassGuards::objects_hold(std::string* why) {
  if (held_count_ != instances_.size() + dictionaries_.size()) hold_objects();
  if (std::all_of(held_.begin(), held_.end(), [](const HeldObject& held) { return held.unchanged(); })) return true;
  for (const Instance& guard : instances_) {
    if ((PyObject*)Py_TYPE(guard.object.get()) == guard.type.get()) continue;
    if (why != nullptr)
      *why = std::string("an object of class ") + ((PyTypeObject*)guard.type.get())->tp_name + " is one of class " +
             Py_TYPE(guard.object.get())->tp_name;
    return false;
  }
  for (const Dictionary& guard : dictionaries_) {
    if (*guard.place == guard.dict.get()) continue;
    if (why != nullptr)
      *why = std::string("the __dict__ of a ") + Py_TYPE(guard.object.get())->tp_name + " was replaced";
    return false;
  }
  return true;
}

void ClassGuards::hold_objects() {
  static PyObject* const no_dictionary = nullptr;
  std::unordered_map<PyObject*, HeldObject> held;
  for (const Instance& guard : instances_)
    held.emplace(guard.object.get(),
                 HeldObject{guard.object.get(), (PyTypeObject*)guard.type.get(), &no_dictionary, nullptr});
  for (const Dictionary& guard : dictionaries_) {
    PyObject* const object = guard.object.get();
    HeldObject& with = held.emplace(object, HeldObject{object, Py_TYPE(object), nullptr, nullptr}).first->second;
    with.place = guard.place;
    with.dict = guard.dict.get();
  }
  held_.clear();
  for (const auto& [_, each] : held) held_.push_back(each);
  std::sort(held_.begin(), held_.end(), [](const auto& a, const auto& b) { return a.object < b.object; });
  held_count_ = instances_.size() + dictionaries_.size();
}

bool ClassGuards::holds(std::string* why) {
  if (!types_hold(why) || !abstracts_hold(why) || !objects_hold(why)) return false;
  for (const Function& guard : functions_) {
    const auto* f = as_function(guard.function);
    if (f->func_code == guard.code.get() && f->func_defaults == guard.defaults.get() &&
        f->func_kwdefaults == guard.keyword_defaults.get())
      continue;
    if (why != nullptr) *why = std::string("function ") + utf8(f->func_qualname) + ": its code or defaults changed";
    return false;
  }
  return true;
}

void ClassGuards::texts(std::vector<std::string>& out) const {
  for (const Type& guard : types_)
    out.push_back(std::string("class ") + ((PyTypeObject*)guard.type.get())->tp_name + " is unchanged");
  for (const Function& guard : functions_)
    out.push_back(std::string("function ") + utf8(as_function(guard.function)->func_qualname) + " is unchanged");
}

void ClassGuards::filter(const std::vector<bool>& types, const std::vector<bool>& functions) {
  std::unordered_set<PyObject*> dropped;
  for (size_t i = 0; i < types_.size(); ++i)
    if (!types[i]) dropped.insert(types_[i].type.get());
  std::erase_if(instances_, [&](const Instance& guard) { return dropped.count(guard.type.get()) != 0; });
  std::erase_if(tags_, [&](const TypeTag& tag) { return dropped.count((PyObject*)tag.type) != 0; });
  held_count_ = 0;
  std::erase_if(types_, [&](const Type& guard) { return dropped.count(guard.type.get()) != 0; });
  size_t next = 0;
  std::erase_if(functions_, [&](const Function&) { return !functions[next++]; });
  type_of_.clear();  // no guard is added afterwards
  known_functions_.clear();
}

int ClassGuards::visit(visitproc visit, void* arg) const {
  for (const Type& guard : types_) {
    Py_VISIT(guard.type.get());
    Py_VISIT(guard.mro.get());
  }
  for (const Instance& guard : instances_) {
    Py_VISIT(guard.object.get());
    Py_VISIT(guard.type.get());
  }
  for (const Dictionary& guard : dictionaries_) {
    Py_VISIT(guard.object.get());
    Py_VISIT(guard.dict.get());
  }
  for (const Function& guard : functions_) {
    Py_VISIT(guard.function.get());
    Py_VISIT(guard.code.get());
    Py_VISIT(guard.defaults.get());
    Py_VISIT(guard.keyword_defaults.get());
  }
  for (const Abstract& guard : abstracts_) {
    Py_VISIT(guard.type.get());
    Py_VISIT(guard.registered.get());
  }
  for (const Namespace& held : namespaces_) {
    Py_VISIT(held.type.get());
    Py_VISIT(held.contents.get());
  }
  return 0;
}

}  // namespace cresset::frontend
