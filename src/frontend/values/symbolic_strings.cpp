#include "frontend/values/symbolic_strings.h"

#include <opcode.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "bridge/capture/capture.h"
#include "bridge/symbolic/number_formatting.h"
#include "frontend/cpython/constant_values.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/values/symbols.h"
#include "frontend/values/value_objects.h"

namespace cresset::frontend {
namespace {

struct String {
  CressetString head;
  Operation* operation;  // owned; nullptr: an input of the segment
  PyObject* value;       // owned; nullptr before inspection, except for inputs
  bool looked;
};

size_t living = 0;  // under the GIL

String* as_symbolic_string(PyObject* object) { return (String*)object; }

// Calls `use` with the plain str, for CPython slots: errors become pending.
template <class F>
auto looked(PyObject* text, F&& use, decltype(use(text)) failed) -> decltype(use(text)) {
  try {
    return use(plain_text(text).get());
  } catch (const PythonError&) {
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return failed;
}

PyRef either_plain(PyObject* object) { return is_symbolic_string(object) ? plain_text(object) : PyRef::borrow(object); }

PyObject* operate(int operation, PyObject* left, PyObject* right) {
  try {
    if (PyRef text = text_of_operator({CRESSET_OP_BINARY, operation, {left, right}})) return text.release();
    Operation plainly;
    plainly.kind = Operation::Kind::Binary;
    plainly.operation = operation;
    plainly.operands = {either_plain(left), either_plain(right)};
    return perform(plainly).release();
  } catch (const PythonError&) {
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

PyObject* add(PyObject* left, PyObject* right) { return operate(NB_ADD, left, right); }
PyObject* multiply(PyObject* left, PyObject* right) { return operate(NB_MULTIPLY, left, right); }
PyObject* format_values(PyObject* left, PyObject* right) { return operate(NB_REMAINDER, left, right); }

void dealloc(PyObject* self) {
  --living;
  delete as_symbolic_string(self)->operation;
  Py_XDECREF(as_symbolic_string(self)->value);
  Py_TYPE(self)->tp_free(self);
}
PyObject* repr(PyObject* self) { return looked(self, &PyObject_Repr, nullptr); }
PyObject* str(PyObject* self) {
  return looked(self, [](PyObject* value) { return Py_NewRef(value); }, nullptr);
}
Py_hash_t hash(PyObject* self) { return looked(self, &PyObject_Hash, -1); }
PyObject* iterate(PyObject* self) { return looked(self, &PyObject_GetIter, nullptr); }
Py_ssize_t length(PyObject* self) { return looked(self, &PyObject_Size, -1); }
int is_true(PyObject* self) { return looked(self, &PyObject_IsTrue, -1); }
int contains(PyObject* self, PyObject* item) {
  return looked(self, [&](PyObject* value) { return PySequence_Contains(value, either_plain(item).get()); }, -1);
}
PyObject* item(PyObject* self, PyObject* key) {
  return looked(self, [&](PyObject* value) { return PyObject_GetItem(value, key); }, nullptr);
}
PyObject* compare(PyObject* self, PyObject* other, int relation) {
  return looked(
      self, [&](PyObject* value) { return PyObject_RichCompare(value, either_plain(other).get(), relation); }, nullptr);
}
// A method inspects the string when it is called.
PyObject* attribute(PyObject* self, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) return Py_NewRef((PyObject*)&PyUnicode_Type);
  PyObject* const found = _PyType_Lookup(&PyUnicode_Type, name);
  if (found != nullptr && Py_IS_TYPE(found, &PyMethodDescr_Type)) return PyMethod_New(found, self);
  return looked(self, [&](PyObject* value) { return PyObject_GetAttr(value, name); }, nullptr);
}
PyObject* formatted(PyObject* self, PyObject* spec) {
  return looked(self, [&](PyObject* value) { return PyObject_Format(value, spec); }, nullptr);
}

PyTypeObject* make_type_of_strings() {
  static PyMethodDef methods[] = {
      {"__format__", &formatted, METH_O, nullptr},
      {"__fspath__", [](PyObject* self, PyObject*) { return str(self); }, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  static PyNumberMethods numbers{};
  numbers.nb_add = &add;
  numbers.nb_multiply = &multiply;
  numbers.nb_remainder = &format_values;
  numbers.nb_bool = &is_true;
  static PySequenceMethods sequence{};
  sequence.sq_length = &length;
  sequence.sq_contains = &contains;
  static PyMappingMethods mapping{&length, &item, nullptr};
  static PyTypeObject type = [] {
    PyTypeObject out{PyVarObject_HEAD_INIT(nullptr, 0)};
    out.tp_name = "cresset.Text";
    out.tp_basicsize = sizeof(String);
    out.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    out.tp_dealloc = &dealloc;
    out.tp_repr = &repr;
    out.tp_str = &str;
    out.tp_hash = &hash;
    out.tp_iter = &iterate;
    out.tp_richcompare = &compare;
    out.tp_getattro = &attribute;
    out.tp_methods = methods;
    out.tp_as_number = &numbers;
    out.tp_as_sequence = &sequence;
    out.tp_as_mapping = &mapping;
    return out;
  }();
  if (PyType_Ready(&type) < 0) throw PythonError{};
  return cresset_string_type = &type;
}

// Whether `is` holds for an item of a tuple, list or dict. The object is a snapshot (below), so no list contains
// itself.
template <class F>
bool any_inside(PyObject* object, F&& is) {
  if (is_tuple_or_size(object) || PyList_CheckExact(object)) {
    PyObject** const items = PySequence_Fast_ITEMS(object);
    return std::any_of(items, items + PySequence_Fast_GET_SIZE(object), is);
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_CheckExact(object) && PyDict_Next(object, &position, &key, &value))
    if (is(value)) return true;
  return false;
}
bool is_list_or_dict(PyObject* object) { return PyList_CheckExact(object) || PyDict_CheckExact(object); }
bool all_inside(PyObject* object, bool (*is)(PyObject*)) {
  const bool has_items = is_tuple_or_size(object) || is_list_or_dict(object);
  return has_items && !any_inside(object, [&](PyObject* item) { return !is(item); });
}

// Copies lists and dicts of values, because later changes must not affect the string. Empty for deep nesting and for
// keys which are not values.
PyRef snapshot(PyObject* object, int depth = 0) {
  constexpr int kDeepest = 8;
  if (!PyTuple_CheckExact(object) && !is_list_or_dict(object)) return PyRef::borrow(object);
  if (depth > kDeepest) return {};
  if (PyDict_CheckExact(object)) {
    PyRef out = checked(PyDict_New());
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) {
      const PyRef item = is_constant_value(key) ? snapshot(value, depth + 1) : PyRef();
      if (!item) return {};
      if (PyDict_SetItem(out.get(), key, item.get()) < 0) throw PythonError{};
    }
    return out;
  }
  std::vector<PyRef> items;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    items.push_back(snapshot(PySequence_Fast_GET_ITEM(object, i), depth + 1));
    if (!items.back()) return {};
  }
  PyRef out = tuple_of(items);
  return PyList_CheckExact(object) ? checked(PySequence_List(out.get())) : std::move(out);
}

// The string of a float differs at most calls.
bool is_of_floats(PyObject* object) {
  if (is_symfloat(object)) return true;
  if (is_symbolic_string(object)) return as_symbolic_string(object)->head.breaks_graph != 0;
  return any_inside(object, is_of_floats);
}

PyRef make(Operation* operation, PyObject* value) {
  static PyTypeObject* const type = make_type_of_strings();
  PyRef made = checked(type->tp_alloc(type, 0));
  ++living;
  as_symbolic_string(made.get())->head.breaks_graph =
      operation != nullptr && std::any_of(operation->operands.begin(), operation->operands.end(),
                                          [](const PyRef& operand) { return is_of_floats(operand.get()); });
  as_symbolic_string(made.get())->operation = operation;
  as_symbolic_string(made.get())->value = Py_XNewRef(value);
  return made;
}

bool is_open(PyObject* object) { return is_symbolic_string(object) || is_symbolic_number(object); }

// Whether operations on the object depend only on values.
bool is_of_values(PyObject* object) {
  if (is_open(object) || is_constant_value(object)) return true;
  return is_tuple_or_size(object) && all_inside(object, is_of_values);
}
bool is_snapshot_of_values(PyObject* object) {
  return is_open(object) || is_constant_value(object) || all_inside(object, is_snapshot_of_values);
}
// Whether the object contains a data-dependent number. Inspecting its string would have to end the segment anywhere, so
// it is inspected immediately.
bool is_unknown(PyObject* object) {
  const bridge::Capture* const capture = bridge::Capture::current();
  const bool stays = capture != nullptr && capture->symbolic_numbers;
  if (is_symbolic_number(object)) return !stays && !node_of(object)->has_hint();
  return any_inside(object, is_unknown);
}

bool holds_open(PyObject* object) { return is_open(object) || any_inside(object, holds_open); }

// Sample values for symbolic objects, chosen to provoke errors in operations that raise for some values.
PyRef example_of(PyObject* object, bool extreme) {
  constexpr long long kFar = -(1LL << 62);
  if (is_symbolic_string(object)) return checked(PyUnicode_FromString(extreme ? "" : "x"));
  if (is_symint(object)) return checked(PyLong_FromLongLong(extreme ? kFar : 1));
  if (is_symfloat(object)) return checked(PyFloat_FromDouble(extreme ? Py_HUGE_VAL : 1.5));
  if (is_symbool(object)) return PyRef::borrow(extreme ? Py_False : Py_True);
  if (PyDict_CheckExact(object)) {
    PyRef out = checked(PyDict_New());
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value))
      if (PyDict_SetItem(out.get(), key, example_of(value, extreme).get()) < 0) throw PythonError{};
    return out;
  }
  if (!is_tuple_or_size(object) && !PyList_CheckExact(object)) return PyRef::borrow(object);
  std::vector<PyRef> items;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    items.push_back(example_of(PySequence_Fast_GET_ITEM(object, i), extreme));
  const PyRef out = tuple_of(items);
  return PyList_CheckExact(object) ? checked(PySequence_List(out.get())) : tuple_as((PyObject*)Py_TYPE(object), out);
}

// Whether the operation returns a str and does not raise. It must be C code on values.
bool gives_symbolic_string(const Operation& operation) {
  for (const bool extreme : {false, true}) {
    Operation example = operation;
    for (PyRef& operand : example.operands) operand = example_of(operand.get(), extreme);
    const PyRef value = perform(example);
    if (!value) PyErr_Clear();
    if (!value || !PyUnicode_CheckExact(value.get())) return false;
  }
  return true;
}

PyRef text_of(Operation operation) {
  const auto any = [&](auto&& is) {
    return std::any_of(operation.operands.begin(), operation.operands.end(),
                       [&](const PyRef& operand) { return is(operand.get()); });
  };
  if (!any(holds_open) || any(is_unknown) || !gives_symbolic_string(operation)) return {};
  return make(new Operation(std::move(operation)), nullptr);
}

bool is_str_or_symbolic_string(PyObject* object) { return PyUnicode_CheckExact(object) || is_symbolic_string(object); }

// sep.join(strings) with a list or a tuple: the items as a tuple. Empty for other arguments.
PyRef joined_items(PyObject* items) {
  if (!PyList_CheckExact(items) && !PyTuple_CheckExact(items)) return {};
  PyObject** const first = PySequence_Fast_ITEMS(items);
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
  if (!std::all_of(first, first + count, is_str_or_symbolic_string) ||
      !std::any_of(first, first + count, is_symbolic_string))
    return {};
  return checked(PySequence_Tuple(items));
}

// Whether the str method returns a str for all strings and arguments.
bool makes_string(std::string_view method, bool of_string) {
  static const std::unordered_set<std::string_view> kOfAny = {
      "join",       "ljust", "rjust",  "center", "zfill",   "upper",        "lower",       "title",
      "capitalize", "strip", "lstrip", "rstrip", "replace", "removeprefix", "removesuffix"};
  // format inspects the braces of a symbolic string
  return kOfAny.count(method) != 0 || (method == "format" && !of_string);
}

std::string_view method_of_str(const CressetCall& call) {
  if (is_c_function(call.callable)) {
    PyObject* const self = PyCFunction_GET_SELF(call.callable);
    return self != nullptr && PyUnicode_CheckExact(self) ? ((PyCFunctionObject*)call.callable)->m_ml->ml_name : "";
  }
  if (!Py_IS_TYPE(call.callable, &PyMethodDescr_Type) || PyDescr_TYPE(call.callable) != &PyUnicode_Type) return "";
  return call.nargs > 0 && is_str_or_symbolic_string(call.args[0]) ? utf8(PyDescr_NAME(call.callable), "") : "";
}

bool formats_values(const CressetCall& call) {
  static const std::array<PyObject*, 7> builtins{(PyObject*)&PyUnicode_Type,
                                                 module_attribute("builtins", "repr"),
                                                 module_attribute("builtins", "format"),
                                                 module_attribute("builtins", "ascii"),
                                                 module_attribute("builtins", "bin"),
                                                 module_attribute("builtins", "hex"),
                                                 module_attribute("builtins", "oct")};
  return std::find(builtins.begin(), builtins.end(), call.callable) != builtins.end();
}

// str(error) when it equals the argument of the exception.
PyRef message_of(const CressetCall& call) {
  if (call.callable != (PyObject*)&PyUnicode_Type || call.nargs != 1 || !PyExceptionInstance_Check(call.args[0]))
    return {};
  PyObject* const args = ((PyBaseExceptionObject*)call.args[0])->args;
  const bool plainly = Py_TYPE(call.args[0])->tp_str == ((PyTypeObject*)PyExc_BaseException)->tp_str;
  if (!plainly || PyTuple_GET_SIZE(args) != 1 || !is_symbolic_string(PyTuple_GET_ITEM(args, 0))) return {};
  return PyRef::borrow(PyTuple_GET_ITEM(args, 0));
}

}  // namespace

bool is_or_holds_symbolic_string(PyObject* object) {
  return living != 0 && (is_symbolic_string(object) || holds_any(object, is_symbolic_string));
}

PyRef plain_text(PyObject* object) {
  String* const text = as_symbolic_string(object);
  if (text->value != nullptr) return text->looked = true, PyRef::borrow(text->value);
  Operation plainly = *text->operation;
  {
    const bridge::MakingString specializations;
    // If the numbers end the segment, its reconstructions need the original numbers.
    for (PyRef& operand : plainly.operands) operand = without_symbols(snapshot(operand.get()));
  }
  PyRef value = checked(perform(plainly).release());
  text->looked = true;  // set late: if the numbers end the segment, the string is still symbolic there
  Py_XSETREF(text->value, Py_NewRef(value.get()));
  return value;
}

const Operation* operation_of_string(PyObject* text) {
  return as_symbolic_string(text)->looked ? nullptr : as_symbolic_string(text)->operation;
}
PyObject* looked_at_string(PyObject* text) {
  return as_symbolic_string(text)->looked ? as_symbolic_string(text)->value : nullptr;
}
PyRef text_of_input(PyObject* str, bool breaks_graph) {
  PyRef text = make(nullptr, str);
  as_symbolic_string(text.get())->head.breaks_graph = breaks_graph;
  return text;
}

// string[:n]
static PyRef slice_of(PyObject* text, PyObject* key) {
  if (!is_symbolic_string(text) || !PySlice_Check(key)) return {};
  const auto* const slice = (const PySliceObject*)key;
  for (PyObject* bound : {slice->start, slice->stop, slice->step})
    if (!is_constant_value(bound)) return {};
  Operation operation;
  operation.kind = Operation::Kind::Subscript;
  operation.operands = {PyRef::borrow(text), PyRef::borrow(key)};
  return text_of(std::move(operation));
}

PyRef text_of_operator(const CressetOperator& op) {
  PyObject *const left = op.operands[0], *const right = op.operands[1];
  const bool formats = op.kind == CRESSET_OP_FORMAT;
  if (op.kind == CRESSET_OP_SUBSCRIPT) return slice_of(left, right);
  if (!formats && op.kind != CRESSET_OP_BINARY) return {};
  if (!formats && !is_str_or_symbolic_string(left) && !is_str_or_symbolic_string(right)) return {};
  Operation operation;
  operation.kind = formats ? Operation::Kind::Format : Operation::Kind::Binary;
  operation.operation = op.operation;
  for (PyObject* operand : {left, right}) {
    if (operand == nullptr) continue;
    operation.operands.push_back(snapshot(operand));
    if (!operation.operands.back() || !is_snapshot_of_values(operation.operands.back().get())) return {};
  }
  return text_of(std::move(operation));
}

PyRef text_of_call(const CressetCall& call) {
  const std::string_view method = method_of_str(call);
  if (method.empty() && !formats_values(call)) return {};
  const bool joins = method == "join";
  const bool of_string = call.nargs > 0 && is_symbolic_string(call.args[0]) && !is_c_function(call.callable);
  if (!method.empty() && !makes_string(method, of_string)) return {};
  if (PyRef message = message_of(call)) return message;
  if (call.callable == (PyObject*)&PyUnicode_Type && (call.nargs != 1 || call.kwnames != nullptr)) return {};
  Operation operation;
  operation.positional = call.nargs;
  operation.kwnames = PyRef::borrow(call.kwnames);
  operation.operands.push_back(PyRef::borrow(call.callable));
  const Py_ssize_t count = cresset_count_arguments(&call);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyRef operand = joins && i == count - 1 ? joined_items(call.args[i]) : snapshot(call.args[i]);
    if (!operand || !is_snapshot_of_values(operand.get())) return {};
    operation.operands.push_back(std::move(operand));
  }
  return text_of(std::move(operation));
}

