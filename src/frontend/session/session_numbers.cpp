// Calls with symbolic numbers, tensor sizes, or numbers alone.
#include <string_view>

#include "bridge/capture/input_scalars.h"
#include "bridge/capture/sym_node.h"
#include "bridge/capture/symbolic_float.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/session/rules.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/call_filter.h"
#include "frontend/trace_rules/number_operators.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

// Whether the argument is a torch.tensortype class (torch.FloatTensor), or a tuple which contains such a class.
static bool names_tensor_type(PyObject* classes) {
  static PyTypeObject* const meta = Py_TYPE(module_attribute("torch", "FloatTensor"));
  if (!PyTuple_Check(classes)) return Py_TYPE(classes) == meta;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes); ++i)
    if (names_tensor_type(PyTuple_GET_ITEM(classes, i))) return true;
  return false;
}

// PyObject_IsInstance with support for tensor types. torch compares the backend key, which is the capture's own during
// a capture.
static int is_of_tensor_type(PyObject* tensor, PyObject* classes) {
  if (PyTuple_Check(classes)) {
    int is = 0;
    for (Py_ssize_t i = 0; is == 0 && i < PyTuple_GET_SIZE(classes); ++i)
      is = is_of_tensor_type(tensor, PyTuple_GET_ITEM(classes, i));
    return is;
  }
  if (!names_tensor_type(classes)) return PyObject_IsInstance(tensor, classes);
  for (const char* name : {"dtype", "layout", "is_cuda"}) {
    const PyRef wanted = PyRef::steal(PyObject_GetAttrString(classes, name));
    const PyRef is = PyRef::steal(PyObject_GetAttrString(tensor, name));
    if (!wanted || !is) return -1;
    if (wanted.get() != is.get()) return 0;
  }
  return 1;
}

namespace {

// int() of a float computed from sizes and arguments, for which math.floor() has an expression or a symbol. Empty for
// other objects.
PyRef truncated(PyObject* given) {
  if (!is_symfloat(given)) return {};
  const c10::SymNode node = node_of(given);
  auto* ours = dynamic_cast<bridge::SymNode*>(node.get());
  if (ours == nullptr || !(ours->of_sizes() || (ours->is_value() && ours->has_hint()))) return {};
  return PyRef::steal(PyObject_CallMethod(given, "__trunc__", nullptr));
}

// `x.is_contiguous()` and `x.stride()` are visible to the program. They are answered for the current size, with a
// guard, while operators use properties that hold for all sizes. nullptr for other functions.
PyObject* about_layout(PyObject* callable) {
  const auto method = [](const char* name) {
    return checked(PyObject_GetAttrString(module_attribute("torch._C", "TensorBase"), name)).release();
  };
  static PyObject *const is_contiguous = method("is_contiguous"), *const stride = method("stride");
  static PyObject *const decide_contiguous = module_attribute(python_names::kSubstitutes, "is_contiguous"),
                         *const exact_stride = module_attribute(python_names::kSubstitutes, "stride");
  if (callable == is_contiguous) return decide_contiguous;
  return callable == stride ? exact_stride : nullptr;
}

bool is_traced(PyObject* tensor) {
  return is_exact_tensor(tensor) && !inside_transform() && !operators_call_python() &&
         bridge::TraceTensor::from(tensor_of(tensor)) != nullptr;
}

// `len(x)` is `x.size(0)`, `x.shape.numel()` is a product. Empty for other calls.
PyRef about_sizes(const CressetCall& call) {
  static PyObject* const len = module_attribute("builtins", "len");
  static PyObject* const numel = [] {
    return checked(PyObject_GetAttrString(module_attribute("torch", "Size"), "numel")).release();
  }();
  static PyObject* const product = module_attribute(python_names::kSubstitutes, "product");
  if (call.callable == numel && call.nargs == 1 && call.kwnames == nullptr)
    return PyRef::steal(PyObject_CallOneArg(product, call.args[0]));
  if (call.callable != len || call.nargs != 1 || call.kwnames != nullptr || !is_traced(call.args[0])) return {};
  if (tensor_of(call.args[0]).dim() == 0) return {};
  return PyRef::steal(PyObject_CallMethod(call.args[0], "size", "i", 0));
}

// round(x, 4) rounds to decimals, and no tensor operator rounds exactly like Python.
bool rounds_to_digits(const CressetCall& call) {
  static PyObject* const round = module_attribute("builtins", "round");
  return call.callable == round && cresset_count_arguments(&call) == 2 && is_symfloat(call.args[0]) &&
         call.args[1] != Py_None;
}

// `math.sqrt(n)` stays symbolic, like `n**0.5`, and so do other functions of math with a single number.
PyRef function_of_number(const CressetCall& call) {
  if (call.nargs != 1 || call.kwnames != nullptr || !is_c_function(call.callable)) return {};
  if (!is_symint(call.args[0]) && !is_symfloat(call.args[0])) return {};
  static PyObject* const math = import_module("math").release();
  if (PyCFunction_GET_SELF(call.callable) != math) return {};
  const std::string_view name = ((PyCFunctionObject*)call.callable)->m_ml->ml_name;
  const c10::SymNode node = node_of(call.args[0]);
  if (name == "isfinite" || name == "isinf" || name == "isnan") {
    const std::optional<bool> is = bridge::SymNode::kind_of(name, node);
    return is ? PyRef::borrow(*is ? Py_True : Py_False) : PyRef();
  }
  const c10::SymNode value = bridge::SymNode::function_of(name, node);
  return value ? python_float(value) : PyRef();
}

// round(x), math.gcd(n, m), math.isqrt(n): whole numbers represented by new symbols.
PyRef whole_number(const CressetCall& call) {
  if (call.kwnames != nullptr || call.nargs == 0 || call.nargs > 2 || !is_c_function(call.callable)) return {};
  static PyObject *const round = module_attribute("builtins", "round"), *const gcd = module_attribute("math", "gcd"),
                         *const isqrt = module_attribute("math", "isqrt");
  const bool rounds = call.callable == round;
  if (rounds ? call.nargs != 1 || !is_symfloat(call.args[0])
             : call.callable != (call.nargs == 2 ? gcd : isqrt) ||
                   !any_among(call.args, call.args + call.nargs, is_symint))
    return {};
  return computed_number(rounds            ? "round"
                         : call.nargs == 2 ? "gcd"
                                           : "isqrt",
                         call.args[0], call.nargs == 2 ? call.args[1] : nullptr);
}

bool is_number_or_numbers(PyObject* object) {
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || is_symint(object) || is_symfloat(object)) return true;
  if (!PyTuple_Check(object) && !PyList_CheckExact(object)) return false;
  PyObject** items = PySequence_Fast_ITEMS(object);
  return all_among(items, items + PySequence_Fast_GET_SIZE(object), [](PyObject* item) {
    return PyLong_CheckExact(item) || PyFloat_CheckExact(item) || is_symint(item) || is_symfloat(item);
  });
}

