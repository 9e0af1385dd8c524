#include "frontend/guards/arg_spec.h"

#include <ATen/EmptyTensor.h>
#include <torch/csrc/Device.h>

#include <algorithm>

#include "base/check.h"
#include "frontend/cpython/containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/object_repr.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/cpython/slots.h"
#include "frontend/feedback/external_generators.h"
#include "frontend/guards/state_guards.h"
#include "frontend/guards/torch_modes.h"
#include "frontend/values/numpy_ints.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/value_objects.h"
#include "frontend/values/wrapper_tensors.h"

namespace cresset::frontend {
namespace {

bool is_value(PyObject* object) {
  return object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyUnicode_CheckExact(object) || PyBytes_CheckExact(object) || PySlice_Check(object) || object == Py_Ellipsis ||
         PyRange_Check(object) || PyComplex_CheckExact(object) || is_numpy_scalar(object) || THPDevice_Check(object);
}

PyObject* registered_nodes() {
  static PyObject* const table = [] {
    PyObject* const found = private_attribute("torch.utils._pytree", "SUPPORTED_NODES");
    return PyDict_Check(found) ? found : PyDict_New();
  }();
  return table;
}

bool is_generator_of_numbers(PyObject* object) {
  static PyObject* const type = module_attribute("torch._C", "Generator");
  return (PyObject*)Py_TYPE(object) == type;
}

bool same_value(PyObject* expected, PyObject* got) {
  if (expected == got) return true;
  if (Py_TYPE(expected) != Py_TYPE(got)) return false;
  if (PyFloat_CheckExact(got)) {
    const double a = PyFloat_AS_DOUBLE(expected), b = PyFloat_AS_DOUBLE(got);
    return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
  }
  const int equal = PyObject_RichCompareBool(expected, got, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

// Whether a tensor of a Python subclass differs from a plain tensor only by its class: no attributes and no
// __torch_dispatch__.
bool is_bare_subclass(PyObject* object) {
  if (!is_tensor(object) || is_plain_tensor(object) || !is_heap_type(Py_TYPE(object)) || is_wrapper(object))
    return false;
  PyObject* const attributes = instance_dict(object);
  return (attributes == nullptr || PyDict_GET_SIZE(attributes) == 0) && slots_of(Py_TYPE(object)).empty() &&
         !tensor_of(object).key_set().has(c10::DispatchKey::Python);
}

// Formats the reason only on request: most misses are tests of unrelated cache entries, whose reason nobody reads.
template <class String>
bool miss(const ArgSpec& spec, std::string* why, const String& text) {
  if (why == nullptr) return false;
  if constexpr (std::is_invocable_v<String>)
    *why = spec.path + ": " + text();
  else
    *why = spec.path + ": " + text;
  return false;
}

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

}  // namespace

bool flatten_registered(PyObject* object, RegisteredNode& out) {
  PyObject* node = PyDict_GetItemWithError(registered_nodes(), (PyObject*)Py_TYPE(object));
  if (node == nullptr) return PyErr_Clear(), false;
  PyRef flatten = PyRef::steal(PyObject_GetAttrString(node, "flatten_fn"));
  PyRef pair = flatten ? PyRef::steal(PyObject_CallOneArg(flatten.get(), object)) : PyRef();
  if (!pair || !PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) return PyErr_Clear(), false;
  out.children = PyRef::steal(PySequence_Tuple(PyTuple_GET_ITEM(pair.get(), 0)));
  out.context = PyRef::borrow(PyTuple_GET_ITEM(pair.get(), 1));
  if (!out.children) return PyErr_Clear(), false;
  return true;
}

PyRef unflatten_registered(PyObject* type, PyObject* children, PyObject* context) {
  PyObject* node = PyDict_GetItemWithError(registered_nodes(), type);
  if (node == nullptr) {
    PyErr_Format(PyExc_RuntimeError, "cresset: %R is no longer registered with torch.utils._pytree", type);
    throw PythonError{};
  }
  PyRef unflatten = checked(PyObject_GetAttrString(node, "unflatten_fn"));
  PyRef list = checked(PySequence_List(children));
  return checked(PyObject_CallFunctionObjArgs(unflatten.get(), list.get(), context, nullptr));
}

// Whether the spec is the dict of keyword arguments, which is a new object at each call.
static bool is_keywords(const ArgSpec& spec) {
  return spec.kind == ArgSpec::Kind::Dict && (spec.path == "kwargs" || spec.path.empty());
}

bool SpecBuilder::is_symbolic(const std::string& path) const {
  return symbolic_ints != nullptr && fixed_depth_ == 0 && is_among(*symbolic_ints, path);
}

// Whether segments pass the object on without inspecting it.
static bool is_handed_on(const SpecBuilder& builder, bool any_object, PyObject* object, const std::string& path) {
  const bool in_frames = builder.same_at_every_call != nullptr;
  if (any_object && PyGen_CheckExact(object) && (!in_frames || is_external_generator(object))) return true;
  if (in_frames && is_inference_region(object)) return true;
  return builder.not_looked_into != nullptr && !PyTuple_Check(object) && is_structure(object) &&
         is_among(*builder.not_looked_into, path);
}

// Makes a spec for a number which has varied, or for any int with `every_int`.
template <class Varies>
static bool make_number(ArgSpec& spec, PyObject* object, bool every_int, Varies&& varies) {
  const bool is_int = PyLong_CheckExact(object), is_float = PyFloat_CheckExact(object);
  const bool is_of_numpy = !is_int && !is_float && is_numpy_int64(object);
  if (!is_int && !is_float && !is_of_numpy) return false;
  const bool varied = varies();
  if (!varied && !(is_int && every_int)) return false;
  spec.kind = is_float ? ArgSpec::Kind::Float : ArgSpec::Kind::Int;
  if (is_of_numpy) spec.type = PyRef::borrow((PyObject*)Py_TYPE(object));
  if (!varied) spec.first = PyRef::borrow(object);
  return true;
}

// Iterates over a dictionary. Tuple keys are recorded as fixed, because keys are never replaced.
template <class F>
static void each_item(PyObject* dict, std::unordered_set<PyObject*>& tuples, F&& tell) {
  PyObject *key, *value;
  for (EntriesInOrder entries(dict); entries.next(&key, &value);) {
    if (PyTuple_Check(key)) tuples.insert(key);
    tell(value, "[" + key_text(key) + "]");
  }
}

void SpecBuilder::build_child(ArgSpec& spec, PyObject* item, const std::string& suffix) {
  // A container that the function may write must keep its identity; the evaluator handles its symbols.
  const bool is_made_anew = spec.kind == ArgSpec::Kind::Tuple || is_keywords(spec);
  const bool sealed = spec.kind == ArgSpec::Kind::Registered, fixed = !is_made_anew && (!any_object_ || sealed);
  const int around = enter(!is_made_anew && !fixed, fixed);
  sealed_depth_ += sealed;
  spec.children.push_back(build(item, spec.path + suffix));
  sealed_depth_ -= sealed;
  fixed_depth_ = around;
}

void SpecBuilder::build_items(ArgSpec& spec, PyObject* sequence) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i)
    build_child(spec, PySequence_Fast_GET_ITEM(sequence, i), "[" + std::to_string(i) + "]");
}

// The rules below are asked in this order. A rule which applies completes the spec and returns true.

// An object which is guarded by its type alone.
bool SpecBuilder::build_opaque(ArgSpec& spec, PyObject* object) {
  if (is_repeated(spec, object)) return true;
  spec.kind = ArgSpec::Kind::Opaque;
  spec.type = PyRef::borrow((PyObject*)Py_TYPE(object));
  return true;
}

bool SpecBuilder::build_tensor_or_same(ArgSpec& spec, PyObject* object) {
  const bool in_frames = same_at_every_call != nullptr;
  if (is_plain_tensor(object) ||
      (any_object_ && is_bare_subclass(object) && !(in_frames && same_at_every_call(object)))) {
    spec.kind = ArgSpec::Kind::Tensor;
    spec.type = PyRef::borrow((PyObject*)Py_TYPE(object));  // programs query the type in ways without a hook
    return true;
  }
  if (!in_frames || is_value(object) || !(is_enum_member(object) || same_at_every_call(object))) return false;
  spec.kind = ArgSpec::Kind::Identity, spec.object = PyRef::borrow(object);
  return true;
}

// Numbers, strings and other values.
bool SpecBuilder::build_value(ArgSpec& spec, PyObject* object) {
  if (make_number(spec, object, every_int && fixed_depth_ == 0, [&] { return is_symbolic(spec.path); })) return true;
  if (any_object_ && PyUnicode_CheckExact(object) && (is_same_tuple(spec, object) || is_symbolic(spec.path))) {
    if (spec.kind == ArgSpec::Kind::Same) return true;
    spec.kind = ArgSpec::Kind::String, spec.first = PyRef::borrow(object);
    spec.looked = uninspected_strings == nullptr || !is_among(*uninspected_strings, spec.path);
    number_tuple(spec, object);
    return true;
  }
  if (!is_value(object) || (any_object_ && can_be_opaque(object) && varies(spec.path))) return false;
  spec.object = PyRef::borrow(object);
  if (PySlice_Check(object)) note_fixed_tuples(object);
  return true;
}

bool SpecBuilder::build_container(ArgSpec& spec, PyObject* object) {
  if (is_any_tuple(object)) {
    if (is_same_tuple(spec, object)) return true;
    spec.kind = ArgSpec::Kind::Tuple;
    spec.object = PyRef::borrow((PyObject*)Py_TYPE(object));
    const int around = enter(false, is_fixed_tuple(object));
    build_items(spec, object);
    number_tuple(spec, object);
    fixed_depth_ = around;
    return true;
  }
  if (PyList_CheckExact(object)) {
    if (is_repeated(spec, object)) return true;
    spec.kind = ArgSpec::Kind::List;
    build_items(spec, object);
    return true;
  }
  if (!is_dict(object) || (same_at_every_call != nullptr && has_more_than_items(object))) return false;
  if (is_repeated(spec, object)) return true;
  spec.kind = ArgSpec::Kind::Dict;
  spec.type = PyRef::borrow((PyObject*)Py_TYPE(object));
  spec.object = items_of(object);
  each_item(object, fixed_tuples_, [&](PyObject* item, const std::string& suffix) { build_child(spec, item, suffix); });
  return true;
}

// Objects which are decomposed: by their layout, or by a registered function.
bool SpecBuilder::build_by_parts(ArgSpec& spec, PyObject* object) {
  const bool in_frames = same_at_every_call != nullptr;
  ObjectLayout layout;  // an operation's result: a weak reference is not decomposed
  if (!(PyWeakref_CheckRefExact(object) && spec.path.starts_with("['value']")) &&
      (in_frames || is_data(object, spec.path) || (every_container && is_other_container(object))) &&
      (layout = decompose(object)).kind != ObjectLayout::Kind::None) {
    if (!is_repeated(spec, object)) build_layout(spec, object, layout);
    return true;
  }
  RegisteredNode node;
  if ((any_object_ && !in_frames) || !flatten_registered(object, node)) return false;
  spec.kind = ArgSpec::Kind::Registered;
  spec.type = PyRef::borrow((PyObject*)Py_TYPE(object));
  spec.object = node.context;
  build_items(spec, node.children.get());
  return true;
}

bool SpecBuilder::build_identity(ArgSpec& spec, PyObject* object) {
  const bool in_frames = same_at_every_call != nullptr;
  if (!is_identity(object) && !is_generator_of_numbers(object) && (!any_object_ || in_frames)) return false;
  spec.kind = ArgSpec::Kind::Identity;
  spec.object = PyRef::borrow(object);
  return true;
}

ArgSpec SpecBuilder::build(PyObject* object, std::string path) {
  ArgSpec spec{.path = std::move(path)};
  const bool is_uninspected =
      is_handed_on(*this, any_object_, object, spec.path) || (PyList_CheckExact(object) && is_growing(spec.path));
  const auto is_unknown = [&] {
    return any_object_ && !is_identity(object) && (same_at_every_call != nullptr || varies(spec.path)) &&
           can_be_opaque(object);
  };
  const bool done = (is_uninspected && build_opaque(spec, object)) || build_tensor_or_same(spec, object) ||
                    build_value(spec, object) || build_container(spec, object) || build_by_parts(spec, object) ||
                    (is_unknown() && build_opaque(spec, object)) || build_identity(spec, object);
  if (!done) throw UnsupportedArgument{spec.path, type_name(object)};
  return spec;
}

bool is_callable_by_parts(PyObject* object) {
  return PyFunction_Check(object) || PyMethod_Check(object) || is_partial_function(object);
}

bool is_rarer_container(PyObject* object) {
  return is_other_container(object) || PyFrozenSet_CheckExact(object) || viewed(object) != nullptr;
}

std::vector<PyRef> parts_of_structure(PyObject* object) {
  std::vector<PyRef> parts;
  const auto add = [&](PyObject* items) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); ++i)
      parts.push_back(PyRef::borrow(PySequence_Fast_GET_ITEM(items, i)));
  };
  if (PyTuple_Check(object) || PyList_CheckExact(object))
    add(object);
  else if (is_dict(object))
    add(checked(PyDict_Values(object)).get());
  else
    parts = decompose(object).parts;
  return parts;
}

