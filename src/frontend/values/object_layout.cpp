#include "frontend/values/object_layout.h"

#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "frontend/cpython/constant_values.h"
#include "frontend/cpython/containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/not_evaluated.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/cpython/range_iterator.h"
#include "frontend/cpython/slots.h"
#include "frontend/values/bound_methods.h"
#include "frontend/values/deferred_iterators.h"
#include "frontend/values/exceptions.h"
#include "frontend/values/frame_image.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/value_objects.h"
#include "frontend/values/wrapper_tensors.h"

namespace cresset::frontend {
namespace {

// Whether the type comes from class statements below `base` which add at most a __dict__ and slots.
bool extends(PyTypeObject* type, PyTypeObject* base) {
  return type != base && is_heap_type(type) && adds_only_dict_and_slots(type, base);
}

// A C type whose instances consist of their __dict__ alone.
PyTypeObject* simple_namespace() {
  static PyObject* const type = module_attribute("types", "SimpleNamespace");
  return (PyTypeObject*)type;
}
PyTypeObject* keeper_of_attributes(PyTypeObject* type) {
  return PyType_IsSubtype(type, simple_namespace()) != 0 ? simple_namespace() : &PyBaseObject_Type;
}

// Whether the object is an instance of a Python class, with no state outside its __dict__ and its slots.
bool is_plain_instance(PyObject* object) {
  if (PyType_Check(object) || PyModule_Check(object) || PyDict_Check(object) || PyList_Check(object) ||
      PyTuple_Check(object) || PyAnySet_Check(object) || is_tensor(object) || PyExceptionInstance_Check(object))
    return false;
  PyTypeObject* const keeper = keeper_of_attributes(Py_TYPE(object));
  return Py_TYPE(object) == simple_namespace() || adds_only_dict_and_slots(Py_TYPE(object), keeper);
}

// The C type that stores the items of a list or dict subclass.
PyTypeObject* keeper_of_items(PyObject* object) {
  if (PyList_Check(object)) return &PyList_Type;
  return PyODict_Check(object) ? &PyODict_Type : &PyDict_Type;
}
bool is_dict_object(PyObject* object) {
  return PyDict_Check(object) && extends(Py_TYPE(object), keeper_of_items(object));
}
bool is_list_object(PyObject* object) { return PyList_Check(object) && extends(Py_TYPE(object), &PyList_Type); }

// Whether the class belongs to cresset._substitutes.ranges.
bool is_ours(PyObject* object) {
  PyObject* const module = PyDict_GetItemString(type_dict(Py_TYPE(object)), "__module__");
  return module != nullptr && PyUnicode_Check(module) &&
         PyUnicode_CompareWithASCIIString(module, python_names::kRanges) == 0;
}

// Whether the object is an iterator of CPython whose __reduce__ reports its whole state without changing it.
bool is_builtin_iterator(PyObject* object) {
  const PyTypeObject* type = Py_TYPE(object);
  if (std::strcmp(type->tp_name, "RangeIterator") == 0 && is_ours(object)) return true;
  if ((is_heap_type(type) && (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0) || PyGen_CheckExact(object))
    return false;
  static const char* const kNames[] = {"list_iterator",
                                       "list_reverseiterator",
                                       "tuple_iterator",
                                       "range_iterator",
                                       "enumerate",
                                       "zip",
                                       "reversed",
                                       "str_iterator",
                                       "map",
                                       "str_ascii_iterator",
                                       "dict_keyiterator",
                                       "dict_valueiterator",
                                       "dict_itemiterator",
                                       "odict_iterator",
                                       "set_iterator",
                                       "filter",
                                       "iterator",
                                       "callable_iterator",
                                       "_collections._deque_iterator",
                                       "collections._deque_iterator",  // CPython 3.12 and later
                                       "itertools.count",
                                       "itertools.repeat",
                                       "itertools.chain",
                                       "itertools.accumulate",
                                       "itertools.groupby",
                                       "itertools._grouper",
                                       "itertools._tee",
                                       "itertools._tee_dataobject",
                                       "itertools.islice",
                                       "itertools.starmap",
                                       "itertools.takewhile",
                                       "itertools.dropwhile",
                                       "itertools.filterfalse",
                                       "itertools.compress",
                                       "itertools.product",
                                       "itertools.combinations",
                                       "itertools.combinations_with_replacement",
                                       "itertools.permutations",
                                       "itertools.zip_longest"};
  for (const char* name : kNames)
    if (std::strcmp(type->tp_name, name) == 0) return true;
  return false;
}

// The number of parts which are items; the attribute values follow them.
size_t item_count(const ObjectLayout& layout) {
  if (layout.kind != ObjectLayout::Kind::DictObject && layout.kind != ObjectLayout::Kind::ListObject) return 0;
  return layout.parts.size() - static_cast<size_t>(PyTuple_GET_SIZE(form_item(layout, 1)));
}

// Appends the attribute values to the given first parts.
ObjectLayout of_instance(PyObject* object, ObjectLayout::Kind kind = ObjectLayout::Kind::Object,
                         std::vector<PyRef> first = {}) {
  ObjectLayout out{kind, {}, std::move(first)};
  PyRef made;
  PyObject* dict = instance_dict(object);
  if (dict == nullptr && Py_TYPE(object)->tp_dictoffset != 0) {
    made = checked(PyObject_GenericGetDict(object, nullptr));
    dict = made.get();
  }
  std::vector<PyRef> names;
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (dict != nullptr && PyDict_Next(dict, &position, &key, &value)) {
    names.push_back(PyRef::borrow(key));
    out.parts.push_back(PyRef::borrow(value));
  }
  for (PyObject* slot : slots_of(Py_TYPE(object))) {
    PyRef held = held_in_slot(object, slot);
    if (!held) continue;
    names.push_back(PyRef::borrow(slot));
    out.parts.push_back(std::move(held));
  }
  out.form = checked(PyTuple_Pack(2, (PyObject*)Py_TYPE(object), tuple_of(names).get()));
  return out;
}

// Reads the items without calling methods of the subclass.
ObjectLayout of_dict_object(PyObject* object) {
  std::vector<PyRef> values;
  const PyRef keys = checked(PyList_New(0)), all = keys_in_order(object);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i) {
    PyObject* const key = PyList_GET_ITEM(all.get(), i);
    // A symbolic key was specialized when it was hashed.
    const PyRef plain =
        is_symbolic_number(key) || is_symbolic_string(key) ? without_symbols(PyRef::borrow(key)) : PyRef::borrow(key);
    if (!is_constant_value(plain.get())) return {};  // comparing the key could run user code
    values.push_back(PyRef::borrow(PyDict_GetItemWithError(object, key)));
    if (PyList_Append(keys.get(), plain.get()) < 0) throw PythonError{};
  }
  ObjectLayout out = of_instance(object, ObjectLayout::Kind::DictObject, std::move(values));
  const PyRef tuple = checked(PySequence_Tuple(keys.get()));
  out.form = checked(PyTuple_Pack(3, form_item(out, 0), form_item(out, 1), tuple.get()));
  return out;
}

ObjectLayout of_list_object(PyObject* object) {
  std::vector<PyRef> items;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) items.push_back(PyRef::borrow(PyList_GET_ITEM(object, i)));
  return of_instance(object, ObjectLayout::Kind::ListObject, std::move(items));
}

// CPython 3.12 and later; empty for older versions.
PyObject** type_parameters(PyFunctionObject* function) {
#if PY_VERSION_HEX >= 0x030C0000
  return &function->func_typeparams;
#else
  static PyObject* none;
  return (void)function, &none;
#endif
}

PyRef or_none(PyObject* object) { return PyRef::borrow(object != nullptr ? object : Py_None); }

ObjectLayout of_function(PyObject* object) {
  auto* f = (PyFunctionObject*)object;
  const PyRef names = checked(f->func_dict != nullptr ? PySequence_Tuple(f->func_dict) : PyTuple_New(0));
  ObjectLayout out{ObjectLayout::Kind::Function, {}, {}};
  out.form = checked(PyTuple_Pack(7, f->func_code, f->func_globals, f->func_name, f->func_qualname,
                                  or_none(f->func_module).get(), or_none(f->func_doc).get(), names.get()));
  out.parts = {or_none(f->func_defaults), or_none(f->func_kwdefaults), or_none(f->func_closure),
               or_none(f->func_annotations), or_none(*type_parameters(f))};
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (f->func_dict != nullptr && PyDict_Next(f->func_dict, &position, &key, &value))
    out.parts.push_back(PyRef::borrow(value));
  return out;
}

// The dictionary behind a dictionary or view iterator; nullptr for an exhausted iterator.
PyObject* iterated_dict(PyObject* iterator) {
  PyObject* found = nullptr;
  const auto visit = [](PyObject* held, void* out) {
    if (PyDict_Check(held)) *static_cast<PyObject**>(out) = held;
    return PyDict_Check(held) != 0 ? 1 : 0;  // stop at the first: the iterator's last result follows
  };
  Py_TYPE(iterator)->tp_traverse(iterator, visit, &found);
  return found;
}

// The first fields of CPython's struct for an iterator over an OrderedDict.
struct OrderedIterator {
  PyObject_HEAD int kind;  // 1: backwards; 2: keys; 4: values
  PyObject* dict;
  Py_ssize_t size;
  size_t state;  // a copy of the dictionary's change counter
};

bool is_ordered_iterator(PyObject* object) { return std::strcmp(Py_TYPE(object)->tp_name, "odict_iterator") == 0; }

const char* view_of(PyObject* iterator) {
  const std::string_view type = Py_TYPE(iterator)->tp_name;
  if (type == "dict_keyiterator") return "keys";
  if (type == "dict_valueiterator") return "values";
  if (type == "dict_itemiterator") return "items";
  const int kind = ((const OrderedIterator*)iterator)->kind;
  return kind == 2 ? "keys" : kind == 4 ? "values" : kind == 6 ? "items" : nullptr;
}

// Whether the dictionary was changed since the iteration began, so that the iterator will raise an error.
bool was_changed(PyObject* iterator, PyObject* dict, Py_ssize_t left) {
  if (!is_ordered_iterator(iterator)) {
    const Py_ssize_t hint = PyObject_LengthHint(iterator, -1);
    return hint < 0 ? PyErr_Clear(), true : hint != left;
  }
  const PyRef fresh = checked(PyObject_GetIter(dict));
  return ((const OrderedIterator*)fresh.get())->state != ((const OrderedIterator*)iterator)->state;
}

// The layout consists of the dictionary, the number of taken entries, and the list `left` of remaining entries, whose
// order and identity are guarded. Empty if the dictionary has changed its size, because the iterator will then raise an
// error.
ObjectLayout of_dict_iterator(PyObject* object, PyObject* dict, PyObject* left) {
  const Py_ssize_t taken = PyDict_GET_SIZE(dict) - PyList_GET_SIZE(left);
  const char* const view = view_of(object);
  if (view == nullptr || was_changed(object, dict, PyList_GET_SIZE(left))) return ObjectLayout{};
  PyObject* const maker = module_attribute(python_names::kSubstitutes, (std::string("_iterator_over_") + view).c_str());
  const PyRef form = checked(PyTuple_Pack(2, maker, Py_False));
  return {ObjectLayout::Kind::Iterator,
          form,
          {PyRef::borrow(dict), checked(PyLong_FromSsize_t(taken)), PyRef::borrow(left)}};
}

// The layout consists of the set and the remaining items. A rebuilt set may have another order, so a new iterator over
// the set would start elsewhere.
ObjectLayout of_set_iterator(PyObject* object, PyObject* left) {
  PyObject* set = nullptr;
  const auto visit = [](PyObject* held, void* out) { return *static_cast<PyObject**>(out) = held, 1; };
  Py_TYPE(object)->tp_traverse(object, visit, &set);
  static PyObject* const maker = module_attribute(python_names::kSubstitutes, "_rest_of_set");
  const PyRef form = checked(PyTuple_Pack(2, maker, Py_False));
  if (set == nullptr || PyObject_LengthHint(object, -1) != PyList_GET_SIZE(left)) return PyErr_Clear(), ObjectLayout{};
  PyRef size = checked(PyLong_FromSsize_t(PySet_GET_SIZE(set)));
  return {ObjectLayout::Kind::Iterator, form, {PyRef::borrow(set), PyRef::borrow(left), std::move(size)}};
}

// From CPython 3.12 on, __reduce__ of itertools objects warns that their pickling is deprecated.
bool warns_of_pickling(PyObject* object) {
  return PY_VERSION_HEX >= 0x030C0000 && std::string_view(Py_TYPE(object)->tp_name).starts_with("itertools.");
}

PyRef reduced_iterator(PyObject* object) {
  if (!warns_of_pickling(object)) return PyRef::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  const NotEvaluated paused;
  static PyObject* const quietly = module_attribute(python_names::kSubstitutes, "_reduced_quietly");
  return PyRef::steal(PyObject_CallOneArg(quietly, object));
}

void set_state(PyObject* made, PyObject* state) {
  if (!warns_of_pickling(made)) return (void)checked(PyObject_CallMethod(made, "__setstate__", "(O)", state));
  const NotEvaluated paused;
  static PyObject* const quietly = module_attribute(python_names::kSubstitutes, "_set_state_quietly");
  checked(PyObject_CallFunctionObjArgs(quietly, made, state, nullptr));
}

bool is_deque_iterator(PyObject* object) {
  return std::string_view(Py_TYPE(object)->tp_name).ends_with("collections._deque_iterator");
}
// Whether the deque was changed during the iteration, so that the iterator will raise an error. The structs repeat the
// first fields of CPython's structs.
bool went_astray(PyObject* iterator) {
  struct DequeIterator {
    PyObject_HEAD void* block;
    Py_ssize_t index;
    PyObject* deque;
    size_t state;
  };
  struct Deque {
    PyObject_VAR_HEAD void *left_block, *right_block;
    Py_ssize_t left_index, right_index;
    size_t state;
  };
  const auto* const mine = (const DequeIterator*)iterator;
  return mine->state != ((const Deque*)mine->deque)->state;
}

ObjectLayout of_iterator(PyObject* object) {
  if (is_deque_iterator(object) && went_astray(object)) return {};
  if (is_ordered_iterator(object))  // finding the remaining items hashes each key again
    if (PyObject* const dict = iterated_dict(object); dict != nullptr && has_keys_that_ask(dict)) return {};
  const PyRef reduced = reduced_iterator(object);
  if (!reduced || !PyTuple_Check(reduced.get()) || PyTuple_GET_SIZE(reduced.get()) < 2)
    return PyErr_Clear(), ObjectLayout{};
  PyObject* args = PyTuple_GET_ITEM(reduced.get(), 1);
  if (knows_rest_only(object, reduced.get())) {
    PlaceInRange place = place_in_range(PyTuple_GET_ITEM(args, 0));
    const PyRef form = checked(PyTuple_Pack(2, PyTuple_GET_ITEM(reduced.get(), 0), Py_True));
    return {ObjectLayout::Kind::Iterator, form, {std::move(place.range), std::move(place.index)}};
  }
  if (goes_over_dict(object))
    if (PyObject* const dict = iterated_dict(object); dict != nullptr)
      return of_dict_iterator(object, dict, PyTuple_GET_ITEM(args, 0));
  if (std::strcmp(Py_TYPE(object)->tp_name, "set_iterator") == 0)
    return of_set_iterator(object, PyTuple_GET_ITEM(args, 0));
  const bool has_state = PyTuple_GET_SIZE(reduced.get()) > 2 && PyTuple_GET_ITEM(reduced.get(), 2) != Py_None;
  ObjectLayout out{ObjectLayout::Kind::Iterator, {}, {}};
  out.form = checked(PyTuple_Pack(2, PyTuple_GET_ITEM(reduced.get(), 0), has_state ? Py_True : Py_False));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) out.parts.push_back(PyRef::borrow(PyTuple_GET_ITEM(args, i)));
  if (has_state) out.parts.push_back(PyRef::borrow(PyTuple_GET_ITEM(reduced.get(), 2)));
  return out;
}