// numpy.prod(x.shape), numpy.sqrt(n): functions of numbers that create no arrays.
bool is_numpy_of_numbers(const CressetCall& call) {
  if (call.kwnames != nullptr || call.nargs == 0) return false;
  const std::string_view type = Py_TYPE(call.callable)->tp_name;
  const bool ufunc = type == "numpy.ufunc";
  if (!ufunc && type != "numpy._ArrayFunctionDispatcher") return false;
  if (!all_among(call.args, call.args + call.nargs, is_number_or_numbers)) return false;
  if (ufunc) return true;
  static constexpr std::string_view kFolds[] = {"prod", "sum", "max", "min", "amax", "amin", "mean"};
  const PyRef name = PyRef::steal(PyObject_GetAttrString(call.callable, "__name__"));
  if (!name) return PyErr_Clear(), false;
  return is_among(kFolds, std::string_view(utf8(name.get(), "")));
}

// numpy scalars are plain values, so the numbers are specialized. Empty if the result is an array or an error, which
// the call itself produces.
PyRef numpy_of_numbers(const CressetCall& call) {
  std::vector<PyRef> plain;
  std::vector<PyObject*> args;
  for (Py_ssize_t i = 0; i < call.nargs; ++i) {
    PyObject* arg = call.args[i];
    // The copy has plain numbers; the program's list keeps its symbols.
    plain.push_back(without_symbols(PySequence_Check(arg) ? checked(PySequence_Tuple(arg)) : PyRef::borrow(arg)));
    args.push_back(plain.back().get());
  }
  PyRef value = PyRef::steal(PyObject_Vectorcall(call.callable, args.data(), args.size(), nullptr));
  if (!value) return PyErr_Clear(), PyRef();
  return is_numpy_scalar(value.get()) ? std::move(value) : PyRef();
}

}  // namespace