namespace {

// Whether the object contains tensors, through containers and data objects. Tensors inside of modules do not count.
bool holds_tensor(PyObject* object, int depth = 0) {
  if (is_plain_tensor(object)) return true;
  if (depth > 4 || is_value(object)) return false;
  const auto any = [&](PyObject* items) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); ++i)
      if (holds_tensor(PySequence_Fast_GET_ITEM(items, i), depth + 1)) return true;
    return false;
  };
  if (PyTuple_Check(object) || PyList_CheckExact(object)) return any(object);
  if (is_dict(object)) return any(checked(PyDict_Values(object)).get());
  if (!is_data_object(object)) return false;
  const ObjectLayout layout = decompose(object);
  return std::any_of(layout.parts.begin(), layout.parts.end(),
                     [&](const PyRef& part) { return holds_tensor(part.get(), depth + 1); });
}

}  // namespace

bool SpecBuilder::is_growing(const std::string& path) const {
  return any_object_ && made_depth_ == 0 && growing_lists != nullptr && is_among(*growing_lists, path) &&
         !is_among(*looked_into, path);
}

// Whether another call had a different object at this path.
bool SpecBuilder::varies(const std::string& path) const {
  return varying_objects != nullptr && is_among(*varying_objects, path);
}

// An argument with data (a batch, a cache) is guarded by its parts, other objects by identity until they vary.
bool SpecBuilder::is_data(PyObject* object, const std::string& path) const {
  if (any_object_ && (is_callable_by_parts(object) || PyCell_Check(object) || is_rarer_container(object)))
    return varies(path);
  if (!any_object_ || (!is_data_object(object) && !is_wrapper(object))) return false;
  return is_wrapper(object) || holds_tensor(object) || varies(path);
}