bool is_deque_exactly(PyObject* object) {
  static PyObject* const type = module_attribute("collections", "deque");
  return (PyObject*)Py_TYPE(object) == type;
}
bool is_mapping(PyObject* object) {
  static PyObject* const ordered = module_attribute("collections", "OrderedDict");
  static PyObject* const with_default = module_attribute("collections", "defaultdict");
  return (PyObject*)Py_TYPE(object) == ordered || (PyObject*)Py_TYPE(object) == with_default;
}

ObjectLayout of_items(ObjectLayout::Kind kind, PyObject* object, PyRef form) {
  ObjectLayout out{kind, std::move(form), {}};
  const PyRef items = checked(PySequence_List(object));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
    out.parts.push_back(PyRef::borrow(PyList_GET_ITEM(items.get(), i)));
  return out;
}

ObjectLayout of_mapping(PyObject* object) {
  PyRef factory = PyRef::steal(PyObject_GetAttrString(object, "default_factory"));
  if (!factory) PyErr_Clear(), factory = PyRef::borrow(Py_None);
  if (PyObject* const dict = instance_dict(object); dict != nullptr && PyDict_GET_SIZE(dict) != 0) return {};
  ObjectLayout out{
      ObjectLayout::Kind::Mapping, checked(PyTuple_Pack(2, (PyObject*)Py_TYPE(object), factory.get())), {}};
  const PyRef keys = keys_in_order(object);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    PyObject* const key = PyList_GET_ITEM(keys.get(), i);
    out.parts.push_back(PyRef::borrow(key));
    out.parts.push_back(PyRef::borrow(value_under(object, key)));
  }
  return out;
}

