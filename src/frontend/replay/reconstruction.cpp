#include "frontend/replay/reconstruction.h"

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <array>

#include "bridge/aten/autograd_history.h"
#include "bridge/capture/sym_node.h"
#include "frontend/cpython/containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/finalizers.h"
#include "frontend/cpython/object_repr.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/guards/arg_spec.h"
#include "frontend/guards/state_guards.h"
#include "frontend/values/bound_methods.h"
#include "frontend/values/captured_classes.h"
#include "frontend/values/numpy_ints.h"
#include "frontend/values/object_layout.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/value_objects.h"
#include "frontend/values/wrapper_tensors.h"

namespace cresset::frontend {
namespace {

bool is_plain_immutable(PyObject* object) {
  return object == Py_None || object == Py_Ellipsis || object == Py_NotImplemented || PyBool_Check(object) ||
         PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
         PyBytes_CheckExact(object) || is_numpy_scalar(object) ||
         (PyType_Check(object) && !is_heap_type((PyTypeObject*)object));
}

// Whether torch.func wrapped the tensor. The result of torch.func.vjp keeps wrapped tensors beyond the transform.
bool is_wrapper(const at::Tensor& tensor) {
  return tensor.key_set().has_any(
      c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper}));
}

bool is_dict_like(PyObject* object) { return PyDict_CheckExact(object); }

}  // namespace

bool leads_through_containers(PyObject* path) {
  PyObject** steps = PySequence_Fast_ITEMS(path);
  return std::none_of(steps, steps + PyTuple_GET_SIZE(path), [](PyObject* step) { return PySlice_Check(step); });
}

uint32_t RecipeBuilder::position_of(bridge::TraceTensor* trace) {
  const auto [it, fresh] = tensor_positions_.try_emplace(trace, tensors.size());
  if (fresh) tensors.emplace_back(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(trace));
  return it->second;
}

// The references held by functions, and by static methods, class methods and properties made from them.
static std::vector<PyObject*> held_by_function(PyObject* object) {
  std::vector<PyObject*> parts;
  const auto take = [](PyObject* part, void* parts) {
    return static_cast<std::vector<PyObject*>*>(parts)->push_back(part), 0;
  };
  if (PyFunction_Check(object))
    parts = {PyFunction_GET_CLOSURE(object), PyFunction_GET_DEFAULTS(object), PyFunction_GET_KW_DEFAULTS(object)};
  else if (PyCell_Check(object))
    parts = {PyCell_GET(object)};
  else if (is_bound_method(object))
    parts = {anatomy_of_bound(object).parts[0].get()};
  else if (Py_IS_TYPE(object, &PyStaticMethod_Type) || Py_IS_TYPE(object, &PyClassMethod_Type) ||
           Py_IS_TYPE(object, &PyProperty_Type) || PyMethod_Check(object))
    Py_TYPE(object)->tp_traverse(object, take, &parts);
  return parts;
}

// Whether any object reachable through containers and instance dictionaries varies from call to call.
bool RecipeBuilder::contains_traced(PyObject* object, int depth) {
  if (depth == 0) looked_into_.clear();
  if (depth > 64 || is_plain_immutable(object) || !looked_into_.insert(object).second) return false;
  if (is_wrapper(object)) return existed == nullptr || !existed(object);
  if (is_tensor(object)) return bridge::TraceTensor::from(THPVariable_Unpack(object)) != nullptr;
  if (is_symbolic_number(object) || is_text(object)) return true;
  if (PyType_Check(object) && (existed == nullptr || existed(object))) return false;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    PyRef items = checked(PySequence_Tuple(object));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      if (contains_traced(PyTuple_GET_ITEM(items.get(), i), depth + 1)) return true;
  }
  if (!PyDict_Check(object) && !PyList_Check(object) && !PyTuple_Check(object))
    for (const PyRef& part : anatomy_of_value(object).parts)
      if (contains_traced(part.get(), depth + 1)) return true;
  for (PyObject* part : held_by_function(object))
    if (part != nullptr && contains_traced(part, depth + 1)) return true;
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
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    if (tuple == numbered_) item_ = i;
    recipe.children.push_back(build(PyTuple_GET_ITEM(tuple, i), path + "[" + std::to_string(i) + "]"));
  }
}

// For an object whose reconstruction fails even if a surrounding call runs as a whole.
[[noreturn]] static void fail_anyhow(const std::string& path, std::string type_name,
                                     BreakKind kind = BreakKind::NoReconstruction) {
  throw UnsupportedResult{.path = path, .type_name = std::move(type_name), .kind = kind, .helps_as_a_whole = false};
}