// places: the items of the container have their own places; fixed: no symbol can be stored. Returns the old depth.
int SpecBuilder::enter(bool places, bool fixed) {
  const int before = fixed_depth_;
  if (places && sealed_depth_ == 0) fixed_depth_ = 0;
  fixed_depth_ += fixed;
  return before;
}

// Whether part i is the state in a partial function's __reduce__: a tuple of function, arguments and keywords.
static bool is_state_of_partial(const ObjectLayout& layout, size_t i) { return is_partial_function(layout) && i == 1; }

// Iterators which return items without inspecting them. map() is excluded: its C function may need plain numbers.
static bool hands_on(PyObject* iterator) {
  static constexpr std::string_view kNames[] = {"list_iterator", "list_reverseiterator", "tuple_iterator", "enumerate",
                                                "zip"};
  return goes_over_dict(iterator) ||
         std::find(std::begin(kNames), std::end(kNames), Py_TYPE(iterator)->tp_name) != std::end(kNames);
}

// Whether the part is a list or dictionary below the iterator, or an inner iterator, and keeps its identity. Other
// parts may be created by `decompose()`.
static bool is_live_part(PyObject* iterator, const ObjectLayout& layout, PyObject* part) {
  const traverseproc traverse = Py_TYPE(iterator)->tp_traverse;
  if (layout.kind != ObjectLayout::Kind::Iterator || !hands_on(iterator)) return false;
  if (Py_IS_TYPE(iterator, &PyTupleIter_Type)) return PyTuple_Check(part);
  for (const PyRef& other : layout.parts)  // an inner iterator may use the same list
    if (PyIter_Check(other.get()) && !hands_on(other.get())) return false;
  const auto is_it = [](PyObject* held, void* wanted) {
    if (!PyTuple_CheckExact(held)) return held == wanted ? 1 : 0;  // of zip()
    PyObject** const items = PySequence_Fast_ITEMS(held);
    return std::find(items, items + PyTuple_GET_SIZE(held), wanted) != items + PyTuple_GET_SIZE(held) ? 1 : 0;
  };
  return traverse(iterator, is_it, part) == 1;
}