// Other operand types define their own operators.
static bool is_done_here(const CressetOperator& op) {
  const bool known = op.kind == CRESSET_OP_BINARY || op.kind == CRESSET_OP_FORMAT || op.kind == CRESSET_OP_SUBSCRIPT;
  return known && std::all_of(std::begin(op.operands), std::end(op.operands),
                              [](PyObject* operand) { return operand == nullptr || is_of_values(operand); });
}

PyRef with_plain_strings(const CressetOperator& op) {
  if ((!is_symbolic_string(op.operands[0]) && !is_symbolic_string(op.operands[1])) || !is_done_here(op)) return {};
  Operation operation;
  operation.kind = op.kind == CRESSET_OP_BINARY   ? Operation::Kind::Binary
                   : op.kind == CRESSET_OP_FORMAT ? Operation::Kind::Format
                                                  : Operation::Kind::Subscript;
  operation.operation = op.operation;
  for (PyObject* operand : op.operands)
    if (operand != nullptr) operation.operands.push_back(without_symbols(PyRef::borrow(operand)));
  return checked(perform(operation).release());
}

bool prefers_graph_break(PyObject* object) {
  const auto ends = [](PyObject* o) { return is_symbolic_string(o) && as_symbolic_string(o)->head.breaks_graph != 0; };
  return living != 0 && (ends(object) || holds_any(object, ends));
}