// The keys of a dictionary. Symbolic keys were specialized when they were hashed.
static PyRef plain_keys(PyObject* dict) {
  const PyRef keys = items_of(dict);
  std::vector<PyRef> plain;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys.get(), i);
    const bool numbers = is_symbolic_number(key) || is_text(key) || PyTuple_Check(key) || PyFrozenSet_CheckExact(key);
    plain.push_back(numbers ? without_symbols(PyRef::borrow(key)) : PyRef::borrow(key));
  }
  return tuple_of(plain);
}

Recipe RecipeBuilder::float_recipe(bridge::SymNode& node) {
  Recipe recipe;
  const std::optional<bridge::SymNode::OfSizes> made = node.of_sizes();
  if (!made) {
    recipe.object = checked(PyFloat_FromDouble(node.guard_float(__FILE__, __LINE__)));
    return recipe;
  }
  recipe.position = static_cast<uint32_t>(numbers.size());
  numbers.push_back(made->numerator);
  if (made->denominator.valid()) {
    recipe.kind = Recipe::Kind::Quotient;
    numbers.push_back(made->denominator);
  } else {
    recipe.kind = Recipe::Kind::Product;
    recipe.object = checked(PyFloat_FromDouble(made->factor));
  }
  return recipe;
}

Recipe RecipeBuilder::build_number(PyObject* object, const std::string& path) {
  Recipe recipe;
  const c10::SymNode node = node_of(object);
  if (const at::Tensor tensor = bridge::SymNode::tensor_of(node); tensor.defined()) {
    recipe.kind = Recipe::Kind::Float;
    recipe.position = position_of(bridge::TraceTensor::from(tensor));
    return recipe;
  }
  auto* ours = dynamic_cast<bridge::SymNode*>(node.get());
  if (ours == nullptr) throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
  if (ours->env() != capture_.env_ptr()) throw UnsupportedResult{path, "number of an earlier piece"};
  if (ours->is_float()) return float_recipe(*ours);
  recipe.kind = ours->is_bool() ? Recipe::Kind::Boolean : Recipe::Kind::Number;
  if (is_numpy_int(object)) recipe.type = PyRef::borrow(module_attribute("numpy", "int64"));
  recipe.position = static_cast<uint32_t>(numbers.size());
  bridge::SymNode::keep_in_int64(*ours->env(), ours->expr());
  numbers.push_back(ours->expr());
  return recipe;
}

Recipe RecipeBuilder::build_text(PyObject* object, const std::string& path) {
  Recipe recipe;
  recipe.object = PyRef::borrow(looked_at_text(object));
  recipe.unlooked = had_better_end_piece(object);
  if (recipe.object) return recipe;
  const Operation* const operation = operation_of_text(object);
  if (operation == nullptr) {  // an input of the segment
    PyObject* const way = argument_path != nullptr ? argument_path(object) : nullptr;
    if (way == nullptr) return recipe.object = plain_text(object), recipe;
    recipe.kind = Recipe::Kind::Argument;
    recipe.object = PyRef::borrow(way);
    recipe.type = PyRef::borrow((PyObject*)&PyUnicode_Type);  // a new object at each call
    return recipe;
  }
  recipe.kind = Recipe::Kind::Text;
  PyObject* const names = operation->kwnames ? operation->kwnames.get() : Py_None;
  recipe.object = checked(
      Py_BuildValue("(iinO)", static_cast<int>(operation->kind), operation->operation, operation->positional, names));
  for (const PyRef& operand : operation->operands) {
    kept_.push_back(operand);
    recipe.children.push_back(build(operand.get(), path + " (a part of the text)"));
  }
  return recipe;
}

// These objects are singletons of the process.
static bool is_constant_of_torch(PyObject* object) {
  return THPDtype_Check(object) || THPLayout_Check(object) || THPMemoryFormat_Check(object);
}

// Keys are constants of the reconstruction. A symbolic key is represented by its value, which hashing has specialized.
void RecipeBuilder::no_moving_key(PyObject* key, const std::string& path) const {
  if (is_symbolic_number(key)) return;
  if (is_of_call && !is_constant_of_torch(key) && (is_equal_by_identity(key) || is_hashed_by_program(key)) &&
      is_of_call(key))
    fail_anyhow(path, std::string("dict with the key ") + Py_TYPE(key)->tp_name + ", which each call has its own of,");
  if (!PyTuple_CheckExact(key) && !PyFrozenSet_CheckExact(key)) return;
  const PyRef parts = checked(PySequence_Tuple(key));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts.get()); ++i) no_moving_key(PyTuple_GET_ITEM(parts.get(), i), path);
}