// Whether the spec lists the remaining items of a dictionary iterator whose items are inputs already.
static bool is_left_of_dict(const ArgSpec& spec, PyObject* iterator) {
  return spec.children.size() == 2 && goes_over_dict(iterator) && spec.children[0].kind != ArgSpec::Kind::Identity &&
         spec.children[0].kind != ArgSpec::Kind::Opaque;
}

void SpecBuilder::build_layout(ArgSpec& spec, PyObject* object, const ObjectLayout& layout) {
  spec.kind = ArgSpec::Kind::ObjectLayout;
  spec.layout = {layout.kind, layout.form, {}};
  if (makes_parts(layout.kind)) kept_.insert(kept_.end(), layout.parts.begin(), layout.parts.end());
  const bool is_wrapper = layout.kind == ObjectLayout::Kind::Wrapper;
  const bool is_at_its_place =  // recreated in its current position
      is_range_iterator(layout) || is_counter(layout) || layout.kind == ObjectLayout::Kind::Generator;
  const bool sealed = makes_parts(layout.kind) && !is_at_its_place && !is_partial_function(layout);
  made_depth_ += makes_parts(layout.kind);
  for (size_t i = 0; i < layout.parts.size(); ++i) {
    const bool is_gone_over = is_live_part(object, layout, layout.parts[i].get());  // recreated over symbols
    const bool seals = sealed && !is_gone_over && !is_left_of_dict(spec, object);
    sealed_depth_ += seals;
    const bool is_size = is_wrapper && i < kWrapperNumbers - 1;  // symbolic from the first call
    const bool every = std::exchange(every_int, every_int || is_size);
    const bool places = has_place(layout, i) || is_state_of_partial(layout, i);
    const int around = enter(places, !places && !is_at_its_place && !is_size && !is_gone_over);
    spec.children.push_back(build(layout.parts[i].get(), spec.path + "." + part_name(layout, i)));
    fixed_depth_ = around;
    sealed_depth_ -= seals;
    every_int = every;
  }
  made_depth_ -= makes_parts(layout.kind);
}