thread_local const RunningGenerators* running_generators = nullptr;

ObjectLayout of_generator(PyObject* object) {
  if (running_generators != nullptr)
    for (const auto& [generator, layout] : *running_generators)
      if (generator.get() == object) return layout;
  CressetFrameImage image;
  const int finished = cresset_eval_generator_image(object, &image);
  if (finished == 0) return layout_of_generator(object, image);
  if (finished < 0) return {};
  ObjectLayout out{ObjectLayout::Kind::Generator, {}, {}};
  out.form = checked(PyTuple_Pack(3, (PyObject*)Py_TYPE(object), generator_code(object), Py_None));
  return out;
}

void fill_function(PyObject* made, const ObjectLayout& layout) {
  const auto part = [&](size_t i) { return layout.parts[i].get(); };
  auto* f = (PyFunctionObject*)made;
  if (part(0) != Py_None && PyFunction_SetDefaults(made, part(0)) < 0) throw PythonError{};
  if (part(1) != Py_None && PyFunction_SetKwDefaults(made, part(1)) < 0) throw PythonError{};
  if (part(2) != Py_None && PyFunction_SetClosure(made, part(2)) < 0) throw PythonError{};
  Py_SETREF(f->func_name, Py_NewRef(form_item(layout, 2)));
  Py_SETREF(f->func_qualname, Py_NewRef(form_item(layout, 3)));
  Py_XSETREF(f->func_module, Py_NewRef(form_item(layout, 4)));
  Py_XSETREF(f->func_doc, Py_NewRef(form_item(layout, 5)));
  Py_XSETREF(f->func_annotations, part(3) != Py_None ? Py_NewRef(part(3)) : nullptr);
  if (part(4) != Py_None) Py_XSETREF(*type_parameters(f), Py_NewRef(part(4)));
  for (size_t i = 5; i < layout.parts.size(); ++i) {
    PyObject* name = PyTuple_GET_ITEM(form_item(layout, 6), static_cast<Py_ssize_t>(i - 5));
    if (PyObject_GenericSetAttr(made, name, part(i)) < 0) throw PythonError{};
  }
}