// Addresses are the keys in the memo of copy.deepcopy().
void RecipeBuilder::no_address(PyObject* number, const std::string& path) const {
  if (!is_address) return;
  if (is_address(number))
    throw UnsupportedResult{.path = path, .type_name = "int, which is an object's address", .address = number};
  for (Py_ssize_t i = 0; PyTuple_CheckExact(number) && i < PyTuple_GET_SIZE(number); ++i)
    no_address(PyTuple_GET_ITEM(number, i), path);
}

// The name of a leaf's gradient; no attribute in a `__dict__` can have this name.
static PyObject* gradient_name() {
  static PyObject* const name = PyUnicode_InternFromString("grad");
  return name;
}
static bool has_gradient(PyObject* tensor) {
  const at::Tensor& t = THPVariable_Unpack(tensor);
  return t.requires_grad() && t.is_leaf() && t.grad().defined();
}

Recipe RecipeBuilder::build_tensor(PyObject* object, const std::string& path) {
  Recipe recipe;
  bridge::TraceTensor* trace = bridge::TraceTensor::from(THPVariable_Unpack(object));
  if (is_wrapper(THPVariable_Unpack(object))) fail_anyhow(path, "Tensor, which a transform has wrapped");
  if (trace == nullptr) {
    recipe.object = PyRef::borrow(object);  // a real tensor: returned unchanged
    return recipe;
  }
  const bool own = trace == THPVariable_Unpack(object).unsafeGetTensorImpl();
  if (own && !c10::InferenceMode::is_enabled()) {
    (THPVariable_Unpack(object).is_inference() ? in_inference : outside_inference) = true;
    if (in_inference && outside_inference) fail_anyhow(path, "Tensor, of inference mode beside others");
  }
  PyObject* attributes = own ? instance_dict(object) : nullptr;
  if (own && (Py_TYPE(object) != (PyTypeObject*)THPVariableClass ||
              (attributes != nullptr && PyDict_GET_SIZE(attributes) != 0) || has_gradient(object)))
    return build_tensor_object(object, trace, attributes, path);
  recipe.kind = Recipe::Kind::Tensor;
  recipe.position = position_of(trace);
  return recipe;
}

// Whether the tuple contains symbols. It is a substitute for a tuple of the call, so it is never a constant.
static bool is_made_of_symbols(PyObject* object) {
  if (!PyTuple_Check(object)) return is_symbolic(object);
  PyObject** const items = PySequence_Fast_ITEMS(object);
  return std::any_of(items, items + PyTuple_GET_SIZE(object), is_made_of_symbols);
}

// A reconstruction which calls `maker` with the children.
static Recipe value_recipe(PyObject* maker) {
  Recipe recipe;
  recipe.kind = Recipe::Kind::Anatomy;
  recipe.anatomy = Anatomy::Kind::Value;
  recipe.object = checked(PyTuple_Pack(2, maker, Py_False));
  return recipe;
}

// For a numpy scalar created by the call, which is a new object at each call. A constant if its value has no Python
// equivalent.
static Recipe scalar_recipe(PyObject* number) {
  Recipe recipe;
  const std::string_view type = Py_TYPE(number)->tp_name;  // the number of a date has no unit
  if (!type.starts_with("numpy.int") && !type.starts_with("numpy.uint") && !type.starts_with("numpy.float"))
    return recipe;
  const PyRef value = checked(PyObject_CallMethod(number, "item", nullptr));
  if (!PyLong_CheckExact(value.get()) && !PyFloat_CheckExact(value.get())) return recipe;
  recipe = value_recipe((PyObject*)Py_TYPE(number));
  recipe.children.emplace_back().object = value;
  return recipe;
}

// A symbolic string. Several places share one string.
Recipe RecipeBuilder::build_shared_text(PyObject* object, const std::string& path) {
  Recipe recipe;
  if (const auto it = made_.find(object); it != made_.end()) {
    recipe.kind = Recipe::Kind::Shared;
    recipe.position = static_cast<uint32_t>(it->second);
    return recipe;
  }
  recipe = build_text(object, path);
  if (recipe.kind != Recipe::Kind::Text) return recipe;
  recipe.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(object, recipe.shared_slot);
  return recipe;
}

// A NumPy scalar of the call; empty for other objects.
std::optional<Recipe> RecipeBuilder::build_scalar(PyObject* object) {
  if (!is_numpy_scalar(object) || existed == nullptr || existed(object) || made_.count(object) != 0)
    return std::nullopt;
  Recipe scalar = scalar_recipe(object);
  if (scalar.kind != Recipe::Kind::Anatomy) return std::nullopt;
  scalar.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(object, scalar.shared_slot);
  return scalar;
}