namespace {

// Containers that were the same object, or distinct objects, must stay so at every call.
bool note_container(PyObject* object, CallLeaves& leaves) {
  for (PyObject* known : leaves.containers)
    if (known == object) return false;
  leaves.containers.push_back(object);
  return true;
}

bool match_layout(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  if (!note_container(object, leaves)) return miss(spec, why, "expected an object of its own");
  ObjectLayout got = decompose(object);
  if (got.kind != spec.layout.kind || got.parts.size() != spec.children.size())
    return miss(spec, why, [&] { return "expected an object of another structure, got " + type_name(object); });
  const std::vector<PyRef> parts = std::exchange(got.parts, {});
  if (!same_form(got, spec.layout))
    return miss(spec, why, [&] { return "expected another structure, got " + type_name(object); });
  if (makes_parts(got.kind)) leaves.kept.insert(leaves.kept.end(), parts.begin(), parts.end());
  for (size_t i = 0; i < parts.size(); ++i)
    if (!match(spec.children[i], parts[i].get(), leaves, why)) return false;
  return true;
}

bool match_tensor(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  if ((PyObject*)Py_TYPE(object) != spec.type.get() || (!is_plain_tensor(object) && !is_bare_subclass(object)))
    return miss(spec, why, [&] {
      return std::string("expected a ") + ((PyTypeObject*)spec.type.get())->tp_name + ", got " + type_name(object);
    });
  leaves.tensors.push_back(tensor_of(object));
  return true;
}

bool match_int(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  if (spec.type ? (PyObject*)Py_TYPE(object) != spec.type.get() : !PyLong_CheckExact(object))
    return miss(spec, why, [&] { return "expected an int, got " + type_name(object); });
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (value == -1 && PyErr_Occurred() != nullptr) return PyErr_Clear(), miss(spec, why, "not a number");
  if (overflow != 0) return miss(spec, why, "an int beyond 64 bits");
  leaves.ints.push_back(value);
  return true;
}

bool match_float(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  if (!PyFloat_CheckExact(object)) return miss(spec, why, [&] { return "expected a float, got " + type_name(object); });
  if (spec.object && !same_value(spec.object.get(), object))
    return miss(spec, why, [&] { return "expected " + key_text(spec.object.get()) + ", got " + key_text(object); });
  add_float(leaves, object);
  return true;
}

// Whether the object satisfies the recorded results of `is` comparisons.
bool is_as_asked(const ArgSpec& spec, PyObject* object, CallLeaves& leaves) {
  if (spec.is && spec.is.get() != object) return false;
  for (Py_ssize_t i = 0; spec.is_not && i < PyTuple_GET_SIZE(spec.is_not.get()); ++i)
    if (PyTuple_GET_ITEM(spec.is_not.get(), i) == object) return false;
  if (spec.asked == 0) return true;
  if (leaves.asked.size() < spec.asked) leaves.asked.resize(spec.asked, nullptr);
  PyObject*& one = leaves.asked[spec.asked - 1];
  if (one != nullptr) return one == object;
  if (std::find(leaves.asked.begin(), leaves.asked.end(), object) != leaves.asked.end()) return false;
  one = object;
  return true;
}

// Records a numbered tuple or string.
void note_numbered(const ArgSpec& spec, PyObject* object, CallLeaves& leaves) {
  if (leaves.tuples.size() <= spec.position) leaves.tuples.resize(spec.position + 1, nullptr);
  leaves.tuples[spec.position] = object;
}

bool match_string(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  if (!PyUnicode_CheckExact(object)) return miss(spec, why, [&] { return "expected a str, got " + type_name(object); });
  if (spec.object && !same_value(spec.object.get(), object))
    return miss(spec, why, [&] { return "expected " + key_text(spec.object.get()) + ", got " + key_text(object); });
  if (!is_as_asked(spec, object, leaves)) return miss(spec, why, "expected another object, or the same");
  if (spec.numbered) note_numbered(spec, object, leaves);  // strings may be shared; `is` is guarded
  return true;
}

bool match_tuple(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  if ((PyObject*)Py_TYPE(object) != spec.object.get() ||
      PyTuple_GET_SIZE(object) != static_cast<Py_ssize_t>(spec.children.size()))
    return miss(spec, why, [&] { return change_of_length(spec.children.size(), object); });
  for (size_t i = 0; i < spec.children.size(); ++i)
    if (!match(spec.children[i], PyTuple_GET_ITEM(object, i), leaves, why)) return false;
  if (!is_as_asked(spec, object, leaves)) return miss(spec, why, "expected another tuple, or the same");
  // A tuple without another owner was created by `decompose()` or occurs only here. Its address may be reused.
  if (!spec.numbered || Py_REFCNT(object) == 1) return true;
  if (std::find(leaves.tuples.begin(), leaves.tuples.end(), object) != leaves.tuples.end())
    return miss(spec, why, "expected a tuple of its own");
  note_numbered(spec, object, leaves);
  return true;
}

bool match_list(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  if (!PyList_CheckExact(object) || PyList_GET_SIZE(object) != static_cast<Py_ssize_t>(spec.children.size()))
    return miss(spec, why, [&] { return change_of_length(spec.children.size(), object); });
  if (!note_container(object, leaves)) return miss(spec, why, "expected a list of its own");
  for (size_t i = 0; i < spec.children.size(); ++i)
    if (!match(spec.children[i], PyList_GET_ITEM(object, i), leaves, why)) return false;
  return true;
}

bool match_dict(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  if ((PyObject*)Py_TYPE(object) != spec.type.get() ||
      PyDict_Size(object) != static_cast<Py_ssize_t>(spec.children.size()))
    return miss(spec, why, [&] { return change_of_keys(spec.object.get(), object); });
  if (!note_container(object, leaves)) return miss(spec, why, "expected a dict of its own");
  PyObject *key, *value;
  size_t i = 0;
  for (EntriesInOrder entries(object); entries.next(&key, &value);) {
    PyObject* const then = PyTuple_GET_ITEM(spec.object.get(), i);
    if (then != key && (asks_program(key) || !same_value(then, key)))
      return miss(spec, why, [&] { return change_of_keys(spec.object.get(), object); });
    if (!match(spec.children[i++], value, leaves, why)) return false;
  }
  return true;
}

bool match_registered(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  RegisteredNode node;
  if ((PyObject*)Py_TYPE(object) != spec.type.get() || !flatten_registered(object, node) ||
      PyTuple_GET_SIZE(node.children.get()) != static_cast<Py_ssize_t>(spec.children.size()) ||
      !same_value(spec.object.get(), node.context.get()))
    return miss(spec, why, [&] { return "expected another structure, got " + type_name(object); });
  for (size_t i = 0; i < spec.children.size(); ++i)
    if (!match(spec.children[i], PyTuple_GET_ITEM(node.children.get(), i), leaves, why)) return false;
  return true;
}

}  // namespace

