#include "frontend/values/value_objects.h"

#include <algorithm>
#include <string_view>

#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"

namespace cresset::frontend {
namespace {

// Whether __reduce__ reports the callable and the arguments that create the object.
bool tells_how_it_is_made(PyObject* object) {
  static PyObject *const items = module_attribute("operator", "itemgetter"),
                         *const attributes = module_attribute("operator", "attrgetter"),
                         *const method = module_attribute("operator", "methodcaller");
  return is_partial_function(object) || is_one_of((PyObject*)Py_TYPE(object), {items, attributes, method});
}

ObjectLayout reduced(PyObject* object) {
  const PyRef reported = PyRef::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  if (!reported || !PyTuple_Check(reported.get()) || PyTuple_GET_SIZE(reported.get()) < 2)
    return PyErr_Clear(), ObjectLayout{};
  const bool has_state = PyTuple_GET_SIZE(reported.get()) > 2;
  ObjectLayout out{ObjectLayout::Kind::Value, {}, {}};
  out.form = checked(PyTuple_Pack(2, PyTuple_GET_ITEM(reported.get(), 0), has_state ? Py_True : Py_False));
  PyObject* args = PyTuple_GET_ITEM(reported.get(), 1);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) out.parts.push_back(PyRef::borrow(PyTuple_GET_ITEM(args, i)));
  if (has_state) out.parts.push_back(PyRef::borrow(PyTuple_GET_ITEM(reported.get(), 2)));
  return out;
}

// The function which creates the view: a dictionary method, or the class of a mapping proxy.
PyRef maker_of_view(PyObject* view) {
  if (Py_IS_TYPE(view, &PyDictProxy_Type)) return PyRef::borrow((PyObject*)&PyDictProxy_Type);
  const std::string_view type = Py_TYPE(view)->tp_name;
  const char* const method = type.ends_with("keys") ? "keys" : type.ends_with("values") ? "values" : "items";
  PyTypeObject* const keeper = type.starts_with("odict") ? &PyODict_Type : &PyDict_Type;
  return checked(PyObject_GetAttrString((PyObject*)keeper, method));
}

// The profiler's record of an open region (torch.profiler.record_function).
bool is_record_of_profiler(PyObject* object) {
  if (std::string_view(Py_TYPE(object)->tp_name) != "torch._C.ScriptObject") return false;
  const PyRef type = PyRef::steal(PyObject_CallMethod(object, "_type", nullptr));
  const PyRef name = PyRef::steal(type ? PyObject_CallMethod(type.get(), "name", nullptr) : nullptr);
  if (!name) PyErr_Clear();
  return name && std::string_view(utf8(name.get(), "")) == "_RecordFunction";
}

ObjectLayout record_of_profiler() {
  static PyObject* const made = [] {
    const PyRef operators = import_module("torch.ops");
    const PyRef profiler = checked(PyObject_GetAttrString(operators.get(), "profiler"));
    return PyObject_GetAttrString(profiler.get(), "_record_function_enter_new");
  }();
  return {ObjectLayout::Kind::Value,
          checked(PyTuple_Pack(2, made, Py_False)),
          {checked(PyUnicode_FromString("a compiled region"))}};
}

// Decomposes descriptors in classes, and super(), into their constructor arguments.
ObjectLayout of_descriptor(PyObject* object) {
  ObjectLayout out{ObjectLayout::Kind::Value, checked(PyTuple_Pack(2, (PyObject*)Py_TYPE(object), Py_False)), {}};
  const auto take = [&](const char* member) {
    PyObject* const found = PyDict_GetItemString(type_dict(Py_TYPE(object)), member);
    const PyRef value = checked(Py_TYPE(found)->tp_descr_get(found, object, (PyObject*)Py_TYPE(object)));
    out.parts.push_back(value);
    return value.get();
  };
  if (Py_IS_TYPE(object, &PyProperty_Type)) {
    for (const char* const member : {"fget", "fset", "fdel", "__doc__"}) take(member);
  } else if (Py_IS_TYPE(object, &PySuper_Type)) {
    take("__thisclass__");
    if (take("__self__") == Py_None) return {};  // not bound to an object
  } else {
    take("__func__");
  }
  return out;
}

PyRef arguments_of_form(PyObject* form) { return checked(PyObject_GetAttrString(form, "__args__")); }

}  // namespace