// `n is 1` with a symbolic operand: CPython has a single object for each small int.
int Session::same(PyObject* left, PyObject* right) {
  if (is_symbolic_string(left) || is_symbolic_string(right)) {
    const auto may_be_it = [](PyObject* object) { return is_symbolic_string(object) || PyUnicode_CheckExact(object); };
    const auto is_made = [](PyObject* object) {
      return is_symbolic_string(object) && operation_of_string(object) != nullptr;
    };
    if (!may_be_it(left) || !may_be_it(right) || is_made(left) || is_made(right)) return 0;
    const PyRef a = is_symbolic_string(left) ? plain_text(left) : PyRef::borrow(left),
                b = is_symbolic_string(right) ? plain_text(right) : PyRef::borrow(right);
    return identities_.note_is_of_values(a.get(), b.get()), a.get() == b.get() ? 1 : 0;
  }
  if (is_symbool(left) || is_symbool(right)) {
    const PyRef a = without_symbols(PyRef::borrow(left)), b = without_symbols(PyRef::borrow(right));
    return a.get() == b.get() ? 1 : 0;
  }
  const auto is_int = [](PyObject* object) { return is_symint(object) || PyLong_CheckExact(object); };
  if (!is_int(left) || !is_int(right)) return 0;
  const PyRef a = without_symbols(PyRef::borrow(left)), b = without_symbols(PyRef::borrow(right));
  constexpr long kLeastSmall = -5, kMostSmall = 256;
  int beyond = 0;
  const long value = PyLong_AsLongAndOverflow(a.get(), &beyond);
  const bool small = beyond == 0 && value >= kLeastSmall && value <= kMostSmall;
  return small && PyObject_RichCompareBool(a.get(), b.get(), Py_EQ) == 1 ? 1 : 0;
}

// Whether a metaclass of the program implements __instancecheck__ for a class, outside of the standard library and
// torch.
static bool asks_metaclass(PyObject* classes) {
  if (PyTuple_Check(classes)) {
    PyObject** const items = PySequence_Fast_ITEMS(classes);
    return any_among(items, items + PyTuple_GET_SIZE(classes), asks_metaclass);
  }
  static PyObject* const name = PyUnicode_InternFromString("__instancecheck__");
  PyObject* const method = _PyType_Lookup(Py_TYPE(classes), name);
  if (method == nullptr || !PyFunction_Check(method)) return false;
  PyObject* const of = PyFunction_GET_MODULE(method);
  const std::string_view module = of != nullptr ? utf8(of, "") : "";
  return module != "abc" && module != "typing" && module != "torch" && !module.starts_with("torch.");
}

// k.__mul__(2.0) of a symbolic int: int's method returns NotImplemented for floats.
static bool asks_int_of_float(const CressetCall& call) {
  static auto* const symbolic = symint_class();
  const bool is_method = Py_IS_TYPE(call.callable, &PyMethodDescr_Type) && PyDescr_TYPE(call.callable) == symbolic;
  PyObject* const self = is_c_function(call.callable) ? PyCFunction_GET_SELF(call.callable) : nullptr;
  if (!is_method && (self == nullptr || !is_symint(self))) return false;
  if (call.nargs != (is_method ? 2 : 1)) return false;
  PyObject* const other = call.args[call.nargs - 1];
  return PyFloat_Check(other) || is_symfloat(other);
}