void add_float(CallLeaves& leaves, PyObject* number) {
  leaves.floats.push_back(static_cast<uint32_t>(leaves.tensors.size()));
  leaves.tensors.emplace_back(at::detail::empty_strided_cpu({}, {}, at::kDouble));
  *leaves.tensors.back().mutable_data_ptr<double>() = PyFloat_AS_DOUBLE(number);
}

bool match(const ArgSpec& spec, PyObject* object, CallLeaves& leaves, std::string* why) {
  switch (spec.kind) {
    case ArgSpec::Kind::Tensor:
      return match_tensor(spec, object, leaves, why);
    case ArgSpec::Kind::Int:
      return match_int(spec, object, leaves, why);
    case ArgSpec::Kind::Float:
      return match_float(spec, object, leaves, why);
    case ArgSpec::Kind::String:
      return match_string(spec, object, leaves, why);
    case ArgSpec::Kind::Value:
      if (!same_value(spec.object.get(), object))
        return miss(spec, why, [&] { return "expected " + key_text(spec.object.get()) + ", got " + key_text(object); });
      return is_as_asked(spec, object, leaves) || miss(spec, why, "expected another object, or the same");
    case ArgSpec::Kind::Identity:
      return spec.object.get() == object || miss(spec, why, "expected another object");
    case ArgSpec::Kind::Tuple:
      return match_tuple(spec, object, leaves, why);
    case ArgSpec::Kind::List:
      return match_list(spec, object, leaves, why);
    case ArgSpec::Kind::Dict:
      return match_dict(spec, object, leaves, why);
    case ArgSpec::Kind::Registered:
      return match_registered(spec, object, leaves, why);
    case ArgSpec::Kind::ObjectLayout:
      return match_layout(spec, object, leaves, why);
    case ArgSpec::Kind::Opaque:
      if ((PyObject*)Py_TYPE(object) != spec.type.get())
        return miss(spec, why, [&] { return "expected an object of another type, got " + type_name(object); });
      if (spec.object && spec.object.get() != object) return miss(spec, why, "expected another object");
      if (spec.length >= 0 && PyObject_Size(object) != spec.length)
        return miss(spec, why, [&] { return "expected " + std::to_string(spec.length) + " items"; });
      if (PyGen_CheckExact(object)) note_external_generator(object);
      return note_container(object, leaves) || miss(spec, why, "expected an object of its own");
    case ArgSpec::Kind::Same:
      if (spec.type)
        return (spec.position < leaves.tuples.size() && leaves.tuples[spec.position] == object) ||
               miss(spec, why, "expected the same tuple twice");
      return (spec.position < leaves.containers.size() && leaves.containers[spec.position] == object) ||
             miss(spec, why, "expected the same container twice");
  }
  return false;
}

static bool is_number(const ArgSpec& spec) {
  return spec.kind == ArgSpec::Kind::Int || spec.kind == ArgSpec::Kind::Float;
}

bool holds_symbol(const ArgSpec& spec) {
  return is_number(spec) || spec.kind == ArgSpec::Kind::String ||
         std::any_of(spec.children.begin(), spec.children.end(), holds_symbol);
}

static bool is_plain_data(const ArgSpec& spec) {
  if (spec.numbered || spec.asked != 0 || spec.is || spec.is_not) return false;
  if (spec.kind != ArgSpec::Kind::Tuple) return spec.kind == ArgSpec::Kind::Value;
  return spec.object.get() == (PyObject*)&PyTuple_Type &&
         std::all_of(spec.children.begin(), spec.children.end(), is_plain_data);
}

bool is_much_plain_data(const ArgSpec& spec) {
  constexpr size_t kMany = 64;
  return (spec.kind == ArgSpec::Kind::List || (spec.kind == ArgSpec::Kind::Dict && !is_keywords(spec))) &&
         spec.children.size() >= kMany && std::all_of(spec.children.begin(), spec.children.end(), is_plain_data);
}

void hand_on(ArgSpec& spec, bool keep_length) {
  if (spec.kind == ArgSpec::Kind::List) spec.type = PyRef::borrow((PyObject*)&PyList_Type);
  spec.kind = ArgSpec::Kind::Opaque;
  spec.object = {};
  if (keep_length) spec.length = static_cast<int64_t>(spec.children.size());
  spec.children = {};
}

bool may_be_replaced(const ArgSpec& spec) {
  return is_number(spec) || spec.kind == ArgSpec::Kind::String || spec.kind == ArgSpec::Kind::Same ||
         std::any_of(spec.children.begin(), spec.children.end(), may_be_replaced);
}