// Values, and objects which later calls have too; empty for other objects.
std::optional<Recipe> RecipeBuilder::build_given(PyObject* object, const std::string& path) {
  Recipe recipe;
  PyObject* const way = argument_path != nullptr ? argument_path(object) : nullptr;
  const bool is_constant_tuple =
      PyTuple_CheckExact(object) && is_constant_value(object) && is_older && is_older(object);
  const bool is_unseen = is_opaque && is_opaque(object);
  const bool handed_on = way != nullptr && (is_unseen || leads_through_containers(way));  // differs at each call
  if (way == nullptr)
    if (std::optional<Recipe> scalar = build_scalar(object)) return scalar;
  if (!handed_on && (is_plain_immutable(object) || is_constant_tuple) && made_.count(object) == 0) {
    no_address(object, path);
    recipe.object = PyRef::borrow(object);
    return recipe;
  }
  const bool is_stand_in = way == nullptr && PyTuple_Check(object) && is_made_of_symbols(object);
  if (!handed_on && (existed == nullptr || !existed(object) || is_stand_in)) return std::nullopt;
  recipe.kind = way != nullptr ? Recipe::Kind::Argument : Recipe::Kind::Constant;
  recipe.object = PyRef::borrow(way != nullptr ? way : object);
  return recipe;
}

// A class from the call: later calls share the class of the first call.
Recipe RecipeBuilder::build_class(PyObject* object, const std::string& path) {
  if (contains_traced(object, 0)) throw UnsupportedResult{path, "a class of its own"};
  if (existed != nullptr && is_heap_type((PyTypeObject*)object))
    if (const std::string what = share_class((PyTypeObject*)object, existed); !what.empty())
      fail_anyhow(path, "a class that holds " + what);
  Recipe recipe;
  recipe.object = PyRef::borrow(object);
  return recipe;
}

// An object whose reconstruction has begun; empty for other objects.
std::optional<Recipe> RecipeBuilder::build_again(PyObject* object, const std::string& path) const {
  Recipe recipe;
  if (const auto it = made_.find(object); it != made_.end()) {
    if (unfinished_.count(it->second) != 0) throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
    recipe.kind = Recipe::Kind::Shared;
    recipe.position = static_cast<uint32_t>(it->second);
    return recipe;
  }
  const auto it = dictionaries_.find(object);
  if (it == dictionaries_.end()) return std::nullopt;
  recipe.kind = Recipe::Kind::DictionaryOf;
  recipe.position = static_cast<uint32_t>(it->second);
  return recipe;
}

Recipe RecipeBuilder::build(PyObject* object, const std::string& path) {
  const bool wraps = is_wrapper(object);
  if (is_tensor(object) && !wraps) return build_tensor(object, path);
  if (wraps && tensor_of(object).requires_grad() && tensor_of(object).grad_fn())
    fail_anyhow(path, std::string(Py_TYPE(object)->tp_name) + ", which wants gradients");
  if (is_symbolic_number(object)) return build_number(object, path);
  if (is_text(object)) return build_shared_text(object, path);
  if (std::optional<Recipe> given = build_given(object, path)) return std::move(*given);
  if (PyType_Check(object)) return build_class(object, path);
  if (std::optional<Recipe> again = build_again(object, path)) return std::move(*again);
  if (arrays != nullptr && arrays->knows(object)) return build_array(object, path);
  return build_made(object, path);
}

// Creates an array with the same contents at each call. It shares memory with other arrays of the call.
Recipe RecipeBuilder::build_array(PyObject* array, const std::string& path) {
  const KnownArrays::Parts parts = arrays->take_apart(array);
  if (!parts.maker) throw UnsupportedResult{path, "numpy.ndarray that is a view of one with gaps"};
  Recipe recipe = value_recipe(parts.maker.get());
  if (parts.of) recipe.children.push_back(build(parts.of.get(), path));
  recipe.children.emplace_back().object = parts.constant;
  recipe.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(array, recipe.shared_slot);
  return recipe;
}

