#include "frontend/values/captured_classes.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "frontend/cpython/py_objects.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/value_objects.h"

namespace cresset::frontend {
namespace {

PyObject* shared_classes() {  // weak references, so that the classes can die
  static PyObject* const set = checked(PyObject_CallNoArgs(module_attribute("weakref", "WeakSet"))).release();
  return set;
}

bool may_change(PyObject* value) {
  return PyList_Check(value) || PyDict_Check(value) || PyAnySet_Check(value) || PyByteArray_Check(value) ||
         is_data_object(value);
}

// Searches functions of classes for mutable objects of the call: in closures and defaults, recursively through
// functions.
class Changing {
 public:
  explicit Changing(const std::function<bool(PyObject*)>& existed) : existed_(existed) {}

  // Returns the name of a class member that leads to a mutable object; empty: none.
  std::string in_class(PyTypeObject* type) {
    if (!seen_.insert((PyObject*)type).second || !is_heap_type(type) || existed_((PyObject*)type)) return {};
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(type_dict(type), &at, &name, &value);)
      if (in_value(value)) return utf8(name, "");
    PyObject** const bases = PySequence_Fast_ITEMS(type->tp_bases);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_bases); ++i)
      if (std::string found = in_class((PyTypeObject*)bases[i]); !found.empty()) return found;
    return {};
  }

 private:
  bool in_value(PyObject* value) {
    if (value == nullptr) return false;
    if (PyType_Check(value)) return !in_class((PyTypeObject*)value).empty();
    if (PyFunction_Check(value)) return in_function((PyFunctionObject*)value);
    const bool wraps = Py_IS_TYPE(value, &PyStaticMethod_Type) || Py_IS_TYPE(value, &PyClassMethod_Type) ||
                       Py_IS_TYPE(value, &PyProperty_Type) || PyMethod_Check(value);
    if (!wraps) return false;
    bool any = false;
    const std::pair<Changing*, bool*> found(this, &any);
    Py_TYPE(value)->tp_traverse(value, &Changing::visit, (void*)&found);
    return any;
  }
  static int visit(PyObject* part, void* found) {
    const auto& [self, any] = *static_cast<const std::pair<Changing*, bool*>*>(found);
    return *any = *any || self->in_value(part), 0;
  }
  bool in_function(PyFunctionObject* function) {
    if (!seen_.insert((PyObject*)function).second || existed_((PyObject*)function)) return false;
    PyObject* const cells = function->func_closure;
    for (Py_ssize_t i = 0; cells != nullptr && i < PyTuple_GET_SIZE(cells); ++i)
      if (is_or_holds(PyCell_GET(PyTuple_GET_ITEM(cells, i)))) return true;
    PyObject* const defaults = function->func_defaults;
    for (Py_ssize_t i = 0; defaults != nullptr && i < PyTuple_GET_SIZE(defaults); ++i)
      if (is_or_holds(PyTuple_GET_ITEM(defaults, i))) return true;
    PyObject *name, *value;
    for (Py_ssize_t at = 0;
         function->func_kwdefaults != nullptr && PyDict_Next(function->func_kwdefaults, &at, &name, &value);)
      if (is_or_holds(value)) return true;
    return false;
  }
  bool is_or_holds(PyObject* value) {
    return value != nullptr && ((may_change(value) && !existed_(value)) || in_value(value));
  }

  const std::function<bool(PyObject*)>& existed_;
  std::unordered_set<PyObject*> seen_;
};

// Type parameters which evaluate their bounds lazily.
bool evaluates_later(std::string_view name, PyObject* value) {
  if (name != "__type_params__" || !PyTuple_Check(value)) return false;
  PyObject** const parameters = PySequence_Fast_ITEMS(value);
  return !std::all_of(parameters, parameters + PyTuple_GET_SIZE(value), &is_plain_type_parameter);
}

}  // namespace

std::string share_class(PyTypeObject* type, const std::function<bool(PyObject*)>& existed) {
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(type_dict(type), &at, &name, &value);) {
    const std::string_view text = utf8(name, "");
    if (evaluates_later(text, value)) return "__type_params__, whose bounds are evaluated later";
    const bool of_the_class_itself =
        text.starts_with('_') && text.ends_with('_');                           // __dataclass_fields__, _member_map_
    if (!of_the_class_itself && !Py_IS_TYPE(value, type) && may_change(value))  // enumeration members are excluded
      return std::string(text) + ", which may change";
  }
  if (std::string found = Changing(existed).in_class(type); !found.empty())
    return found + ", whose closure or defaults may change";
  checked(PyObject_CallMethod(shared_classes(), "add", "O", type));
  return {};
}

bool is_made_by_function(PyObject* function) {
  const std::string_view name = utf8(((PyCodeObject*)PyFunction_GET_CODE(function))->co_qualname);
  static constexpr std::string_view kInside = "<locals>.";
  const size_t at = name.rfind(kInside);
  return at != std::string_view::npos && name.find('.', at + kInside.size()) == std::string_view::npos;
}

bool is_shared_class(PyTypeObject* type) { return PySequence_Contains(shared_classes(), (PyObject*)type) == 1; }

}  // namespace cresset::frontend