// A range iterator at a symbolic position.
static PyRef range_iterator(PyObject* range, PyObject* index) {
  static PyObject* const type = module_attribute(python_names::kSubstitutes, "RangeIterator");
  return checked(PyObject_CallFunctionObjArgs(type, range, index, nullptr));
}

// Records the substitute by number. The slots of a generator are an unnumbered tuple without a substitute.
static PyRef noted(const ArgSpec& spec, PyRef now, Symbols& symbols) {
  if (spec.numbered) {
    if (symbols.tuples.size() <= spec.position) symbols.tuples.resize(spec.position + 1);
    symbols.tuples[spec.position] = now;
  }
  return now;
}

static PyRef tuple_with_symbols(const ArgSpec& spec, PyObject* object, Symbols& symbols) {
  PyRef items = checked(PyTuple_New(static_cast<Py_ssize_t>(spec.children.size())));
  bool changed = false;  // false: all symbols are in contained containers and cells
  for (size_t i = 0; i < spec.children.size(); ++i) {
    PyRef item = with_symbols(spec.children[i], PyTuple_GET_ITEM(object, i), symbols);
    changed |= item.get() != PyTuple_GET_ITEM(object, i);
    PyTuple_SET_ITEM(items.get(), i, item.release());
  }
  return noted(spec, changed ? tuple_as(spec.object.get(), std::move(items)) : PyRef::borrow(object), symbols);
}

static PyRef keywords_with_symbols(const ArgSpec& spec, PyObject* object, Symbols& symbols) {
  PyRef items = checked(PyDict_New());
  for (size_t i = 0; i < spec.children.size(); ++i) {
    PyObject* key = PyTuple_GET_ITEM(spec.object.get(), i);
    PyRef value = with_symbols(spec.children[i], value_under(object, key), symbols);
    if (PyDict_SetItem(items.get(), key, value.get()) < 0) throw PythonError{};
  }
  return items;
}

// Stores the symbols in the places of a container or object.
static void put_symbols(const ArgSpec& spec, PyObject* object, Symbols& symbols) {
  const bool is_list = spec.kind == ArgSpec::Kind::List, is_dict = spec.kind == ArgSpec::Kind::Dict;
  const ObjectLayout layout = is_list || is_dict ? ObjectLayout{} : decompose(object);
  for (size_t i = 0; i < spec.children.size(); ++i) {
    if (!may_be_replaced(spec.children[i])) continue;
    PlaceOfItem place;
    if (is_list) place = {PyRef::borrow(object), checked(PyLong_FromSize_t(i))};
    if (is_dict) place = {PyRef::borrow(object), PyRef::borrow(PyTuple_GET_ITEM(spec.object.get(), i))};
    const bool placed = is_list || is_dict || has_place(layout, i);
    if (placed && !place.container) place = place_of_part(object, layout, i);
    const PyRef now = PyRef::borrow(placed ? held_by(place) : layout.parts[i].get());
    PyRef then = with_symbols(spec.children[i], now.get(), symbols);
    if (then.get() == now.get()) continue;
    CRESSET_CHECK(placed, "a symbolic number in an object without a place for it");
    symbols.placed.put(std::move(place), std::move(then));
  }
}

static void put_symbols_into_partial(const ArgSpec& spec, PyObject* partial, Symbols& symbols) {
  constexpr Py_ssize_t kArguments = 1;
  const ObjectLayout layout = decompose(partial);
  with_symbols(spec.children[0], layout.parts[0].get(), symbols);
  PyObject* const state = layout.parts[1].get();
  const PyRef then = with_symbols(spec.children[1], state, symbols);
  if (PyTuple_GET_ITEM(then.get(), kArguments) == PyTuple_GET_ITEM(state, kArguments)) return;
  static PyObject* const name = PyUnicode_InternFromString("args");
  symbols.placed.put({PyRef::borrow(partial), PyRef::borrow(name)},
                     PyRef::borrow(PyTuple_GET_ITEM(then.get(), kArguments)));
}

// Records the symbolic sizes, which the wrapper receives when the segment begins.
static void note_sizes(const ArgSpec& spec, PyObject* wrapper, Symbols& symbols) {
  const ObjectLayout layout = decompose(wrapper);
  Symbols::Wrapper sizes{wrapper, {}, {}};
  sizes.sizes = with_symbols(spec.children[0], layout.parts[0].get(), symbols);
  sizes.strides = with_symbols(spec.children[1], layout.parts[1].get(), symbols);
  symbols.wrappers.push_back(std::move(sizes));
  for (size_t i = kWrapperNumbers; i < spec.children.size(); ++i)
    with_symbols(spec.children[i], layout.parts[i].get(), symbols);
}