// Reconstructs an object of the call at its first occurrence.
Recipe RecipeBuilder::build_made(PyObject* object, const std::string& path) {
  Recipe recipe;
  const auto remember = [&] {
    recipe.shared_slot = static_cast<int32_t>(shared_slots++);
    made_.emplace(object, recipe.shared_slot);
  };
  // If the call created the class too, later calls share the class if possible.
  if (existed != nullptr && is_heap_type(Py_TYPE(object)) && !existed((PyObject*)Py_TYPE(object)))
    build((PyObject*)Py_TYPE(object), path);
  RegisteredNode node;
  if (PyTuple_Check(object)) {
    if (PyObject* const dict = instance_dict(object); dict != nullptr && PyDict_GET_SIZE(dict) != 0)
      throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
    recipe.kind = Recipe::Kind::Tuple;
    recipe.object = PyRef::borrow((PyObject*)Py_TYPE(object));
    PyRef items = checked(PySequence_Tuple(object));
    children_of(recipe, items.get(), path);
    remember();
  } else if (std::pair<PyRef, PyRef> sum; PyList_CheckExact(object) && sum_of && (sum = sum_of(object)).first) {
    recipe.kind = Recipe::Kind::Sum;
    recipe.children.push_back(build(sum.first.get(), path));
    kept_.push_back(checked(PySequence_List(sum.second.get())));
    recipe.children.push_back(build(PyRef::borrow(kept_.back().get()).get(), path));
    remember();
  } else if (PyList_CheckExact(object)) {
    recipe.kind = Recipe::Kind::List;
    remember();
    children_of(recipe, checked(PySequence_Tuple(object)).get(), path);
  } else if (is_dict_like(object)) {
    recipe.kind = Recipe::Kind::Dict;
    recipe.type = PyRef::borrow((PyObject*)Py_TYPE(object));
    recipe.object = plain_keys(object);
    remember();
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) {
      no_address(key, path);
      no_moving_key(key, path);
      recipe.children.push_back(build(value, path + "[...]"));
    }
  } else if (take_apart(object).kind == Anatomy::Kind::None && !has_keys_that_ask(object) &&
             flatten_registered(object, node)) {  // last resort: these are functions of the program
    recipe.kind = Recipe::Kind::Registered;
    recipe.type = PyRef::borrow((PyObject*)Py_TYPE(object));
    recipe.object = without_symbols(std::move(node.context));  // keys, specialized by hashing
    children_of(recipe, node.children.get(), path);
    remember();
  } else if (!is_made_anew(object) && !contains_traced(object, 0)) {
    recipe.object = PyRef::borrow(object);
  } else {
    return build_anatomy(object, path);
  }
  return recipe;
}

// Whether each call must create the object: it is from the call and has state of its own.
bool RecipeBuilder::is_made_anew(PyObject* object) const {
  if (existed == nullptr || PyType_Check(object) || PyModule_Check(object)) return false;
  if (is_c_function(object)) return has_own_self(object);
  const PyTypeObject* type = Py_TYPE(object);
  if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type ||
      type == &PyGetSetDescr_Type || type == &PyMemberDescr_Type)
    return false;
  if (PyFunction_Check(object)) return PyFunction_GET_CLOSURE(object) != nullptr || is_made_by_function(object);
  if (PySlice_Check(object)) {
    const auto* slice = (const PySliceObject*)object;
    const std::array parts = {slice->start, slice->stop, slice->step};  // C code keeps the number: x[:array]
    return argument_path && std::any_of(parts.begin(), parts.end(), [&](PyObject* p) { return argument_path(p); });
  }
  if (std::string_view(type->tp_name).starts_with("numpy.dtypes.") &&
      std::string_view(type->tp_name) != "numpy.dtypes.VoidDType")
    return false;
  if (PyFrozenSet_CheckExact(object) || PyRange_Check(object) || PyCode_Check(object) || PyComplex_CheckExact(object) ||
      Py_TYPE(object) == &PyProperty_Type || is_library_value(object))
    return false;
  if (THPDtype_Check(object) || THPDevice_Check(object) || THPLayout_Check(object) || THPMemoryFormat_Check(object))
    return false;
  // Enum members and other permanent objects are reached through older objects.
  return true;
}

// Reconstructs a tensor of a user class, or a tensor with attributes.
Recipe RecipeBuilder::build_tensor_object(PyObject* object, bridge::TraceTensor* trace, PyObject* attributes,
                                          const std::string& path) {
  Recipe recipe;
  if (const auto it = made_.find(object); it != made_.end()) {
    recipe.kind = Recipe::Kind::Shared;
    recipe.position = static_cast<uint32_t>(it->second);
    return recipe;
  }
  recipe.kind = Recipe::Kind::TensorObject;
  recipe.position = position_of(trace);
  recipe.type = PyRef::borrow((PyObject*)Py_TYPE(object));
  recipe.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(object, recipe.shared_slot);
  recipe.object = attributes != nullptr ? checked(PySequence_Tuple(attributes)) : checked(PyTuple_New(0));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(recipe.object.get()); ++i) {
    PyObject* name = PyTuple_GET_ITEM(recipe.object.get(), i);
    recipe.children.push_back(build(PyDict_GetItemWithError(attributes, name), path + "." + key_text(name)));
  }
  if (has_gradient(object)) {
    const PyRef name = checked(PyTuple_Pack(1, gradient_name()));
    recipe.object = checked(PySequence_Concat(recipe.object.get(), name.get()));
    kept_.push_back(checked(PyObject_GetAttr(object, gradient_name())));
    recipe.children.push_back(build(PyRef::borrow(kept_.back().get()).get(), path + ".grad"));
  }
  return recipe;
}

