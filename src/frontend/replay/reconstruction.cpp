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

uint32_t ReconstructionBuilder::position_of(bridge::TraceTensor* trace) {
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
    parts = {layout_of_bound(object).parts[0].get()};
  else if (Py_IS_TYPE(object, &PyStaticMethod_Type) || Py_IS_TYPE(object, &PyClassMethod_Type) ||
           Py_IS_TYPE(object, &PyProperty_Type) || PyMethod_Check(object))
    Py_TYPE(object)->tp_traverse(object, take, &parts);
  return parts;
}

// Whether any object reachable through containers and instance dictionaries varies from call to call.
bool ReconstructionBuilder::contains_traced(PyObject* object, int depth) {
  if (depth == 0) looked_into_.clear();
  if (depth > 64 || is_plain_immutable(object) || !looked_into_.insert(object).second) return false;
  if (is_wrapper(object)) return existed == nullptr || !existed(object);
  if (is_tensor(object)) return bridge::TraceTensor::from(THPVariable_Unpack(object)) != nullptr;
  if (is_symbolic_number(object) || is_symbolic_string(object)) return true;
  if (PyType_Check(object) && (existed == nullptr || existed(object))) return false;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    PyRef items = checked(PySequence_Tuple(object));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      if (contains_traced(PyTuple_GET_ITEM(items.get(), i), depth + 1)) return true;
  }
  if (!PyDict_Check(object) && !PyList_Check(object) && !PyTuple_Check(object))
    for (const PyRef& part : layout_of_value(object).parts)
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

void ReconstructionBuilder::children_of(Reconstruction& reconstruction, PyObject* tuple, const std::string& path) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    if (tuple == numbered_) item_ = i;
    reconstruction.children.push_back(build(PyTuple_GET_ITEM(tuple, i), path + "[" + std::to_string(i) + "]"));
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
    const bool numbers =
        is_symbolic_number(key) || is_symbolic_string(key) || PyTuple_Check(key) || PyFrozenSet_CheckExact(key);
    plain.push_back(numbers ? without_symbols(PyRef::borrow(key)) : PyRef::borrow(key));
  }
  return tuple_of(plain);
}

Reconstruction ReconstructionBuilder::float_reconstruction(bridge::SymNode& node) {
  Reconstruction reconstruction;
  const std::optional<bridge::SymNode::OfSizes> made = node.of_sizes();
  if (!made) {
    reconstruction.object = checked(PyFloat_FromDouble(node.guard_float(__FILE__, __LINE__)));
    return reconstruction;
  }
  reconstruction.position = static_cast<uint32_t>(numbers.size());
  numbers.push_back(made->numerator);
  if (made->denominator.valid()) {
    reconstruction.kind = Reconstruction::Kind::Quotient;
    numbers.push_back(made->denominator);
  } else {
    reconstruction.kind = Reconstruction::Kind::Product;
    reconstruction.object = checked(PyFloat_FromDouble(made->factor));
  }
  return reconstruction;
}

Reconstruction ReconstructionBuilder::build_number(PyObject* object, const std::string& path) {
  Reconstruction reconstruction;
  const c10::SymNode node = node_of(object);
  if (const at::Tensor tensor = bridge::SymNode::tensor_of(node); tensor.defined()) {
    reconstruction.kind = Reconstruction::Kind::Float;
    reconstruction.position = position_of(bridge::TraceTensor::from(tensor));
    return reconstruction;
  }
  auto* ours = dynamic_cast<bridge::SymNode*>(node.get());
  if (ours == nullptr) throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
  if (ours->env() != capture_.env_ptr()) throw UnsupportedResult{path, "number of an earlier graph segment"};
  if (ours->is_float()) return float_reconstruction(*ours);
  reconstruction.kind = ours->is_bool() ? Reconstruction::Kind::Boolean : Reconstruction::Kind::Number;
  if (is_numpy_int(object)) reconstruction.type = PyRef::borrow(module_attribute("numpy", "int64"));
  reconstruction.position = static_cast<uint32_t>(numbers.size());
  bridge::SymNode::keep_in_int64(*ours->env(), ours->expr());
  numbers.push_back(ours->expr());
  return reconstruction;
}