PyRef make_bare(PyTypeObject* keeper, const ObjectLayout& layout) {
  const PyRef no_args = checked(PyTuple_New(0));
  return checked(keeper->tp_new((PyTypeObject*)form_item(layout, 0), no_args.get(), nullptr));
}

// Stores the items without calling methods of the subclass.
void fill_items(PyObject* made, const ObjectLayout& layout) {
  for (size_t i = 0; i < item_count(layout); ++i) {
    PyObject* item = layout.parts[i].get();
    PyObject* key = PyDict_Check(made) ? PyTuple_GET_ITEM(form_item(layout, 2), static_cast<Py_ssize_t>(i)) : nullptr;
    if (key != nullptr)
      set_item(made, key, item);
    else if (PyList_Append(made, item) < 0)
      throw PythonError{};
  }
}

// Whether __setstate__ can move the iterator to any position, including the end.
bool can_be_set(PyObject* object) {
  static const char* const kNames[] = {"list_iterator",  "list_reverseiterator", "tuple_iterator",
                                       "range_iterator", "str_iterator",         "str_ascii_iterator"};
  const char* type = Py_TYPE(object)->tp_name;
  if (std::strcmp(type, "RangeIterator") == 0 && is_ours(object)) return true;
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* name) { return std::strcmp(type, name) == 0; });
}