// `type(n)` and `isinstance(n, int)` answer for a symbolic number as for the plain number.
CressetAction ask_type(const CressetCall& call, PyObject** result) {
  if (call.nargs == 0 || call.kwnames != nullptr) return CRESSET_RUN;
  static PyObject* const is_instance = module_attribute("builtins", "isinstance");
  if (call.callable == is_instance && call.nargs == 2 && is_tensor(call.args[0]) && names_tensor_type(call.args[1])) {
    const int is = is_of_tensor_type(call.args[0], call.args[1]);
    if (is < 0) return CRESSET_FAIL;
    return *result = Py_NewRef(is != 0 ? Py_True : Py_False), CRESSET_RESULT;
  }
  if (asks_int_of_float(call)) return *result = Py_NewRef(Py_NotImplemented), CRESSET_RESULT;
  if (!is_symbolic_number(call.args[0]) && !is_symbolic_string(call.args[0])) return CRESSET_RUN;
  static PyObject *const zero = PyLong_FromLong(0), *const float_zero = PyFloat_FromDouble(0),
                         *const text = PyUnicode_FromString("");
  static PyObject* numpy_zero = nullptr;  // numpy may not be installed
  if (is_numpy_int(call.args[0]) && numpy_zero == nullptr) numpy_zero = numpy_int_of(zero).release();
  PyObject* const alike = is_symbolic_string(call.args[0]) ? text
                          : is_numpy_int(call.args[0])     ? numpy_zero
                          : is_symfloat(call.args[0])      ? float_zero
                          : is_symbool(call.args[0])       ? Py_False
                                                           : zero;
  const bool asks_type = call.callable == (PyObject*)&PyType_Type && call.nargs == 1;
  if (asks_type) return *result = Py_NewRef((PyObject*)Py_TYPE(alike)), CRESSET_RESULT;
  static PyObject* const dir = module_attribute("builtins", "dir");
  if (call.callable == dir && call.nargs == 1) return *result = checked(PyObject_Dir(alike)).release(), CRESSET_RESULT;
  if (call.callable != is_instance || call.nargs != 2 || asks_metaclass(call.args[1])) return CRESSET_RUN;
  const int is = PyObject_IsInstance(alike, call.args[1]);
  const bool may_be_symbolic = is == 0 && !is_numpy_int(call.args[0]);  // torch accepts symbols, but no numpy numbers
  const int is_symbolic = may_be_symbolic ? PyObject_IsInstance(call.args[0], call.args[1]) : is;
  if (is < 0 || is_symbolic < 0) return CRESSET_FAIL;
  return *result = Py_NewRef(is_symbolic ? Py_True : Py_False), CRESSET_RESULT;
}

static CressetAction ask_layout(Session& session, CressetActivation* activation, const CressetCall& call,
                                PyObject* question, PyObject** result) {
  session.operation().start(activation, Operation::Kind::Call, 0);
  session.operation().in_progress().call = call;
  PyRef value = [&] {
    const NotEvaluated own_business;
    return PyRef::steal(PyObject_Vectorcall(question, call.args, static_cast<size_t>(call.nargs), call.kwnames));
  }();
  session.operation().in_progress().end();
  if (!value) return CRESSET_FAIL;
  session.operation().go_on_with(activation, value);
  return *result = value.release(), CRESSET_RESULT;
}

static CressetAction read_int(Session& session, CressetActivation* activation, const CressetCall& call,
                              PyObject* tensor, PyObject** result) {
  session.operation().start(activation, Operation::Kind::Call, 0);
  session.operation().in_progress().call = call;
  PyRef value = PyRef::steal(PyObject_CallMethod(tensor, "item", nullptr));
  session.operation().in_progress().end();
  if (value && PyBool_Check(value.get())) value = PyRef::steal(PyLong_FromLong(value.get() == Py_True ? 1 : 0));
  if (value && call.callable == (PyObject*)&PyFloat_Type)
    value = is_symint(value.get()) ? python_float(node_of(value.get())->sym_float())
                                   : PyRef::steal(PyNumber_Float(value.get()));
  if (!value) return CRESSET_FAIL;
  session.operation().go_on_with(activation, value);
  return *result = value.release(), CRESSET_RESULT;
}

// The rules of calls which make numbers. `int(n)` of a symbolic int is n. For a float computed from sizes, the
// truncated value is symbolic again. For an integer tensor, int() equals item(). float() works in the same way. item()
// of a float or a boolean is answered here, since torch's binding cannot return such a symbol to Python.
struct Session::NumberRules {
  using Action = std::optional<CressetAction>;

  Session& session;
  CressetActivation* activation;
  const CressetCall& call;
  PyObject** result;
  const bool to_int = call.callable == (PyObject*)&PyLong_Type, to_float = call.callable == (PyObject*)&PyFloat_Type;
  PyObject* const given = call.nargs == 1 && call.kwnames == nullptr ? call.args[0] : nullptr;

  Action give(PyRef value) const { return *result = value.release(), CRESSET_RESULT; }

  // int(), float() and numpy.int64() of a symbolic number.
  Action conversion() const {
    if (given == nullptr) return {};
    const auto* const type = PyType_Check(call.callable) ? (PyTypeObject*)call.callable : nullptr;
    if (type != nullptr && is_symint(given) && std::string_view(type->tp_name) == "numpy.int64" &&
        is_numpy_scalar_type((PyTypeObject*)call.callable))
      return give(numpy_int_of(given));
    if (to_int && is_numpy_int(given)) return give(int_of_numpy(given));
    if (to_int ? is_symint(given) : to_float && is_symfloat(given)) return give(PyRef::borrow(given));
    if (to_float && is_symint(given)) return give(python_float(node_of(given)->sym_float()));
    return {};
  }