// Stores symbols in a generator, whose parts are the parts of a frame (resume_point.h). Numbers lie in slots and on the
// stack.
static void put_symbols_into_frame(const ArgSpec& spec, PyObject* generator, Symbols& symbols) {
  const ObjectLayout layout = decompose(generator);
  const PyRef reference = checked(PyWeakref_NewRef(generator, nullptr));
  size_t index = 0;
  for (size_t part = 0; part < spec.children.size(); ++part) {
    const ArgSpec& items = spec.children[part];
    if (part != 2 && part != 3) {
      with_symbols(items, layout.parts[part].get(), symbols);
      continue;
    }
    for (size_t i = 0; i < items.children.size(); ++i, ++index) {
      PyObject* now = PyTuple_GET_ITEM(layout.parts[part].get(), static_cast<Py_ssize_t>(i));
      PyRef then = with_symbols(items.children[i], now, symbols);
      if (then.get() == now) continue;
      PyObject** slot =
          PyIter_Check(then.get()) ? cresset_eval_generator_slot(generator, static_cast<int>(index)) : nullptr;
      if (slot != nullptr)  // permanent: the old iterator would not have advanced
        const PyRef before = PyRef::steal(std::exchange(*slot, then.release()));
      else
        symbols.placed.put({reference, checked(PyLong_FromSize_t(index))}, std::move(then));
    }
  }
}

// A range or count iterator at a symbolic position is replaced, and so is an iterator that contains it.
static PyRef iterator_with_symbols(const ArgSpec& spec, PyObject* object, Symbols& symbols) {
  ObjectLayout layout = decompose(object);
  if (is_range_iterator(layout) && holds_symbol(spec))
    return range_iterator(layout.parts[0].get(), symbols.numbers[symbols.next++].get());
  bool changed = false;
  for (size_t i = 0; i < layout.parts.size(); ++i) {
    PyRef part = with_symbols(spec.children[i], layout.parts[i].get(), symbols);
    changed |= part.get() != layout.parts[i].get();
    layout.parts[i] = std::move(part);
  }
  return changed ? make_whole(layout) : PyRef::borrow(object);
}

PyRef with_symbols(const ArgSpec& spec, PyObject* object, Symbols& symbols) {
  if (spec.kind == ArgSpec::Kind::Same && spec.type) {
    CRESSET_CHECK(spec.position < symbols.tuples.size() && symbols.tuples[spec.position], "met before it was numbered");
    return symbols.tuples[spec.position];
  }
  if (spec.kind == ArgSpec::Kind::Same)
    for (const auto& [original, now] : symbols.iterators)
      if (original == object) return now;
  if (!may_be_replaced(spec)) return PyRef::borrow(object);
  if (is_number(spec)) {
    const PyRef& number = symbols.numbers[symbols.next++];
    return spec.kind == ArgSpec::Kind::Int && spec.type ? numpy_int_of(number.get()) : number;
  }
  if (spec.kind == ArgSpec::Kind::String)
    return noted(spec, symbols.texts.emplace_back(&spec, text_of_input(object, !spec.looked)).second, symbols);
  if (spec.kind == ArgSpec::Kind::Tuple) return tuple_with_symbols(spec, object, symbols);
  if (is_keywords(spec)) return keywords_with_symbols(spec, object, symbols);
  if (spec.kind == ArgSpec::Kind::ObjectLayout && spec.layout.kind == ObjectLayout::Kind::Generator) {
    put_symbols_into_frame(spec, object, symbols);
    return PyRef::borrow(object);
  }
  if (spec.kind == ArgSpec::Kind::ObjectLayout && spec.layout.kind == ObjectLayout::Kind::Wrapper) {
    note_sizes(spec, object, symbols);
    return PyRef::borrow(object);
  }
  if (spec.kind == ArgSpec::Kind::ObjectLayout && is_partial_function(spec.layout)) {
    put_symbols_into_partial(spec, object, symbols);
    return PyRef::borrow(object);
  }
  if (spec.kind == ArgSpec::Kind::ObjectLayout && spec.layout.kind == ObjectLayout::Kind::Iterator) {
    return symbols.iterators.emplace_back(object, iterator_with_symbols(spec, object, symbols)).second;
  }
  put_symbols(spec, object, symbols);
  return PyRef::borrow(object);
}

void specialize_floats(ArgSpec& spec, const CallLeaves& leaves, uint64_t specialized, size_t& next) {
  if (spec.kind == ArgSpec::Kind::Float) {
    const double value = leaves.tensors[leaves.floats[next]].item<double>();
    if (next >= 64 || (specialized >> next & 1) != 0) spec.object = checked(PyFloat_FromDouble(value));
    ++next;
  }
  for (ArgSpec& child : spec.children) specialize_floats(child, leaves, specialized, next);
}

void collect_constants(const ArgSpec& spec, std::vector<PyRef>& out) {
  if (spec.kind == ArgSpec::Kind::Identity) out.push_back(spec.object);
  for (const ArgSpec& child : spec.children) collect_constants(child, out);
}

int visit(const ArgSpec& spec, visitproc visit, void* arg) {
  Py_VISIT(spec.object.get());
  Py_VISIT(spec.type.get());
  Py_VISIT(spec.is.get());
  Py_VISIT(spec.is_not.get());
  Py_VISIT(spec.layout.form.get());
  for (const ArgSpec& c : spec.children)
    if (const int result = frontend::visit(c, visit, arg)) return result;
  return 0;
}

}  // namespace cresset::frontend