namespace {

// The range of inspected arguments, from `first` up to `end`.
struct Looked {
  Py_ssize_t first = 0, end = 0;
};
constexpr Py_ssize_t kAll = PY_SSIZE_T_MAX;

bool is_set_type(const PyTypeObject* type) {
  return PyType_IsSubtype((PyTypeObject*)type, &PySet_Type) != 0 ||
         PyType_IsSubtype((PyTypeObject*)type, &PyFrozenSet_Type) != 0;
}

// For a class: items and exception arguments are passed on; keys are inspected.
Looked looked_at_by_class(PyTypeObject* type, const CressetCall& call) {
  static auto* const deque = (PyTypeObject*)module_attribute("collections", "deque");
  static PyObject* const partial = module_attribute("functools", "partial");
  const auto is = [&](PyTypeObject* base) { return PyType_IsSubtype(type, base) != 0; };
  if (is(&PyList_Type) || is(&PyTuple_Type) || is(deque) || is((PyTypeObject*)PyExc_BaseException)) return {};
  if (is(&PyDict_Type)) return {0, call.nargs};
  const bool of_program = is_heap_type(type) && (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0;
  const bool is_partial = (PyObject*)type == partial && call.nargs > 0 && PyFunction_Check(call.args[0]);
  return is_set_type(type) || !(of_program || is_partial) ? Looked{0, kAll} : Looked{};
}

// For a dictionary method with arguments from `first` on: keys are inspected.
Looked looked_at_by_dict(std::string_view method, const CressetCall& call, Py_ssize_t first) {
  if (method == "get" || method == "pop" || method == "setdefault") return {first, first + 1};
  const bool of_pairs = method == "update" && first < call.nargs && !PyDict_Check(call.args[first]);
  return of_pairs || method == "fromkeys" ? Looked{first, kAll} : Looked{};
}

// `owner`: the type that defines the method.
Looked looked_at_by_method(std::string_view method, const PyTypeObject* owner, const CressetCall& call,
                           Py_ssize_t first) {
  if (method.starts_with("__") || is_set_type(owner) || !hands_items_on(call.callable)) return {0, kAll};
  return PyType_IsSubtype((PyTypeObject*)owner, &PyDict_Type) ? looked_at_by_dict(method, call, first) : Looked{};
}

Looked looked_at(const CressetCall& call);

// map(f, a, b) passes items to f, so the arguments which f inspects count.
Looked looked_at_by_map(const CressetCall& call) {
  CressetCall inner{};
  inner.callable = call.args[0], inner.args = call.args + 1, inner.nargs = call.nargs - 1;
  const Looked looked = looked_at(inner);
  return {looked.first + 1, looked.end == kAll ? kAll : looked.end + 1};
}

Looked looked_at(const CressetCall& call) {
  static PyObject* const len = module_attribute("builtins", "len");
  PyObject* const callable = call.callable;
  if (callable == (PyObject*)&PyMap_Type && call.nargs > 1 && is_c_function(call.args[0]))
    return looked_at_by_map(call);
  if (PyType_Check(callable)) return looked_at_by_class((PyTypeObject*)callable, call);
  if (is_c_function(callable)) {
    PyObject* const self = PyCFunction_GET_SELF(callable);
    // tuple.__new__, which creates named tuples, stores the items without inspecting them.
    if (self == (PyObject*)&PyTuple_Type &&
        std::string_view(((PyCFunctionObject*)callable)->m_ml->ml_name) == "__new__")
      return {};
    if (self != nullptr && !PyModule_Check(self))
      return looked_at_by_method(((PyCFunctionObject*)callable)->m_ml->ml_name, Py_TYPE(self), call, 0);
  } else if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
    return looked_at_by_method(utf8(PyDescr_NAME(callable)), PyDescr_TYPE(callable), call, 1);
  }
  const bool is_known = is_c_function(callable) && callable != len && hands_items_on(callable);
  return is_known ? Looked{} : Looked{0, kAll};
}

// The position of the attribute name among the arguments; -1: none.
Py_ssize_t place_of_name(const CressetCall& call) {
  static const std::array<PyObject*, 4> builtins{
      module_attribute("builtins", "getattr"), module_attribute("builtins", "hasattr"),
      module_attribute("builtins", "setattr"), module_attribute("builtins", "delattr")};
  if (std::find(builtins.begin(), builtins.end(), call.callable) != builtins.end()) return 1;
  const bool bound = is_method_wrapper(call.callable);
  PyObject* const slot = bound ? decompose_wrapper(call.callable).descriptor : call.callable;
  if (!Py_IS_TYPE(slot, &PyWrapperDescr_Type)) return -1;
  const std::string_view name = utf8(PyDescr_NAME(slot));
  const bool is = name == "__getattribute__" || name == "__setattr__" || name == "__delattr__";
  return is ? (bound ? 0 : 1) : -1;
}

}  // namespace

bool names_attribute(const CressetCall& call) { return place_of_name(call) >= 0; }

bool any_symbolic_strings() { return living != 0; }

std::vector<Py_ssize_t> strings_looked_at(const CressetCall& call) {
  std::vector<Py_ssize_t> out;
  if (living == 0) return out;
  static PyObject* const len = module_attribute("builtins", "len");
  // counts without inspecting items
  if (call.callable == len && call.nargs == 1 && PyTuple_Check(call.args[0])) return out;
  const Py_ssize_t count = cresset_count_arguments(&call);
  const Py_ssize_t name = place_of_name(call);
  Looked looked = name >= 0 ? Looked{name, name + 1} : looked_at(call);
  if (name == 1 && call.nargs == 3 && cresset_is_set_by_c(call.args[0], call.args[1]) != 0) looked.end = kAll;
  for (Py_ssize_t i = looked.first; i < std::min(looked.end, count); ++i)
    if (is_or_holds_symbolic_string(call.args[i])) out.push_back(i);
  return out;
}

}  // namespace cresset::frontend