Reconstruction ReconstructionBuilder::build_string(PyObject* object, const std::string& path) {
  Reconstruction reconstruction;
  reconstruction.object = PyRef::borrow(looked_at_string(object));
  reconstruction.unlooked = prefers_graph_break(object);
  if (reconstruction.object) return reconstruction;
  const Operation* const operation = operation_of_string(object);
  if (operation == nullptr) {  // an input of the segment
    PyObject* const way = argument_path != nullptr ? argument_path(object) : nullptr;
    if (way == nullptr) return reconstruction.object = plain_text(object), reconstruction;
    reconstruction.kind = Reconstruction::Kind::Argument;
    reconstruction.object = PyRef::borrow(way);
    reconstruction.type = PyRef::borrow((PyObject*)&PyUnicode_Type);  // a new object at each call
    return reconstruction;
  }
  reconstruction.kind = Reconstruction::Kind::String;
  PyObject* const names = operation->kwnames ? operation->kwnames.get() : Py_None;
  reconstruction.object = checked(
      Py_BuildValue("(iinO)", static_cast<int>(operation->kind), operation->operation, operation->positional, names));
  for (const PyRef& operand : operation->operands) {
    kept_.push_back(operand);
    reconstruction.children.push_back(build(operand.get(), path + " (a part of the string)"));
  }
  return reconstruction;
}

// These objects are singletons of the process.
static bool is_constant_of_torch(PyObject* object) {
  return THPDtype_Check(object) || THPLayout_Check(object) || THPMemoryFormat_Check(object);
}

// Keys are constants of the reconstruction. A symbolic key is represented by its value, which hashing has specialized.
void ReconstructionBuilder::no_moving_key(PyObject* key, const std::string& path) const {
  if (is_symbolic_number(key)) return;
  if (is_of_call && !is_constant_of_torch(key) && (is_equal_by_identity(key) || is_hashed_by_program(key)) &&
      is_of_call(key))
    fail_anyhow(path, std::string("dict with the key ") + Py_TYPE(key)->tp_name + ", which each call has its own of,");
  if (!PyTuple_CheckExact(key) && !PyFrozenSet_CheckExact(key)) return;
  const PyRef parts = checked(PySequence_Tuple(key));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts.get()); ++i) no_moving_key(PyTuple_GET_ITEM(parts.get(), i), path);
}