// Whether the object observes deaths: an instance with a __del__ or with weak references to it, or a weak reference.
// Exempt are weak references to older tensors and to older builtin containers.
bool RecipeBuilder::tells_when_it_dies(PyObject* object, const Anatomy& anatomy) const {
  static PyObject* const finalizer = PyUnicode_InternFromString("__del__");
  if (has_attributes(anatomy.kind))
    return behind_break && (_PyType_Lookup(Py_TYPE(object), finalizer) != nullptr || is_watched_weakly(object));
  if (!PyWeakref_CheckRefExact(object)) return false;
  if (anatomy.parts.empty()) return !behind_break;  // dead: other objects of the call may die soon, too
  PyObject* const referent = anatomy.parts[0].get();
  return (is_heap_type(Py_TYPE(referent)) && !is_tensor(referent)) || !existed || !existed(referent);
}

Recipe RecipeBuilder::build_anatomy(PyObject* object, const std::string& path) {
  // The annotations dictionary of a function is created at the first access, which may happen in a later segment.
  if (PyFunction_Check(object)) checked(PyObject_GetAttrString(object, "__annotations__"));
  const Anatomy anatomy = take_apart(object);
  if (tells_when_it_dies(object, anatomy))
    fail_anyhow(path, std::string(Py_TYPE(object)->tp_name) + ", " + kTellsDeath, BreakKind::ObjectLifetime);
  kept_.insert(kept_.end(), anatomy.parts.begin(), anatomy.parts.end());
  if (anatomy.kind == Anatomy::Kind::Traceback) tracebacks.push_back(PyRef::borrow(object));
  if (anatomy.kind == Anatomy::Kind::None) throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
  if (anatomy.kind == Anatomy::Kind::Generator && !anatomy.parts.empty() && holds_function)
    holds_function(anatomy.parts[0].get());
  Recipe recipe;
  recipe.kind = Recipe::Kind::Anatomy;
  recipe.anatomy = anatomy.kind;
  recipe.object = anatomy.form;
  recipe.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(object, recipe.shared_slot);
  if (PyObject* const dict = has_attributes(anatomy.kind) ? instance_dict(object) : nullptr) {
    if (made_.count(dict) != 0) throw UnsupportedResult{path, "an object whose __dict__ is made before it"};
    dictionaries_.emplace(dict, recipe.shared_slot);
  }
  if (generator_number && has_fate(object, anatomy)) recipe.reuse = generator_number(object);
  const bool parts_first = recipe.reuse < 0 && is_made_whole(anatomy.kind);
  if (parts_first) unfinished_.insert(recipe.shared_slot);  // a part that refers back to the object cannot be created
  for (size_t i = 0; i < anatomy.parts.size(); ++i) {
    PyObject* const part = anatomy.parts[i].get();
    // An exception owns its arguments tuple, even if the collector has seen the tuple after a break. An argument tuple
    // of the call stays that tuple.
    const bool own = anatomy.kind == Anatomy::Kind::Exception && i == 0 && made_.count(part) == 0;
    if (PyObject* const way = own && argument_path != nullptr ? argument_path(part) : nullptr) {
      recipe.children.emplace_back().kind = Recipe::Kind::Argument;
      recipe.children.back().object = PyRef::borrow(way);
      continue;
    }
    const std::string where = path + "." + part_name(anatomy, i);
    recipe.children.push_back(own ? build_made(part, where) : build(part, where));
  }
  unfinished_.erase(recipe.shared_slot);
  return recipe;
}

