#include "frontend/cpython/py_objects.h"

#include <torch/csrc/autograd/python_variable.h>

#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

#include "frontend/cpython/code_origin.h"
#include "frontend/cpython/not_evaluated.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/eval/interpreter.h"
#include "frontend/eval/ordered_keys.h"

namespace cresset::frontend {

PyObject* instance_dict(PyObject* object) {
  PyObject** slot = _PyObject_GetDictPtr(object);
  return slot != nullptr ? *slot : nullptr;
}

// Importing runs Python code that is not part of the program.
PyRef import_module(const char* name) {
  const PyRef text = checked(PyUnicode_FromString(name));
  if (PyObject* there = PyImport_GetModule(text.get())) return PyRef::steal(there);
  PyErr_Clear();
  const NotEvaluated own_business;
  static PyObject* const anything = Py_BuildValue("(s)", "__name__");  // for "a.b" the import then returns b
  return checked(PyImport_ImportModuleLevel(name, nullptr, nullptr, anything, 0));
}

static bool is_of_standard_library(std::string_view file);

// Whether the attribute is a user's function that replaces a standard library function.
static bool is_replaced(std::string_view module, PyObject* attribute) {
  if (!PyFunction_Check(attribute) || module.starts_with("torch") || module.starts_with("cresset")) return false;
  const char* const file = utf8(((PyCodeObject*)PyFunction_GET_CODE(attribute))->co_filename);
  return !is_of_standard_library(file) && module != "numpy";
}

// The C function which a library module re-exports from its underscore module: warnings.warn, operator.add. If there is
// none, or the user replaced it too, a new object that equals no other.
static PyRef original_of(const std::string& module, const char* name) {
  const PyRef text = checked(PyUnicode_FromString(("_" + module).c_str()));
  const PyRef in_c = PyRef::steal(PyImport_GetModule(text.get()));
  PyRef found = in_c ? PyRef::steal(PyObject_GetAttrString(in_c.get(), name)) : PyRef();
  PyErr_Clear();
  return found && is_c_function(found.get()) ? std::move(found)
                                             : checked(PyObject_CallNoArgs((PyObject*)&PyBaseObject_Type));
}

std::string module_of(PyObject* object) {
  PyRef module = PyRef::steal(PyObject_GetAttrString(object, "__module__"));
  if (!module) return PyErr_Clear(), "";
  return utf8(module.get(), "");
}

PyObject* module_attribute(const char* module, const char* name) {
  // Under the GIL; modules are cached because an import check in Python costs more than the rest of this function.
  static auto& modules = *new std::unordered_map<std::string, PyObject*>;
  PyObject*& found = modules[module];
  if (found == nullptr) found = import_module(module).release();
  if (std::strcmp(module, "builtins") == 0)
    if (PyObject* const builtin = PyDict_GetItemString(cresset_eval_builtins(), name)) return Py_NewRef(builtin);
  PyRef attribute = checked(PyObject_GetAttrString(found, name));
  return (is_replaced(module, attribute.get()) ? original_of(module, name) : std::move(attribute)).release();
}

PyObject* private_attribute(const char* module, const char* name) {
  try {
    return module_attribute(module, name);
  } catch (const PythonError&) {
    PyErr_Clear();
  }
  const NotEvaluated own_business;
  return checked(PyObject_CallMethod(import_module(python_names::kGenuine).get(), "absent", "ss", module, name))
      .release();
}

bool is_module(PyObject* object) {
  static PyObject* const type = module_attribute("torch.nn", "Module");
  return PyObject_TypeCheck(object, (PyTypeObject*)type) != 0;  // by its type, since `__class__` may be user code
}

bool is_warn(PyObject* callable) {
  static PyObject* const warn = module_attribute("warnings", "warn");
  return callable == warn;
}

bool is_enum_member(PyObject* object) {
  static PyObject* const type = module_attribute("enum", "Enum");
  return PyObject_TypeCheck(object, (PyTypeObject*)type) != 0;
}

// Most objects have static types, which never derive from a heap type.
static bool is_instance_of(PyObject* object, PyObject* heap_type) {
  PyTypeObject* const type = Py_TYPE(object);
  if ((PyObject*)type == heap_type) return true;
  return is_heap_type(type) && PyType_IsSubtype(type, (PyTypeObject*)heap_type) != 0;
}

bool is_of_method_wrapper_type(PyObject* object) {
  static PyTypeObject* const type = [] {  // libpython does not export it on every platform
    const PyRef wrapper = checked(PyObject_GetAttrString(Py_None, "__str__"));
    return Py_TYPE(wrapper.get());
  }();
  return Py_TYPE(object) == type;
}

const at::Tensor& tensor_of(PyObject* object) { return THPVariable_Unpack(object); }

bool is_equal_by_identity(PyObject* object) {
  const PyTypeObject* const type = Py_TYPE(object);
  return is_tensor(object) ||
         (type->tp_hash == PyBaseObject_Type.tp_hash && type->tp_richcompare == PyBaseObject_Type.tp_richcompare);
}

// Whether the dataclass hashes all its fields, so that the hash specialized all of them.
static bool is_hashed_whole(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("__dataclass_fields__");
  PyObject *field, *const fields = _PyType_Lookup(type, name);
  Py_ssize_t position = 0;
  if (fields == nullptr || !PyDict_Check(fields)) return false;
  while (PyDict_Next(fields, &position, nullptr, &field))
    for (const char* asked : {"hash", "compare"}) {
      const PyRef value = checked(PyObject_GetAttrString(field, asked));
      if (value.get() == Py_False) return false;
    }
  return true;
}

// Classes of the standard library, such as paths and fractions, also hash all their data.
static bool is_of_standard_library(std::string_view file) {
  static const std::string folder = [] {
    const std::string os = utf8(module_attribute("os", "__file__"));
    return os.substr(0, os.find_last_of('/') + 1);
  }();
  return file.starts_with("<frozen") ||
         (file.starts_with(folder) && file.find("-packages/") == std::string_view::npos && !folder.empty());
}

bool is_hashed_by_program(PyObject* object) {
  static PyObject* const name = PyUnicode_InternFromString("__hash__");
  PyTypeObject* const type = Py_TYPE(object);
  PyObject* const hash = is_heap_type(type) ? _PyType_Lookup(type, name) : nullptr;
  if (hash == nullptr || !PyFunction_Check(hash)) return false;
  const std::string_view file = utf8(((PyCodeObject*)PyFunction_GET_CODE(hash))->co_filename);
  if (file == "<string>" && is_hashed_whole(type)) return false;
  return path_in_cresset(((PyCodeObject*)PyFunction_GET_CODE(hash))->co_filename).empty() &&
         !is_of_standard_library(file);
}

PyRef python_tensor(const at::Tensor& tensor) { return checked(THPVariable_Wrap(tensor)); }

// Symbolic numbers of other origin are plain objects, whose nodes are Python objects.
static bool has_node_of_captures(PyObject* number) {
  static PyObject* const name = PyUnicode_InternFromString("node");
  static PyObject* const made_in_c = module_attribute("torch._C", "_SymNode");
  const PyRef node = PyRef::steal(PyObject_GetAttr(number, name));
  if (!node) return PyErr_Clear(), false;
  return Py_IS_TYPE(node.get(), (PyTypeObject*)made_in_c);
}

bool is_symbolic_int(PyObject* object) {
  static PyObject* const type = module_attribute("torch", "SymInt");
  return !is_exact_tensor(object) && is_instance_of(object, type) && has_node_of_captures(object);
}

bool is_symbolic_float(PyObject* object) {
  static PyObject* const type = module_attribute("torch", "SymFloat");
  return !is_exact_tensor(object) && is_instance_of(object, type) && has_node_of_captures(object);
}

bool is_symbolic_bool(PyObject* object) {
  static PyObject* const type = module_attribute("torch", "SymBool");
  return !is_exact_tensor(object) && is_instance_of(object, type) && has_node_of_captures(object);
}

const char* utf8(PyObject* str, const char* otherwise) {
  if (str == nullptr || !PyUnicode_Check(str)) return otherwise;
  const char* text = PyUnicode_AsUTF8(str);
  if (text == nullptr) PyErr_Clear();
  return text != nullptr ? text : otherwise;
}

bool is_numpy_scalar(PyObject* object) { return is_numpy_scalar_type(Py_TYPE(object)); }

bool is_numpy_int64(PyObject* object) {
  return std::strcmp(Py_TYPE(object)->tp_name, "numpy.int64") == 0 && is_numpy_scalar(object);
}

bool is_numpy_scalar_type(PyTypeObject* type) {
  const char* name = type->tp_name;
  // a record is mutable
  if (std::strncmp(name, "numpy.", 6) != 0 || std::strcmp(name, "numpy.void") == 0) return false;
  static PyObject* const generic = module_attribute("numpy", "generic");
  return PyType_IsSubtype(type, (PyTypeObject*)generic) != 0;
}

PyRef keys_in_order(PyObject* dict) {
  if (!PyODict_Check(dict)) return checked(PyDict_Keys(dict));
  return checked(cresset_eval_ordered_keys(dict));
}

void set_item(PyObject* dict, PyObject* key, PyObject* value) {
  const bool ordered = PyODict_Check(dict);
  const int done = value == nullptr ? (ordered ? PyODict_DelItem(dict, key) : PyDict_DelItem(dict, key))
                   : ordered        ? PyODict_SetItem(dict, key, value)
                                    : PyDict_SetItem(dict, key, value);
  if (done < 0) throw PythonError{};
}

PyRef tuple_of(const std::vector<PyRef>& items) {
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), Py_NewRef(items[i].get()));
  return out;
}

PyRef tuple_as(PyObject* type, PyRef items) {
  if (type == (PyObject*)&PyTuple_Type) return items;
  const bool by_sequence = PyObject_HasAttrString(type, "n_sequence_fields") != 0;
  if (!by_sequence && derives_in_python((PyTypeObject*)type, &PyTuple_Type))  // bypass the class's own __new__
    return checked(PyTuple_Type.tp_new((PyTypeObject*)type, checked(PyTuple_Pack(1, items.get())).get(), nullptr));
  if (!PyObject_HasAttrString(type, "_make")) return checked(PyObject_CallOneArg(type, items.get()));
  const PyRef make = checked(PyObject_GetAttrString(type, "_make"));
  return checked(PyObject_CallOneArg(make.get(), items.get()));
}

}  // namespace cresset::frontend