// Sets the position of the iterator. An exhausted iterator has no position and is moved behind the end.
void fill_iterator(PyObject* made, const ObjectLayout& layout) {
  if (!can_be_set(made)) return;  // its position is the position of other iterators
  if (Py_TYPE(made) == &PyRangeIter_Type) {
    const PyRef reduced = checked(PyObject_CallMethod(made, "__reduce__", nullptr));
    if (knows_rest_only(made, reduced.get()))
      return move_on(made, PyTuple_GET_ITEM(PyTuple_GET_ITEM(reduced.get(), 1), 0), layout.parts[0].get(),
                     layout.parts[1].get());
  }
  const bool backwards = std::strcmp(Py_TYPE(made)->tp_name, "list_reverseiterator") == 0;
  const PyRef end = checked(PyLong_FromSsize_t(backwards ? -1 : PY_SSIZE_T_MAX));
  const bool has_place = form_item(layout, 1) == Py_True;
  checked(PyObject_CallMethod(made, "__setstate__", "(O)", has_place ? layout.parts.back().get() : end.get()));
  // A list iterator continues when items are added later, unless it has already reported the end.
  const bool of_list = backwards || std::strcmp(Py_TYPE(made)->tp_name, "list_iterator") == 0;
  if (!has_place && of_list) PyRef::steal(PyIter_Next(made));
}

void fill_generator(PyObject* made, const ObjectLayout& layout) {
  PyObject* where = form_item(layout, 2);
  if (where == Py_None) {
    if (cresset_eval_set_generator(made, nullptr) < 0) throw PythonError{};
    return;
  }
  const PyRef contents = tuple_of(layout.parts);
  const Place::Frame frame{PyRef::borrow(form_item(layout, 1)), static_cast<int>(PyLong_AsLong(where))};
  const FrameImage image(frame, contents.get());
  if (cresset_eval_set_generator(made, &image.image) < 0) throw PythonError{};
}

}  // namespace

SeeRunning::SeeRunning(const RunningGenerators& running) : before_(std::exchange(running_generators, &running)) {}
SeeRunning::~SeeRunning() { running_generators = before_; }

