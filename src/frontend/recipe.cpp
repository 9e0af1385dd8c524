#include "frontend/recipe.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include "bridge/sym_node.h"
#include "frontend/arg_spec.h"

namespace cresset::frontend {
namespace {

bool is_plain_immutable(PyObject* object) {
  return object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyUnicode_CheckExact(object) || PyBytes_CheckExact(object) || PyType_Check(object);
}

bool is_dict_like(PyObject* object) { return PyDict_CheckExact(object); }

PyObject* instance_dict(PyObject* object) {
  PyObject** slot = _PyObject_GetDictPtr(object);
  return slot != nullptr ? *slot : nullptr;
}

bool has_slots_state(PyObject* object) {
  return Py_TYPE(object)->tp_basicsize > (Py_ssize_t)(sizeof(PyObject) + 2 * sizeof(void*));
}

}  // namespace

// Whether anything reachable through containers and instance dictionaries varies from call to call.
bool RecipeBuilder::contains_traced(PyObject* object, int depth) {
  if (depth > 8 || is_plain_immutable(object)) return false;
  if (THPVariable_Check(object)) return bridge::TraceTensor::from(THPVariable_Unpack(object)) != nullptr;
  if (torch::is_symint(object) || torch::is_symfloat(object) || torch::is_symbool(object)) return true;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    PyRef items = checked(PySequence_Tuple(object));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      if (contains_traced(PyTuple_GET_ITEM(items.get(), i), depth + 1)) return true;
  }
  PyObject* dicts[2] = {PyDict_Check(object) ? object : nullptr, instance_dict(object)};
  for (PyObject* dict : dicts) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (dict != nullptr && PyDict_Next(dict, &position, &key, &value))
      if (contains_traced(value, depth + 1)) return true;
  }
  return false;
}

void RecipeBuilder::children_of(Recipe& recipe, PyObject* tuple, const std::string& path) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    recipe.children.push_back(build(PyTuple_GET_ITEM(tuple, i), path + "[" + std::to_string(i) + "]"));
}

Recipe RecipeBuilder::build(PyObject* object, const std::string& path) {
  Recipe recipe;
  if (THPVariable_Check(object)) {
    bridge::TraceTensor* trace = bridge::TraceTensor::from(THPVariable_Unpack(object));
    if (trace == nullptr) {
      recipe.object = PyRef::borrow(object);  // a real tensor: returned as it is
      return recipe;
    }
    recipe.kind = Recipe::Kind::Tensor;
    const auto [it, fresh] = tensor_positions_.try_emplace(trace, tensors.size());
    if (fresh) tensors.emplace_back(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(trace));
    recipe.position = it->second;
    return recipe;
  }
  if (torch::is_symint(object) || torch::is_symbool(object)) {
    c10::SymNode node = torch::is_symint(object) ? py::cast<c10::SymInt>(py::handle(object)).toSymNode()
                                                 : py::cast<c10::SymBool>(py::handle(object)).toSymNodeImpl();
    auto* ours = dynamic_cast<bridge::SymNode*>(node.get());
    if (ours == nullptr || ours->is_float()) throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
    recipe.kind = ours->is_bool() ? Recipe::Kind::Boolean : Recipe::Kind::Number;
    recipe.position = static_cast<uint32_t>(numbers.size());
    numbers.push_back(ours->expr());
    return recipe;
  }
  if (is_plain_immutable(object)) {
    recipe.object = PyRef::borrow(object);
    return recipe;
  }
  if (existed != nullptr && existed(object)) {
    PyObject* way = argument_path != nullptr ? argument_path(object) : nullptr;
    recipe.kind = way != nullptr ? Recipe::Kind::Argument : Recipe::Kind::Constant;
    recipe.object = PyRef::borrow(way != nullptr ? way : object);
    return recipe;
  }
  if (const auto it = made_.find(object); it != made_.end()) {
    recipe.kind = Recipe::Kind::Shared;
    recipe.position = static_cast<uint32_t>(it->second);
    return recipe;
  }
  const auto remember = [&] {
    recipe.shared_slot = static_cast<int32_t>(shared_slots++);
    made_.emplace(object, recipe.shared_slot);
  };
  RegisteredNode node;
  if (PyTuple_Check(object)) {
    recipe.kind = Recipe::Kind::Tuple;
    recipe.object = PyRef::borrow((PyObject*)Py_TYPE(object));
    PyRef items = checked(PySequence_Tuple(object));
    children_of(recipe, items.get(), path);
    remember();
  } else if (PyList_CheckExact(object)) {
    recipe.kind = Recipe::Kind::List;
    remember();
    children_of(recipe, checked(PySequence_Tuple(object)).get(), path);
  } else if (is_dict_like(object)) {
    recipe.kind = Recipe::Kind::Dict;
    recipe.type = PyRef::borrow((PyObject*)Py_TYPE(object));
    recipe.object = checked(PySequence_Tuple(object));
    remember();
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) recipe.children.push_back(build(value, path + "[...]"));
  } else if (flatten_registered(object, node)) {
    recipe.kind = Recipe::Kind::Registered;
    recipe.type = PyRef::borrow((PyObject*)Py_TYPE(object));
    recipe.object = node.context;
    children_of(recipe, node.children.get(), path);
    remember();
  } else if (!is_made_anew(object) && !contains_traced(object, 0)) {
    recipe.object = PyRef::borrow(object);
  } else {
    return build_object(object, path);
  }
  return recipe;
}