// Addresses are the keys in the memo of copy.deepcopy().
void ReconstructionBuilder::no_address(PyObject* number, const std::string& path) const {
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

Reconstruction ReconstructionBuilder::build_tensor(PyObject* object, const std::string& path) {
  Reconstruction reconstruction;
  bridge::TraceTensor* trace = bridge::TraceTensor::from(THPVariable_Unpack(object));
  if (is_wrapper(THPVariable_Unpack(object))) fail_anyhow(path, "Tensor, which a transform has wrapped");
  if (trace == nullptr) {
    reconstruction.object = PyRef::borrow(object);  // a real tensor: returned unchanged
    return reconstruction;
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
  reconstruction.kind = Reconstruction::Kind::Tensor;
  reconstruction.position = position_of(trace);
  return reconstruction;
}

// Whether the tuple contains symbols. It is a substitute for a tuple of the call, so it is never a constant.
static bool is_made_of_symbols(PyObject* object) {
  if (!PyTuple_Check(object)) return is_symbolic(object);
  PyObject** const items = PySequence_Fast_ITEMS(object);
  return std::any_of(items, items + PyTuple_GET_SIZE(object), is_made_of_symbols);
}

// A reconstruction which calls `maker` with the children.
static Reconstruction value_reconstruction(PyObject* maker) {
  Reconstruction reconstruction;
  reconstruction.kind = Reconstruction::Kind::ObjectLayout;
  reconstruction.layout = ObjectLayout::Kind::Value;
  reconstruction.object = checked(PyTuple_Pack(2, maker, Py_False));
  return reconstruction;
}

// For a numpy scalar created by the call, which is a new object at each call. A constant if its value has no Python
// equivalent.
static Reconstruction scalar_reconstruction(PyObject* number) {
  Reconstruction reconstruction;
  const std::string_view type = Py_TYPE(number)->tp_name;  // the number of a date has no unit
  if (!type.starts_with("numpy.int") && !type.starts_with("numpy.uint") && !type.starts_with("numpy.float"))
    return reconstruction;
  const PyRef value = checked(PyObject_CallMethod(number, "item", nullptr));
  if (!PyLong_CheckExact(value.get()) && !PyFloat_CheckExact(value.get())) return reconstruction;
  reconstruction = value_reconstruction((PyObject*)Py_TYPE(number));
  reconstruction.children.emplace_back().object = value;
  return reconstruction;
}

// A symbolic string. Several places share one string.
Reconstruction ReconstructionBuilder::build_shared_text(PyObject* object, const std::string& path) {
  Reconstruction reconstruction;
  if (const auto it = made_.find(object); it != made_.end()) {
    reconstruction.kind = Reconstruction::Kind::Shared;
    reconstruction.position = static_cast<uint32_t>(it->second);
    return reconstruction;
  }
  reconstruction = build_string(object, path);
  if (reconstruction.kind != Reconstruction::Kind::String) return reconstruction;
  reconstruction.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(object, reconstruction.shared_slot);
  return reconstruction;
}

// A NumPy scalar of the call; empty for other objects.
std::optional<Reconstruction> ReconstructionBuilder::build_scalar(PyObject* object) {
  if (!is_numpy_scalar(object) || existed == nullptr || existed(object) || made_.count(object) != 0)
    return std::nullopt;
  Reconstruction scalar = scalar_reconstruction(object);
  if (scalar.kind != Reconstruction::Kind::ObjectLayout) return std::nullopt;
  scalar.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(object, scalar.shared_slot);
  return scalar;
}

// Values, and objects which later calls have too; empty for other objects.
std::optional<Reconstruction> ReconstructionBuilder::build_given(PyObject* object, const std::string& path) {
  Reconstruction reconstruction;
  PyObject* const way = argument_path != nullptr ? argument_path(object) : nullptr;
  const bool is_constant_tuple =
      PyTuple_CheckExact(object) && is_constant_value(object) && is_older && is_older(object);
  const bool is_unseen = is_opaque && is_opaque(object);
  const bool handed_on = way != nullptr && (is_unseen || leads_through_containers(way));  // differs at each call
  if (way == nullptr)
    if (std::optional<Reconstruction> scalar = build_scalar(object)) return scalar;
  if (!handed_on && (is_plain_immutable(object) || is_constant_tuple) && made_.count(object) == 0) {
    no_address(object, path);
    reconstruction.object = PyRef::borrow(object);
    return reconstruction;
  }
  const bool is_stand_in = way == nullptr && PyTuple_Check(object) && is_made_of_symbols(object);
  if (!handed_on && (existed == nullptr || !existed(object) || is_stand_in)) return std::nullopt;
  reconstruction.kind = way != nullptr ? Reconstruction::Kind::Argument : Reconstruction::Kind::Constant;
  reconstruction.object = PyRef::borrow(way != nullptr ? way : object);
  return reconstruction;
}

// A class from the call: later calls share the class of the first call.
Reconstruction ReconstructionBuilder::build_class(PyObject* object, const std::string& path) {
  if (contains_traced(object, 0)) throw UnsupportedResult{path, "a class of its own"};
  if (existed != nullptr && is_heap_type((PyTypeObject*)object))
    if (const std::string what = share_class((PyTypeObject*)object, existed); !what.empty())
      fail_anyhow(path, "a class that holds " + what);
  Reconstruction reconstruction;
  reconstruction.object = PyRef::borrow(object);
  return reconstruction;
}

// An object whose reconstruction has begun; empty for other objects.
std::optional<Reconstruction> ReconstructionBuilder::build_again(PyObject* object, const std::string& path) const {
  Reconstruction reconstruction;
  if (const auto it = made_.find(object); it != made_.end()) {
    if (unfinished_.count(it->second) != 0) throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
    reconstruction.kind = Reconstruction::Kind::Shared;
    reconstruction.position = static_cast<uint32_t>(it->second);
    return reconstruction;
  }
  const auto it = dictionaries_.find(object);
  if (it == dictionaries_.end()) return std::nullopt;
  reconstruction.kind = Reconstruction::Kind::DictionaryOf;
  reconstruction.position = static_cast<uint32_t>(it->second);
  return reconstruction;
}

Reconstruction ReconstructionBuilder::build(PyObject* object, const std::string& path) {
  const bool wraps = is_wrapper(object);
  if (is_tensor(object) && !wraps) return build_tensor(object, path);
  if (wraps && tensor_of(object).requires_grad() && tensor_of(object).grad_fn())
    fail_anyhow(path, std::string(Py_TYPE(object)->tp_name) + ", which wants gradients");
  if (is_symbolic_number(object)) return build_number(object, path);
  if (is_symbolic_string(object)) return build_shared_text(object, path);
  if (std::optional<Reconstruction> given = build_given(object, path)) return std::move(*given);
  if (PyType_Check(object)) return build_class(object, path);
  if (std::optional<Reconstruction> again = build_again(object, path)) return std::move(*again);
  if (arrays != nullptr && arrays->knows(object)) return build_array(object, path);
  return build_made(object, path);
}

// Creates an array with the same contents at each call. It shares memory with other arrays of the call.
Reconstruction ReconstructionBuilder::build_array(PyObject* array, const std::string& path) {
  const ConstantArrays::Parts parts = arrays->decompose(array);
  if (!parts.maker) throw UnsupportedResult{path, "numpy.ndarray that is a view of one with gaps"};
  Reconstruction reconstruction = value_reconstruction(parts.maker.get());
  if (parts.of) reconstruction.children.push_back(build(parts.of.get(), path));
  reconstruction.children.emplace_back().object = parts.constant;
  reconstruction.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(array, reconstruction.shared_slot);
  return reconstruction;
}

// Reconstructs an object of the call at its first occurrence.
Reconstruction ReconstructionBuilder::build_made(PyObject* object, const std::string& path) {
  Reconstruction reconstruction;
  const auto remember = [&] {
    reconstruction.shared_slot = static_cast<int32_t>(shared_slots++);
    made_.emplace(object, reconstruction.shared_slot);
  };
  // If the call created the class too, later calls share the class if possible.
  if (existed != nullptr && is_heap_type(Py_TYPE(object)) && !existed((PyObject*)Py_TYPE(object)))
    build((PyObject*)Py_TYPE(object), path);
  RegisteredNode node;
  if (PyTuple_Check(object)) {
    if (PyObject* const dict = instance_dict(object); dict != nullptr && PyDict_GET_SIZE(dict) != 0)
      throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
    reconstruction.kind = Reconstruction::Kind::Tuple;
    reconstruction.object = PyRef::borrow((PyObject*)Py_TYPE(object));
    PyRef items = checked(PySequence_Tuple(object));
    children_of(reconstruction, items.get(), path);
    remember();
  } else if (std::pair<PyRef, PyRef> sum; PyList_CheckExact(object) && sum_of && (sum = sum_of(object)).first) {
    reconstruction.kind = Reconstruction::Kind::Sum;
    reconstruction.children.push_back(build(sum.first.get(), path));
    kept_.push_back(checked(PySequence_List(sum.second.get())));
    reconstruction.children.push_back(build(PyRef::borrow(kept_.back().get()).get(), path));
    remember();
  } else if (PyList_CheckExact(object)) {
    reconstruction.kind = Reconstruction::Kind::List;
    remember();
    children_of(reconstruction, checked(PySequence_Tuple(object)).get(), path);
  } else if (is_dict_like(object)) {
    reconstruction.kind = Reconstruction::Kind::Dict;
    reconstruction.type = PyRef::borrow((PyObject*)Py_TYPE(object));
    reconstruction.object = plain_keys(object);
    remember();
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) {
      no_address(key, path);
      no_moving_key(key, path);
      reconstruction.children.push_back(build(value, path + "[...]"));
    }
  } else if (decompose(object).kind == ObjectLayout::Kind::None && !has_keys_that_ask(object) &&
             flatten_registered(object, node)) {  // last resort: these are functions of the program
    reconstruction.kind = Reconstruction::Kind::Registered;
    reconstruction.type = PyRef::borrow((PyObject*)Py_TYPE(object));
    reconstruction.object = without_symbols(std::move(node.context));  // keys, specialized by hashing
    children_of(reconstruction, node.children.get(), path);
    remember();
  } else if (!is_made_anew(object) && !contains_traced(object, 0)) {
    reconstruction.object = PyRef::borrow(object);
  } else {
    return build_layout(object, path);
  }
  return reconstruction;
}

// Whether each call must create the object: it is from the call and has state of its own.
bool ReconstructionBuilder::is_made_anew(PyObject* object) const {
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
Reconstruction ReconstructionBuilder::build_tensor_object(PyObject* object, bridge::TraceTensor* trace,
                                                          PyObject* attributes, const std::string& path) {
  Reconstruction reconstruction;
  if (const auto it = made_.find(object); it != made_.end()) {
    reconstruction.kind = Reconstruction::Kind::Shared;
    reconstruction.position = static_cast<uint32_t>(it->second);
    return reconstruction;
  }
  reconstruction.kind = Reconstruction::Kind::TensorObject;
  reconstruction.position = position_of(trace);
  reconstruction.type = PyRef::borrow((PyObject*)Py_TYPE(object));
  reconstruction.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(object, reconstruction.shared_slot);
  reconstruction.object = attributes != nullptr ? checked(PySequence_Tuple(attributes)) : checked(PyTuple_New(0));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(reconstruction.object.get()); ++i) {
    PyObject* name = PyTuple_GET_ITEM(reconstruction.object.get(), i);
    reconstruction.children.push_back(build(PyDict_GetItemWithError(attributes, name), path + "." + key_text(name)));
  }
  if (has_gradient(object)) {
    const PyRef name = checked(PyTuple_Pack(1, gradient_name()));
    reconstruction.object = checked(PySequence_Concat(reconstruction.object.get(), name.get()));
    kept_.push_back(checked(PyObject_GetAttr(object, gradient_name())));
    reconstruction.children.push_back(build(PyRef::borrow(kept_.back().get()).get(), path + ".grad"));
  }
  return reconstruction;
}

// Whether the object observes deaths: an instance with a __del__ or with weak references to it, or a weak reference.
// Exempt are weak references to older tensors and to older builtin containers.
bool ReconstructionBuilder::tells_when_it_dies(PyObject* object, const ObjectLayout& layout) const {
  static PyObject* const finalizer = PyUnicode_InternFromString("__del__");
  if (has_attributes(layout.kind))
    return behind_break && (_PyType_Lookup(Py_TYPE(object), finalizer) != nullptr || is_watched_weakly(object));
  if (!PyWeakref_CheckRefExact(object)) return false;
  if (layout.parts.empty()) return !behind_break;  // dead: other objects of the call may die soon, too
  PyObject* const referent = layout.parts[0].get();
  return (is_heap_type(Py_TYPE(referent)) && !is_tensor(referent)) || !existed || !existed(referent);
}

Reconstruction ReconstructionBuilder::build_layout(PyObject* object, const std::string& path) {
  // The annotations dictionary of a function is created at the first access, which may happen in a later segment.
  if (PyFunction_Check(object)) checked(PyObject_GetAttrString(object, "__annotations__"));
  const ObjectLayout layout = decompose(object);
  if (tells_when_it_dies(object, layout))
    fail_anyhow(path, std::string(Py_TYPE(object)->tp_name) + ", " + kTellsDeath, BreakKind::ObjectLifetime);
  kept_.insert(kept_.end(), layout.parts.begin(), layout.parts.end());
  if (layout.kind == ObjectLayout::Kind::Traceback) tracebacks.push_back(PyRef::borrow(object));
  if (layout.kind == ObjectLayout::Kind::None) throw UnsupportedResult{path, Py_TYPE(object)->tp_name};
  if (layout.kind == ObjectLayout::Kind::Generator && !layout.parts.empty() && holds_function)
    holds_function(layout.parts[0].get());
  Reconstruction reconstruction;
  reconstruction.kind = Reconstruction::Kind::ObjectLayout;
  reconstruction.layout = layout.kind;
  reconstruction.object = layout.form;
  reconstruction.shared_slot = static_cast<int32_t>(shared_slots++);
  made_.emplace(object, reconstruction.shared_slot);
  if (PyObject* const dict = has_attributes(layout.kind) ? instance_dict(object) : nullptr) {
    if (made_.count(dict) != 0) throw UnsupportedResult{path, "an object whose __dict__ is made before it"};
    dictionaries_.emplace(dict, reconstruction.shared_slot);
  }
  if (generator_number && has_fate(object, layout)) reconstruction.reuse = generator_number(object);
  const bool parts_first = reconstruction.reuse < 0 && is_made_whole(layout.kind);
  if (parts_first)
    unfinished_.insert(reconstruction.shared_slot);  // a part that refers back to the object cannot be created
  for (size_t i = 0; i < layout.parts.size(); ++i) {
    PyObject* const part = layout.parts[i].get();
    // An exception owns its arguments tuple, even if the collector has seen the tuple after a break. An argument tuple
    // of the call stays that tuple.
    const bool own = layout.kind == ObjectLayout::Kind::Exception && i == 0 && made_.count(part) == 0;
    if (PyObject* const way = own && argument_path != nullptr ? argument_path(part) : nullptr) {
      reconstruction.children.emplace_back().kind = Reconstruction::Kind::Argument;
      reconstruction.children.back().object = PyRef::borrow(way);
      continue;
    }
    const std::string where = path + "." + part_name(layout, i);
    reconstruction.children.push_back(own ? build_made(part, where) : build(part, where));
  }
  unfinished_.erase(reconstruction.shared_slot);
  return reconstruction;
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
      at = decompose(at.get()).parts.at(PyLong_AsSize_t(((PySliceObject*)step)->stop));
    else
      at = checked(PyObject_GetItem(at.get(), step));
  }
  return at;
}