  Action truncation_or_size() const {
    PyRef value = to_int && given != nullptr ? truncated(given) : about_sizes(call);
    if (value) return give(std::move(value));
    return PyErr_Occurred() != nullptr ? Action(CRESSET_FAIL) : std::nullopt;
  }

  Action layout_question() const {
    PyObject* const question = call.nargs != 0 ? about_layout(call.callable) : nullptr;
    if (question == nullptr || !is_traced(call.args[0])) return {};
    return ask_layout(session, activation, call, question, result);
  }

  Action rounding() const {
    if (!rounds_to_digits(call) || session.segment().capture().symbolic_numbers) return {};
    session.operation().start(activation, Operation::Kind::Call, 0);
    session.operation().in_progress().call = call;
    return session.segment().capture().flush({BreakKind::SymbolicNumber, "a float is rounded to digits"}), CRESSET_RUN;
  }

  Action function() const {
    if (PyRef value = function_of_number(call)) return give(std::move(value));
    if (PyRef value = whole_number(call)) return give(std::move(value));
    if (!is_numpy_of_numbers(call)) return {};
    for (Py_ssize_t i = 0; i < call.nargs; ++i) session.reads().read_deep(call.args[i]);
    PyRef value = numpy_of_numbers(call);
    return value ? give(std::move(value)) : std::nullopt;
  }

  Action no_read_of_tensor() const {
    const bool is_none = call.kwnames != nullptr || call.nargs > 1 || operators_call_python();
    return is_none ? Action(CRESSET_RUN) : std::nullopt;
  }

  // int() and float() of an input scalar which holds an integer.
  Action input_integer() const {
    const bool converts = (to_int || to_float) && given != nullptr && is_exact_tensor(given);
    if (!converts || !at::isIntegralType(tensor_of(given).scalar_type(), true)) return {};
    if (!bridge::is_given(session.segment().capture(), tensor_of(given), /*to_decide=*/false)) return {};
    return read_int(session, activation, call, given, result);
  }

  Action element_of_tensor() const {
    const bridge::Capture& capture = session.segment().capture();
    if (!capture.symbolic_numbers && !capture.decides_on_input_scalars) return CRESSET_RUN;
    PyObject* const of = to_int || to_float ? given : self_of_item();
    if (of == nullptr || !is_exact_tensor(of)) return CRESSET_RUN;
    const at::Tensor& tensor = tensor_of(of);
    if (!to_int && !to_float && tensor.scalar_type() == at::kBool && capture.symbolic_booleans) return truth(tensor);
    if (to_int) {
      const bool reads = at::isIntegralType(tensor.scalar_type(), false) && capture.symbolic_numbers;
      return reads ? read_int(session, activation, call, of, result) : CRESSET_RUN;
    }
    if (!at::isFloatingType(tensor.scalar_type())) return CRESSET_RUN;
    const c10::SymNode number =
        bridge::float_in(session.segment().capture(), tensor, /*only_given=*/!capture.symbolic_numbers);
    return number ? give(python_float(number)) : CRESSET_RUN;
  }

 private:
  PyObject* self_of_item() const {
    const CCall what = session.classifier().classify(call);
    return what.self != nullptr && std::string_view(what.name) == "item" ? what.self : nullptr;
  }
  Action truth(const at::Tensor& tensor) const {
    const at::Scalar value = tensor.item();
    return give(value.isSymbolic() ? python_bool(value.toSymBool().toSymNodeImpl())
                                   : PyRef::steal(PyBool_FromLong(value.toBool())));
  }
};

CressetAction Session::make_number(CressetActivation* activation, const CressetCall& call, PyObject** result) {
  static constexpr NumberRules::Action (NumberRules::* kRules[])() const = {
      &NumberRules::conversion,    &NumberRules::truncation_or_size, &NumberRules::layout_question,
      &NumberRules::rounding,      &NumberRules::function,           &NumberRules::no_read_of_tensor,
      &NumberRules::input_integer, &NumberRules::element_of_tensor,
  };
  const NumberRules rules{*this, activation, call, result};
  return first_action(rules, kRules, CRESSET_RUN);
}

}  // namespace cresset::frontend