ObjectLayout layout_of_generator(PyObject* generator, const CressetFrameImage& image) {
  if (image.names != nullptr) return {};
  ObjectLayout out{ObjectLayout::Kind::Generator, {}, {}};
  const PyRef where = checked(PyLong_FromLong(image.last));
  out.form = checked(PyTuple_Pack(3, (PyObject*)Py_TYPE(generator), (PyObject*)image.code, where.get()));
  const PyRef contents = frame_contents(image);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(contents.get()); ++i)
    out.parts.push_back(PyRef::borrow(PyTuple_GET_ITEM(contents.get(), i)));
  return out;
}

// Whether the object is a module or an optimizer. These are guarded by identity, although their state changes often.
static bool is_of_model(PyObject* object) {
  static PyObject* const module = module_attribute("torch.nn", "Module");
  static PyObject* const optimizer = module_attribute("torch.optim", "Optimizer");
  return PyType_IsSubtype(Py_TYPE(object), (PyTypeObject*)module) ||
         PyType_IsSubtype(Py_TYPE(object), (PyTypeObject*)optimizer);
}

bool is_data_object(PyObject* object) {
  if (is_of_model(object)) return false;
  return is_plain_instance(object) || is_dict_object(object) || is_list_object(object);
}

bool has_fate(PyObject* object, const ObjectLayout& layout) {
  if (layout.kind != ObjectLayout::Kind::Iterator)
    return layout.kind == ObjectLayout::Kind::Generator || layout.kind == ObjectLayout::Kind::Exception;
  const std::string_view name = Py_TYPE(object)->tp_name;
  if (name != "zip" && name != "map" && name != "filter") return can_be_set(object);
  return std::all_of(layout.parts.begin(), layout.parts.end(), [](const PyRef& part) {
    if (!PyTuple_Check(part.get())) {
      const bool moves = PyIter_Check(part.get()) != 0;
      return !moves || has_fate(part.get(), decompose(part.get()));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(part.get()); ++i) {
      PyObject* inner = PyTuple_GET_ITEM(part.get(), i);
      if (PyIter_Check(inner) && !has_fate(inner, decompose(inner))) return false;
    }
    return true;
  });
}

bool is_range_iterator(const ObjectLayout& layout) {
  return layout.kind == ObjectLayout::Kind::Iterator && layout.parts.size() == 2 &&
         PyRange_Check(layout.parts[0].get()) && form_item(layout, 1) == Py_True;
}

bool is_counter(const ObjectLayout& layout) {
  static PyObject* const type = module_attribute("itertools", "count");
  return layout.kind == ObjectLayout::Kind::Iterator && form_item(layout, 0) == type;
}

ObjectLayout decompose(PyObject* object) {
  if (PyCell_Check(object)) {
    ObjectLayout out{ObjectLayout::Kind::Cell, {}, {}};
    if (PyCell_GET(object) != nullptr) out.parts.push_back(PyRef::borrow(PyCell_GET(object)));
    return out;
  }
  if (PyMethod_Check(object))
    return {ObjectLayout::Kind::Method,
            PyRef::borrow(PyMethod_GET_FUNCTION(object)),
            {PyRef::borrow(PyMethod_GET_SELF(object))}};
  if (is_bound_method(object)) return layout_of_bound(object);
  if (is_c_function(object)) return {};
  if (PyFunction_Check(object)) return of_function(object);
  if (is_wrapper(object)) return layout_of_wrapper(object);
  if (PySet_CheckExact(object))
    return of_items(ObjectLayout::Kind::Set, object, checked(PyTuple_Pack(1, (PyObject*)Py_TYPE(object))));
  if (is_deque_exactly(object)) {
    const PyRef length = checked(PyObject_GetAttrString(object, "maxlen"));
    return of_items(ObjectLayout::Kind::Deque, object,
                    checked(PyTuple_Pack(2, (PyObject*)Py_TYPE(object), length.get())));
  }
  if (Py_IS_TYPE(object, &PyODict_Type))
    if (ObjectLayout out = of_dict_object(object); out.kind != ObjectLayout::Kind::None) return out;
  if (is_mapping(object)) return of_mapping(object);
  if (PyGen_CheckExact(object) || PyCoro_CheckExact(object)) return of_generator(object);
  if (PyExceptionInstance_Check(object)) return of_exception(object);
  if (PyTraceBack_Check(object)) return of_traceback(object);
  if (is_builtin_iterator(object)) return of_iterator(object);
  if (is_plain_instance(object)) return of_instance(object);
  if (is_dict_object(object)) return of_dict_object(object);
  if (is_list_object(object)) return of_list_object(object);
  return layout_of_value(object);
}