PyRef make_tuple(const Reconstruction& reconstruction, Ingredients& with) {
  PyRef items = checked(PyTuple_New(static_cast<Py_ssize_t>(reconstruction.children.size())));
  for (size_t i = 0; i < reconstruction.children.size(); ++i)
    PyTuple_SET_ITEM(items.get(), i, make(reconstruction.children[i], with).release());
  return items;
}

PyRef make_string(const Reconstruction& reconstruction, Ingredients& with) {
  PyObject* const parts = reconstruction.object.get();
  Operation operation;
  operation.kind = static_cast<Operation::Kind>(PyLong_AsLong(PyTuple_GET_ITEM(parts, 0)));
  operation.operation = static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(parts, 1)));
  operation.positional = PyLong_AsSsize_t(PyTuple_GET_ITEM(parts, 2));
  if (PyTuple_GET_ITEM(parts, 3) != Py_None) operation.kwnames = PyRef::borrow(PyTuple_GET_ITEM(parts, 3));
  for (const Reconstruction& child : reconstruction.children) operation.operands.push_back(make(child, with));
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

PyRef make_tensor_object(const Reconstruction& reconstruction, Ingredients& with) {
  PyRef made = with.tensors[reconstruction.position];
  if ((PyObject*)Py_TYPE(made.get()) != reconstruction.type.get()) made = of_class(reconstruction.type.get(), made);
  with.shared[static_cast<size_t>(reconstruction.shared_slot)] = made;
  for (size_t i = 0; i < reconstruction.children.size(); ++i) {
    PyObject* const name = PyTuple_GET_ITEM(reconstruction.object.get(), i);
    const PyRef value = make(reconstruction.children[i], with);
    const PyRef dict = name != gradient_name() ? checked(PyObject_GenericGetDict(made.get(), nullptr)) : PyRef();
    if ((dict ? PyDict_SetItem(dict.get(), name, value.get()) : PyObject_SetAttr(made.get(), name, value.get())) < 0)
      throw PythonError{};
  }
  return made;
}