static PyObject* partial_type() {
  static PyObject* const type = module_attribute("functools", "partial");
  return type;
}
bool is_partial_function(PyObject* object) { return (PyObject*)Py_TYPE(object) == partial_type(); }
bool is_partial_function(const ObjectLayout& layout) {
  return layout.kind == ObjectLayout::Kind::Value && PyTuple_GET_ITEM(layout.form.get(), 0) == partial_type();
}

bool is_type_form(PyObject* object) {
  static PyObject* const either = module_attribute("types", "UnionType");
  return Py_IS_TYPE(object, &Py_GenericAliasType) || (PyObject*)Py_TYPE(object) == either;
}

bool all_in_form(PyObject* object, const std::function<bool(PyObject*)>& holds) {
  if (PyTuple_CheckExact(object)) {
    PyObject** const items = PySequence_Fast_ITEMS(object);
    return std::all_of(items, items + PyTuple_GET_SIZE(object), [&](PyObject* i) { return all_in_form(i, holds); });
  }
  if (!is_type_form(object)) return holds(object);
  const PyRef origin = PyRef::steal(PyObject_GetAttrString(object, "__origin__"));
  if (!origin) PyErr_Clear();
  return (!origin || all_in_form(origin.get(), holds)) && all_in_form(arguments_of_form(object).get(), holds);
}

ObjectLayout layout_of_value(PyObject* object) {
  const auto made_by = [&](std::vector<PyRef> parts) {
    return ObjectLayout{ObjectLayout::Kind::Value, checked(PyTuple_Pack(2, (PyObject*)Py_TYPE(object), Py_False)),
                        std::move(parts)};
  };
  if (PySlice_Check(object)) {
    auto* slice = (PySliceObject*)object;
    return made_by({PyRef::borrow(slice->start), PyRef::borrow(slice->stop), PyRef::borrow(slice->step)});
  }
  if (PyObject* inside = viewed(object); inside != nullptr && PyDict_Check(inside))
    return {ObjectLayout::Kind::Value,
            checked(PyTuple_Pack(2, maker_of_view(object).get(), Py_False)),
            {PyRef::borrow(inside)}};
  if (PyFrozenSet_CheckExact(object)) return made_by({checked(PySequence_Tuple(object))});
  if (PyWeakref_CheckRefExact(object)) {
    static PyObject* const dead = module_attribute(python_names::kPolyfills, "dead_reference");
    PyObject* const referent = PyWeakref_GET_OBJECT(object);
    if (referent == Py_None) return {ObjectLayout::Kind::Value, checked(PyTuple_Pack(2, dead, Py_False)), {}};
    return ((PyWeakReference*)object)->wr_callback != nullptr ? ObjectLayout{} : made_by({PyRef::borrow(referent)});
  }
  if (is_record_of_profiler(object)) return record_of_profiler();
  if (Py_IS_TYPE(object, &Py_GenericAliasType))
    return made_by({checked(PyObject_GetAttrString(object, "__origin__")), arguments_of_form(object)});
  if (is_type_form(object)) {  // a | b
    static PyObject *const reduce = module_attribute("functools", "reduce"), *const either =
                                                                                 module_attribute("operator", "or_");
    return {ObjectLayout::Kind::Value,
            checked(PyTuple_Pack(2, reduce, Py_False)),
            {PyRef::borrow(either), arguments_of_form(object)}};
  }
  if (Py_IS_TYPE(object, &PyStaticMethod_Type) || Py_IS_TYPE(object, &PyClassMethod_Type) ||
      Py_IS_TYPE(object, &PyProperty_Type) || Py_IS_TYPE(object, &PySuper_Type))
    return of_descriptor(object);
  return tells_how_it_is_made(object) ? reduced(object) : ObjectLayout{};
}

bool is_tuple_or_size(PyObject* object) {
  static PyObject* const size = module_attribute("torch", "Size");
  return PyTuple_CheckExact(object) || (PyObject*)Py_TYPE(object) == size;
}

}  // namespace cresset::frontend