namespace {

PyRef argument(PyObject* path, const Ingredients& with) {
  const long root = PyLong_AsLong(PyTuple_GET_ITEM(path, 0));
  Py_ssize_t first = 1;
  PyRef at = PyRef::borrow(root == 0 ? with.args : with.kwargs);
  if (root == kStateRoot) at = with.state.at(PyLong_AsSize_t(PyTuple_GET_ITEM(path, first++)));
  for (Py_ssize_t i = first; i < PyTuple_GET_SIZE(path); ++i) {
    PyObject* step = PyTuple_GET_ITEM(path, i);
    // slice(i) leads to part i of the object's layout, slice(None) to its __dict__: a slice is no dict key.
    if (PySlice_Check(step) && ((PySliceObject*)step)->stop == Py_None)
      at = checked(PyObject_GenericGetDict(at.get(), nullptr));
    else if (PySlice_Check(step))
      at = take_apart(at.get()).parts.at(PyLong_AsSize_t(((PySliceObject*)step)->stop));
    else
      at = checked(PyObject_GetItem(at.get(), step));
  }
  return at;
}

PyRef make_tuple(const Recipe& recipe, Ingredients& with) {
  PyRef items = checked(PyTuple_New(static_cast<Py_ssize_t>(recipe.children.size())));
  for (size_t i = 0; i < recipe.children.size(); ++i)
    PyTuple_SET_ITEM(items.get(), i, make(recipe.children[i], with).release());
  return items;
}

PyRef make_text(const Recipe& recipe, Ingredients& with) {
  PyObject* const parts = recipe.object.get();
  Operation operation;
  operation.kind = static_cast<Operation::Kind>(PyLong_AsLong(PyTuple_GET_ITEM(parts, 0)));
  operation.operation = static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(parts, 1)));
  operation.positional = PyLong_AsSsize_t(PyTuple_GET_ITEM(parts, 2));
  if (PyTuple_GET_ITEM(parts, 3) != Py_None) operation.kwnames = PyRef::borrow(PyTuple_GET_ITEM(parts, 3));
  for (const Recipe& child : recipe.children) operation.operands.push_back(make(child, with));
  return checked(perform(operation).release());
}

// Uses torch's own functions, so no user constructor runs. Operator results keep their autograd graph.
PyRef of_class(PyObject* type, const PyRef& tensor) {
  static PyObject *const make_subclass =
                             PyObject_GetAttrString(module_attribute("torch._C", "TensorBase"), "_make_subclass"),
                         *const as_subclass =
                             PyObject_GetAttrString(module_attribute("torch._C", "TensorBase"), "as_subclass");
  const at::Tensor& plain = tensor_of(tensor.get());
  if (plain.requires_grad() && plain.grad_fn()) {
    const c10::AutoGradMode recording(true);  // independent of the caller's mode
    return checked(PyObject_CallFunctionObjArgs(as_subclass, tensor.get(), type, nullptr));
  }
  PyObject* const wants_gradient = plain.requires_grad() ? Py_True : Py_False;
  PyRef made = checked(PyObject_CallFunctionObjArgs(make_subclass, type, tensor.get(), wants_gradient, nullptr));
  // the program may compute its gradient
  if (plain.requires_grad()) bridge::take_place_of(plain, tensor_of(made.get()));
  return made;
}

PyRef make_tensor_object(const Recipe& recipe, Ingredients& with) {
  PyRef made = with.tensors[recipe.position];
  if ((PyObject*)Py_TYPE(made.get()) != recipe.type.get()) made = of_class(recipe.type.get(), made);
  with.shared[static_cast<size_t>(recipe.shared_slot)] = made;
  for (size_t i = 0; i < recipe.children.size(); ++i) {
    PyObject* const name = PyTuple_GET_ITEM(recipe.object.get(), i);
    const PyRef value = make(recipe.children[i], with);
    const PyRef dict = name != gradient_name() ? checked(PyObject_GenericGetDict(made.get(), nullptr)) : PyRef();
    if ((dict ? PyDict_SetItem(dict.get(), name, value.get()) : PyObject_SetAttr(made.get(), name, value.get())) < 0)
      throw PythonError{};
  }
  return made;
}

void fill_dict(const Recipe& recipe, PyObject* dict, Ingredients& with) {
  for (size_t i = 0; i < recipe.children.size(); ++i) {
    PyRef value = make(recipe.children[i], with);
    if (PyDict_SetItem(dict, PyTuple_GET_ITEM(recipe.object.get(), i), value.get()) < 0) throw PythonError{};
  }
}