void fill_dict(const Reconstruction& reconstruction, PyObject* dict, Ingredients& with) {
  for (size_t i = 0; i < reconstruction.children.size(); ++i) {
    PyRef value = make(reconstruction.children[i], with);
    if (PyDict_SetItem(dict, PyTuple_GET_ITEM(reconstruction.object.get(), i), value.get()) < 0) throw PythonError{};
  }
}

PyRef make_layout(const Reconstruction& reconstruction, Ingredients& with) {
  ObjectLayout layout{reconstruction.layout, reconstruction.object, {}};
  PyRef& slot = with.shared[static_cast<size_t>(reconstruction.shared_slot)];
  const PyRef empty = slot =
      reconstruction.reuse >= 0 ? with.generators[static_cast<size_t>(reconstruction.reuse)] : make_empty(layout);
  for (const Reconstruction& c : reconstruction.children) layout.parts.push_back(make(c, with));
  if (reconstruction.reuse >= 0) return with.refilled.emplace_back(empty, std::move(layout)), empty;
  PyRef made = empty ? empty : make_whole(layout);
  with.shared[static_cast<size_t>(reconstruction.shared_slot)] = made;
  if (empty) fill(made.get(), layout);
  // The position may lie behind the current end of a list which replayed side effects will extend.
  if (reconstruction.layout == ObjectLayout::Kind::Iterator) with.refilled.emplace_back(made, std::move(layout));
  return made;
}

}  // namespace