// Whether each call must make its own: an object that the call made, with state of its own.
bool RecipeBuilder::is_made_anew(PyObject* object) const {
  if (existed == nullptr || PyType_Check(object) || PyModule_Check(object)) return false;
  if (PyFunction_Check(object)) return PyFunction_GET_CLOSURE(object) != nullptr;
  if (PyGen_CheckExact(object) || PyIter_Check(object) || PyAnySet_CheckExact(object) || PyCell_Check(object) ||
      PyByteArray_Check(object) || PyMethod_Check(object))
    return true;
  return (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && instance_dict(object) != nullptr;
}

// An instance whose whole state is its __dict__ (a cache object, a dataclass): made anew without running __init__.
Recipe RecipeBuilder::build_object(PyObject* object, const std::string& path) {
  PyObject* dict = instance_dict(object);
  if (dict == nullptr || PyDict_Check(object) || PyList_Check(object) || PyFunction_Check(object) ||
      has_slots_state(object))
    throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
  Recipe recipe;
  recipe.kind = Recipe::Kind::Object;
  recipe.type = PyRef::borrow((PyObject*)Py_TYPE(object));
  recipe.object = checked(PySequence_Tuple(dict));
  recipe.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(object, recipe.shared_slot);
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value)) {
    const char* name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : "?";
    recipe.children.push_back(build(value, path + "." + name));
  }
  return recipe;
}

namespace {

PyRef argument(PyObject* path, const Ingredients& with) {
  PyRef at = PyRef::borrow(PyLong_AsLong(PyTuple_GET_ITEM(path, 0)) == 0 ? with.args : with.kwargs);
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(path); ++i)
    at = checked(PyObject_GetItem(at.get(), PyTuple_GET_ITEM(path, i)));
  return at;
}

PyRef make_tuple(const Recipe& recipe, Ingredients& with) {
  PyRef items = checked(PyTuple_New(static_cast<Py_ssize_t>(recipe.children.size())));
  for (size_t i = 0; i < recipe.children.size(); ++i)
    PyTuple_SET_ITEM(items.get(), i, make(recipe.children[i], with).release());
  return items;
}

PyRef make_named(PyObject* type, PyRef items) {
  if (type == (PyObject*)&PyTuple_Type) return items;
  if (PyObject_HasAttrString(type, "_make")) {
    PyRef make_function = checked(PyObject_GetAttrString(type, "_make"));
    return checked(PyObject_CallOneArg(make_function.get(), items.get()));
  }
  return checked(PyObject_CallOneArg(type, items.get()));  // torch.return_types, torch.Size
}

void fill_dict(const Recipe& recipe, PyObject* dict, Ingredients& with) {
  for (size_t i = 0; i < recipe.children.size(); ++i) {
    PyRef value = make(recipe.children[i], with);
    if (PyDict_SetItem(dict, PyTuple_GET_ITEM(recipe.object.get(), i), value.get()) < 0) throw PythonError{};
  }
}

PyRef make_object(const Recipe& recipe, Ingredients& with) {
  auto* type = (PyTypeObject*)recipe.type.get();
  PyRef no_args = checked(PyTuple_New(0));
  PyRef object = checked(PyBaseObject_Type.tp_new(type, no_args.get(), nullptr));
  with.shared[static_cast<size_t>(recipe.shared_slot)] = object;
  PyRef dict = checked(PyObject_GenericGetDict(object.get(), nullptr));
  fill_dict(recipe, dict.get(), with);
  return object;
}

}  // namespace

PyRef make(const Recipe& recipe, Ingredients& with) {
  const auto remember = [&](PyRef object) {
    if (recipe.shared_slot >= 0) with.shared[static_cast<size_t>(recipe.shared_slot)] = object;
    return object;
  };
  switch (recipe.kind) {
    case Recipe::Kind::Tensor:
      return with.tensors[recipe.position];
    case Recipe::Kind::Number:
      return checked(PyLong_FromLongLong(with.numbers[recipe.position]));
    case Recipe::Kind::Boolean:
      return PyRef::borrow(with.numbers[recipe.position] != 0 ? Py_True : Py_False);
    case Recipe::Kind::Constant:
      return recipe.object;
    case Recipe::Kind::Argument:
      return argument(recipe.object.get(), with);
    case Recipe::Kind::Shared:
      return with.shared[recipe.position];
    case Recipe::Kind::Tuple:
      return remember(make_named(recipe.object.get(), make_tuple(recipe, with)));
    case Recipe::Kind::List: {
      PyRef list = remember(checked(PyList_New(0)));
      for (const Recipe& c : recipe.children)
        if (PyList_Append(list.get(), make(c, with).get()) < 0) throw PythonError{};
      return list;
    }
    case Recipe::Kind::Dict: {
      PyRef dict = remember(checked(PyDict_New()));
      fill_dict(recipe, dict.get(), with);
      return dict;
    }
    case Recipe::Kind::Registered:
      return remember(unflatten_registered(recipe.type.get(), make_tuple(recipe, with).get(), recipe.object.get()));
    case Recipe::Kind::Object:
      return make_object(recipe, with);
  }
  return {};
}

int visit(const Recipe& recipe, visitproc visit, void* arg) {
  Py_VISIT(recipe.object.get());
  Py_VISIT(recipe.type.get());
  for (const Recipe& c : recipe.children)
    if (const int result = frontend::visit(c, visit, arg)) return result;
  return 0;
}

}  // namespace cresset::frontend