std::string part_name(const ObjectLayout& layout, size_t i) {
  if (layout.kind == ObjectLayout::Kind::Wrapper) {
    static constexpr const char* kNumbers[kWrapperNumbers] = {"size()", "stride()", "storage_offset()"};
    if (i < kWrapperNumbers) return kNumbers[i];
    return utf8(PyTuple_GET_ITEM(form_item(layout, 1), static_cast<Py_ssize_t>(i - kWrapperNumbers)));
  }
  if (!has_attributes(layout.kind) || i < item_count(layout)) return std::to_string(i);
  PyObject* name = PyTuple_GET_ITEM(form_item(layout, 1), static_cast<Py_ssize_t>(i - item_count(layout)));
  return utf8(is_slot(name) ? ((PyDescrObject*)name)->d_name : name);
}

bool has_more_than_items(PyObject* object) {
  PyObject* const dict = PyODict_Check(object) ? instance_dict(object) : nullptr;
  return dict != nullptr && PyDict_GET_SIZE(dict) != 0;
}

bool has_place(const ObjectLayout& layout, size_t i) {
  const ObjectLayout::Kind kind = layout.kind;
  if (kind == ObjectLayout::Kind::Mapping) return i % 2 == 1;
  if (kind == ObjectLayout::Kind::Exception) return i == 0 || i >= first_attribute(layout);
  return has_attributes(kind) || kind == ObjectLayout::Kind::Cell || kind == ObjectLayout::Kind::Deque;
}

PlaceOfItem place_of_part(PyObject* object, const ObjectLayout& layout, size_t i) {
  if (layout.kind == ObjectLayout::Kind::Cell) return {PyRef::borrow(object), {}};
  if (layout.kind == ObjectLayout::Kind::Exception) return place_in_exception(object, layout, i);
  const size_t items = item_count(layout);
  if (has_attributes(layout.kind) && i >= items) {
    PyObject* name = PyTuple_GET_ITEM(form_item(layout, 1), static_cast<Py_ssize_t>(i - items));
    return {PyRef::borrow(is_slot(name) ? object : instance_dict(object)), PyRef::borrow(name)};
  }
  if (layout.kind == ObjectLayout::Kind::Mapping) return {PyRef::borrow(object), layout.parts[i - 1]};
  if (PyList_Check(object) || layout.kind == ObjectLayout::Kind::Deque)
    return {PyRef::borrow(object), checked(PyLong_FromSize_t(i))};
  return {PyRef::borrow(object), PyRef::borrow(PyTuple_GET_ITEM(form_item(layout, 2), static_cast<Py_ssize_t>(i)))};
}

PyRef make_empty(const ObjectLayout& layout) {
  switch (layout.kind) {
    case ObjectLayout::Kind::Object:
      return make_bare(keeper_of_attributes((PyTypeObject*)form_item(layout, 0)), layout);
    case ObjectLayout::Kind::ListObject:
      return make_bare(&PyList_Type, layout);
    case ObjectLayout::Kind::DictObject:
      return make_bare(
          PyType_IsSubtype((PyTypeObject*)form_item(layout, 0), &PyODict_Type) ? &PyODict_Type : &PyDict_Type, layout);
    case ObjectLayout::Kind::Cell:
      return checked(PyCell_New(nullptr));
    case ObjectLayout::Kind::Function:
      return checked(PyFunction_New(form_item(layout, 0), form_item(layout, 1)));
    case ObjectLayout::Kind::Generator:
      return checked(cresset_eval_new_generator((PyCodeObject*)form_item(layout, 1)));
    case ObjectLayout::Kind::Set:
      return checked(PySet_New(nullptr));
    case ObjectLayout::Kind::Deque: {
      const PyRef nothing = checked(PyTuple_New(0));
      return checked(PyObject_CallFunctionObjArgs(form_item(layout, 0), nothing.get(), form_item(layout, 1), nullptr));
    }
    case ObjectLayout::Kind::Mapping:
      if (form_item(layout, 1) == Py_None) return checked(PyObject_CallNoArgs(form_item(layout, 0)));
      return checked(PyObject_CallOneArg(form_item(layout, 0), form_item(layout, 1)));
    default:
      return {};
  }
}