PyRef make(const Reconstruction& reconstruction, Ingredients& with) {
  const auto remember = [&](PyRef object) {
    if (reconstruction.shared_slot >= 0) with.shared[static_cast<size_t>(reconstruction.shared_slot)] = object;
    return object;
  };
  switch (reconstruction.kind) {
    case Reconstruction::Kind::Tensor:
      return with.tensors[reconstruction.position];
    case Reconstruction::Kind::TensorObject:
      return make_tensor_object(reconstruction, with);
    case Reconstruction::Kind::Number:
      return reconstruction.type
                 ? checked(PyObject_CallFunction(reconstruction.type.get(), "L", with.numbers[reconstruction.position]))
                 : checked(PyLong_FromLongLong(with.numbers[reconstruction.position]));
    case Reconstruction::Kind::Boolean:
      return PyRef::borrow(with.numbers[reconstruction.position] != 0 ? Py_True : Py_False);
    case Reconstruction::Kind::Float: {
      const at::Tensor& number = THPVariable_Unpack(with.tensors[reconstruction.position].get());
      return checked(PyFloat_FromDouble(number.item<double>()));
    }
    case Reconstruction::Kind::Quotient:
      return checked(PyFloat_FromDouble(static_cast<double>(with.numbers[reconstruction.position]) /
                                        static_cast<double>(with.numbers[reconstruction.position + 1])));
    case Reconstruction::Kind::Product:
      return checked(PyFloat_FromDouble(static_cast<double>(with.numbers[reconstruction.position]) *
                                        PyFloat_AS_DOUBLE(reconstruction.object.get())));
    case Reconstruction::Kind::String:
      return remember(make_string(reconstruction, with));
    case Reconstruction::Kind::Constant:
      return reconstruction.object;
    case Reconstruction::Kind::Argument:
      return argument(reconstruction.object.get(), with);
    case Reconstruction::Kind::Shared:
      return with.shared[reconstruction.position];
    case Reconstruction::Kind::Tuple:
      return remember(tuple_as(reconstruction.object.get(), make_tuple(reconstruction, with)));
    case Reconstruction::Kind::List: {
      PyRef list = remember(checked(PyList_New(0)));
      for (const Reconstruction& c : reconstruction.children)
        if (PyList_Append(list.get(), make(c, with).get()) < 0) throw PythonError{};
      return list;
    }
    case Reconstruction::Kind::Sum: {
      const PyRef left = make(reconstruction.children[0], with), right = make(reconstruction.children[1], with);
      return remember(checked(PySequence_Concat(left.get(), right.get())));
    }
    case Reconstruction::Kind::Dict: {
      PyRef dict = remember(checked(PyDict_New()));
      fill_dict(reconstruction, dict.get(), with);
      return dict;
    }
    case Reconstruction::Kind::DictionaryOf:
      return checked(PyObject_GenericGetDict(with.shared[reconstruction.position].get(), nullptr));
    case Reconstruction::Kind::Registered:
      return remember(unflatten_registered(reconstruction.type.get(), make_tuple(reconstruction, with).get(),
                                           reconstruction.object.get()));
    case Reconstruction::Kind::ObjectLayout:
      return make_layout(reconstruction, with);
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
  for (const auto& [generator, layout] : with.refilled) fill(generator.get(), layout);
  with.refilled.clear();
}

void collect_constants(const Reconstruction& reconstruction, std::unordered_set<PyObject*>& out) {
  if (reconstruction.kind == Reconstruction::Kind::Constant) out.insert(reconstruction.object.get());
  for (const Reconstruction& c : reconstruction.children) collect_constants(c, out);
}

int visit(const Reconstruction& reconstruction, visitproc visit, void* arg) {
  Py_VISIT(reconstruction.object.get());
  Py_VISIT(reconstruction.type.get());
  for (const Reconstruction& c : reconstruction.children)
    if (const int result = frontend::visit(c, visit, arg)) return result;
  return 0;
}

}  // namespace cresset::frontend