PyRef make_anatomy(const Recipe& recipe, Ingredients& with) {
  Anatomy anatomy{recipe.anatomy, recipe.object, {}};
  PyRef& slot = with.shared[static_cast<size_t>(recipe.shared_slot)];
  const PyRef empty = slot =
      recipe.reuse >= 0 ? with.generators[static_cast<size_t>(recipe.reuse)] : make_empty(anatomy);
  for (const Recipe& c : recipe.children) anatomy.parts.push_back(make(c, with));
  if (recipe.reuse >= 0) return with.refilled.emplace_back(empty, std::move(anatomy)), empty;
  PyRef made = empty ? empty : make_whole(anatomy);
  with.shared[static_cast<size_t>(recipe.shared_slot)] = made;
  if (empty) fill(made.get(), anatomy);
  // The position may lie behind the current end of a list which replayed side effects will extend.
  if (recipe.anatomy == Anatomy::Kind::Iterator) with.refilled.emplace_back(made, std::move(anatomy));
  return made;
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
    case Recipe::Kind::TensorObject:
      return make_tensor_object(recipe, with);
    case Recipe::Kind::Number:
      return recipe.type ? checked(PyObject_CallFunction(recipe.type.get(), "L", with.numbers[recipe.position]))
                         : checked(PyLong_FromLongLong(with.numbers[recipe.position]));
    case Recipe::Kind::Boolean:
      return PyRef::borrow(with.numbers[recipe.position] != 0 ? Py_True : Py_False);
    case Recipe::Kind::Float: {
      const at::Tensor& number = THPVariable_Unpack(with.tensors[recipe.position].get());
      return checked(PyFloat_FromDouble(number.item<double>()));
    }
    case Recipe::Kind::Quotient:
      return checked(PyFloat_FromDouble(static_cast<double>(with.numbers[recipe.position]) /
                                        static_cast<double>(with.numbers[recipe.position + 1])));
    case Recipe::Kind::Product:
      return checked(PyFloat_FromDouble(static_cast<double>(with.numbers[recipe.position]) *
                                        PyFloat_AS_DOUBLE(recipe.object.get())));
    case Recipe::Kind::Text:
      return remember(make_text(recipe, with));
    case Recipe::Kind::Constant:
      return recipe.object;
    case Recipe::Kind::Argument:
      return argument(recipe.object.get(), with);
    case Recipe::Kind::Shared:
      return with.shared[recipe.position];
    case Recipe::Kind::Tuple:
      return remember(tuple_as(recipe.object.get(), make_tuple(recipe, with)));
    case Recipe::Kind::List: {
      PyRef list = remember(checked(PyList_New(0)));
      for (const Recipe& c : recipe.children)
        if (PyList_Append(list.get(), make(c, with).get()) < 0) throw PythonError{};
      return list;
    }
    case Recipe::Kind::Sum: {
      const PyRef left = make(recipe.children[0], with), right = make(recipe.children[1], with);
      return remember(checked(PySequence_Concat(left.get(), right.get())));
    }
    case Recipe::Kind::Dict: {
      PyRef dict = remember(checked(PyDict_New()));
      fill_dict(recipe, dict.get(), with);
      return dict;
    }
    case Recipe::Kind::DictionaryOf:
      return checked(PyObject_GenericGetDict(with.shared[recipe.position].get(), nullptr));
    case Recipe::Kind::Registered:
      return remember(unflatten_registered(recipe.type.get(), make_tuple(recipe, with).get(), recipe.object.get()));
    case Recipe::Kind::Anatomy:
      return make_anatomy(recipe, with);
  }
  return {};
}

void find_generators(const std::vector<Fate>& fates, Ingredients& with) {
  for (const Fate& fate : fates) with.generators.push_back(argument(fate.path.get(), with));
}

// The segment has already performed the side effects of closing the object.
static void finish(PyObject* object) {
  const bool closes = PyGen_CheckExact(object) || PyCoro_CheckExact(object);
  if (closes && cresset_eval_set_generator(object, nullptr) < 0) throw PythonError{};
}

// All generators are held until the last is settled, so that a finished generator is not closed.
void settle_generators(const std::vector<Fate>& fates, Ingredients& with) {
  for (size_t i = 0; i < fates.size(); ++i)  // the finished generators may hold created objects
    if (!fates[i].lives_on) finish(with.generators[i].get());
  for (const auto& [generator, anatomy] : with.refilled) fill(generator.get(), anatomy);
  with.refilled.clear();
}

void collect_constants(const Recipe& recipe, std::unordered_set<PyObject*>& out) {
  if (recipe.kind == Recipe::Kind::Constant) out.insert(recipe.object.get());
  for (const Recipe& c : recipe.children) collect_constants(c, out);
}

int visit(const Recipe& recipe, visitproc visit, void* arg) {
  Py_VISIT(recipe.object.get());
  Py_VISIT(recipe.type.get());
  for (const Recipe& c : recipe.children)
    if (const int result = frontend::visit(c, visit, arg)) return result;
  return 0;
}

}  // namespace cresset::frontend