void fill(PyObject* made, const ObjectLayout& layout) {
  if (layout.kind == ObjectLayout::Kind::Function) return fill_function(made, layout);
  if (layout.kind == ObjectLayout::Kind::Generator) return fill_generator(made, layout);
  if (layout.kind == ObjectLayout::Kind::Exception) return fill_exception(made, layout);
  if (layout.kind == ObjectLayout::Kind::Iterator) return fill_iterator(made, layout);
  if (layout.kind == ObjectLayout::Kind::Cell) {
    if (!layout.parts.empty() && PyCell_Set(made, layout.parts[0].get()) < 0) throw PythonError{};
    return;
  }
  if (layout.kind == ObjectLayout::Kind::Set || layout.kind == ObjectLayout::Kind::Deque) {
    const char* add = layout.kind == ObjectLayout::Kind::Set ? "add" : "append";
    for (const PyRef& item : layout.parts) checked(PyObject_CallMethod(made, add, "(O)", item.get()));
    return;
  }
  if (layout.kind == ObjectLayout::Kind::Mapping) {
    for (size_t i = 0; i + 1 < layout.parts.size(); i += 2)
      if (PyObject_SetItem(made, layout.parts[i].get(), layout.parts[i + 1].get()) < 0) throw PythonError{};
    return;
  }
  fill_items(made, layout);
  const size_t first = item_count(layout);
  const PyRef dict = Py_TYPE(made)->tp_dictoffset != 0 ? checked(PyObject_GenericGetDict(made, nullptr)) : PyRef();
  for (size_t i = first; i < layout.parts.size(); ++i) {
    PyObject *name = PyTuple_GET_ITEM(form_item(layout, 1), static_cast<Py_ssize_t>(i - first)),
             *value = layout.parts[i].get();
    if (is_slot(name))
      set_slot(made, name, value);
    else if (PyDict_SetItem(dict.get(), name, value) < 0)
      throw PythonError{};
  }
}

PyRef make_whole(const ObjectLayout& layout) {
  if (layout.kind == ObjectLayout::Kind::Method) return checked(PyMethod_New(layout.form.get(), layout.parts[0].get()));
  if (layout.kind == ObjectLayout::Kind::BuiltinMethod) return make_bound(layout);
  if (layout.kind == ObjectLayout::Kind::Exception) return make_exception(layout);
  if (layout.kind == ObjectLayout::Kind::Traceback) return make_traceback(layout);
  if (layout.kind == ObjectLayout::Kind::Wrapper) return make_wrapper(layout);
  const bool has_state = form_item(layout, 1) == Py_True;
  const PyRef args = tuple_of({layout.parts.begin(), layout.parts.end() - (has_state ? 1 : 0)});
  PyRef made = checked(PyObject_CallObject(form_item(layout, 0), args.get()));
  if (has_state) set_state(made.get(), layout.parts.back().get());
  if (layout.kind == ObjectLayout::Kind::Iterator) note_made_iterator(made.get(), layout);
  return made;
}

bool same_form(const ObjectLayout& a, const ObjectLayout& b) {
  if (a.kind != b.kind || a.parts.size() != b.parts.size()) return false;
  if (a.form.get() == b.form.get()) return true;
  if (!a.form || !b.form || !PyTuple_Check(a.form.get()) || !PyTuple_Check(b.form.get())) return false;
  if (PyTuple_GET_SIZE(a.form.get()) != PyTuple_GET_SIZE(b.form.get())) return false;
  // Traceback entries at the same code positions have the same globals.
  const Py_ssize_t count = a.kind == ObjectLayout::Kind::Traceback ? 1 : PyTuple_GET_SIZE(a.form.get());
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *x = PyTuple_GET_ITEM(a.form.get(), i), *y = PyTuple_GET_ITEM(b.form.get(), i);
    if (x == y) continue;
    // Comparable entries: attribute names and qualified names (strings or tuples of strings), and a generator's
    // position.
    const bool comparable = (PyUnicode_CheckExact(x) && PyUnicode_CheckExact(y)) ||
                            (PyTuple_CheckExact(x) && PyTuple_CheckExact(y)) ||
                            (PyLong_CheckExact(x) && PyLong_CheckExact(y));
    if (!comparable || !same_constant(x, y)) return false;
  }
  return true;
}

bool is_identity(PyObject* object) {
  return PyType_Check(object) || PyFunction_Check(object) || is_c_function(object) || PyMethod_Check(object) ||
         THPDtype_Check(object) || THPLayout_Check(object) || THPMemoryFormat_Check(object) || is_enum_member(object) ||
         is_module(object);
}

bool is_named_tuple(PyObject* object) { return PyTuple_Check(object) && PyObject_HasAttrString(object, "_fields"); }

bool is_any_tuple(PyObject* object) { return is_tuple_or_size(object) || is_named_tuple(object); }

bool is_other_container(PyObject* object) {
  static PyObject* const with_defaults = module_attribute("collections", "defaultdict");
  return (is_deque(object) && !is_data_object(object)) || PySet_CheckExact(object) ||
         (PyObject*)Py_TYPE(object) == with_defaults;
}

bool is_dict(PyObject* object) {
  static PyObject* ordered = module_attribute("collections", "OrderedDict");
  return PyDict_CheckExact(object) || Py_TYPE(object) == (PyTypeObject*)ordered;
}

bool is_structure(PyObject* object) {
  return is_any_tuple(object) || PyList_CheckExact(object) || is_dict(object) || is_other_container(object) ||
         (is_data_object(object) && !is_identity(object));
}

}  // namespace cresset::frontend
