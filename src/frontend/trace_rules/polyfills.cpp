#include "frontend/trace_rules/polyfills.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/input_scalars.h"
#include "bridge/capture/sym_node.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/eval/bytecode.h"
#include "frontend/eval/polyfills.h"
#include "frontend/feedback/specializations.h"
#include "frontend/trace_rules/c_function_effects.h"
#include "frontend/trace_rules/call_filter.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/substitutes.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {
namespace {

struct Consumer {
  PyObject* function;
  Py_ssize_t at;  // index of the consumed argument; -1: always replaced
};
// Under the GIL; entries are kept for the whole process.
std::unordered_map<PyObject*, Consumer> consumers;
std::unordered_map<PyObject*, PyObject*> iterators;  // by the builtin class
// itertools functions whose polyfill is a generator, with the permitted numbers and names of arguments.
struct Looped {
  PyObject* function;
  Py_ssize_t least, most;
  PyObject* names;
};
std::unordered_map<const void*, Looped> looped;        // by the class, or by the definition of its method
std::unordered_map<PyObject*, PyObject*> for_symbols;  // replacements of builtins
// The condition for a decomposition. Symbols: symbolic numbers among the arguments or in lists. Always: the C code asks
// for the sizes of its tensors. Data: symbolic arguments outside of lists, or tensors with data-dependent sizes.
// Factors: 0-dimensional tensors as factors, which the C code would read.
enum class When : uint8_t { Symbols, Always, Data, Factors, SymbolsOrFactors };
struct Decomposition {
  PyObject* function = nullptr;  // nullptr: in a module that is not imported yet
  PyObject* module = nullptr;    // its name
  When when = When::Symbols;
  bool varied = false;  // only for numbers which have varied and for sizes: constants have faster code
};
std::unordered_map<PyObject*, Decomposition> decompositions;  // for symbolic numbers, by the C function
// Methods among them, by the definition that a bound method shares with its descriptor.
std::unordered_map<const PyMethodDef*, PyObject*> decomposition_methods;
thread_local std::unordered_set<std::string> presumed;  // sources of symbols in the captured segment

// A method of a number or of a number class. It returns NotImplemented or raises for a symbolic number, unlike the same
// call in the program.
bool is_method_of_numbers(PyObject* function) {
  const auto is_class = [](PyObject* type) {
    return type == (PyObject*)&PyLong_Type || type == (PyObject*)&PyFloat_Type || type == (PyObject*)&PyBool_Type;
  };
  if (is_method_wrapper(function)) function = decompose_wrapper(function).descriptor;
  if (is_c_function(function) && PyCFunction_GET_SELF(function) != nullptr)
    return is_class((PyObject*)Py_TYPE(PyCFunction_GET_SELF(function)));
  const bool is_descriptor = Py_IS_TYPE(function, &PyWrapperDescr_Type) || Py_IS_TYPE(function, &PyMethodDescr_Type);
  return is_descriptor && is_class((PyObject*)PyDescr_TYPE(function));
}

// Functions whose calls must be evaluated: of the program, methods of its containers, methods of numbers.
bool is_of_program(PyObject* function) {
  if (PyMethod_Check(function)) return PyFunction_Check(PyMethod_GET_FUNCTION(function));
  if (is_c_function(function)) {
    PyObject* self = PyCFunction_GET_SELF(function);
    if (self != nullptr && (is_container(self) || viewed(self) != nullptr)) return true;
  }
  return PyFunction_Check(function) || is_method_of_numbers(function);
}

bool has_method(PyTypeObject* type, const char* name) {
  const PyRef key = checked(PyUnicode_InternFromString(name));
  PyObject* const found = _PyType_Lookup(type, key.get());
  return found != nullptr && PyFunction_Check(found);
}

// map(f, a, b), filter(f, a), zip(a, b): their arguments. Empty for other objects and for a strict zip.
PyRef held_by_builtin(PyObject* values) {
  if (!Py_IS_TYPE(values, &PyMap_Type) && !Py_IS_TYPE(values, &PyFilter_Type) && !Py_IS_TYPE(values, &PyZip_Type))
    return {};
  const PyRef reduced = checked(PyObject_CallMethod(values, "__reduce__", nullptr));
  if (PyTuple_GET_SIZE(reduced.get()) != 2) return {};
  return PyRef::borrow(PyTuple_GET_ITEM(reduced.get(), 1));
}

// Whether C code that iterates over the object runs code of the program, where a graph break may occur.
bool runs_program(PyObject* values) {
  if (PyGen_CheckExact(values)) return true;
  PyTypeObject* const type = Py_TYPE(values);
  for (const auto& [builtin, replacement] : iterators)
    if ((PyObject*)type == replacement) return true;
  if (const PyRef held = held_by_builtin(values)) {
    PyObject** const parts = PySequence_Fast_ITEMS(held.get());
    const bool calls = type != &PyZip_Type && is_of_program(parts[0]);
    return calls || std::any_of(parts, parts + PyTuple_GET_SIZE(held.get()), &runs_program);
  }
  if (!is_heap_type(type) || is_container(values) || is_tensor(values)) return false;
  // Objects with a length or with keys are excluded: C code may call these methods.
  if (has_method(type, "__len__") || has_method(type, "__length_hint__") || has_method(type, "keys")) return false;
  return has_method(type, "__next__") || has_method(type, "__iter__");
}

PyObject* keyword(const CressetCall& call, std::string_view name) {
  for (Py_ssize_t i = 0; i < cresset_count_named(&call); ++i)
    if (utf8(PyTuple_GET_ITEM(call.kwnames, i)) == name) return call.args[call.nargs + i];
  return nullptr;
}

// Whether sum() would treat a list or tuple differently because of symbols. This holds for numpy numbers, whose
// operators are C code. It also holds for floats from CPython 3.12 on, which use compensated summation.
bool sums_symbols(const CressetCall& call) {
  static PyObject* const sum = module_attribute("builtins", "sum");
  PyObject* const items = call.args[0];
  if (call.callable != sum || (!PyList_CheckExact(items) && !PyTuple_CheckExact(items))) return false;
  std::vector<PyObject*> numbers(PySequence_Fast_ITEMS(items),
                                 PySequence_Fast_ITEMS(items) + PySequence_Fast_GET_SIZE(items));
  if (call.nargs == 2) numbers.push_back(call.args[1]);
  if (PyObject* const start = keyword(call, "start")) numbers.push_back(start);
  const auto is_apart = [](PyObject* number) {
    if (is_numpy_scalar(number) || is_numpy_int(number)) return true;
    return PY_VERSION_HEX >= 0x030C0000 && (PyFloat_CheckExact(number) || is_symfloat(number));
  };
  return std::any_of(numbers.begin(), numbers.end(), is_symbolic_number) &&
         std::any_of(numbers.begin(), numbers.end(), is_apart);
}

bool always_replaced(const CressetCall& call) {
  const auto found = consumers.find(call.callable);
  return found != consumers.end() && found->second.at < 0;
}

// max(padding, 0), any(flags) on tensors whose values are known when the call begins: no decision causes a graph break.
bool decides_on_given(const CressetCall& call, PyObject* function) {
  const auto polyfill = [](const char* name) { return module_attribute(python_names::kPolyfills, name); };
  static PyObject* const deciding[] = {polyfill("max_of"), polyfill("min_of"), polyfill("any_of"), polyfill("all_of")};
  if (std::find(std::begin(deciding), std::end(deciding), function) == std::end(deciding)) return false;
  PyObject* const* items = call.args;
  Py_ssize_t count = call.nargs;
  if (count == 1) {
    if (!PyList_CheckExact(items[0]) && !PyTuple_CheckExact(items[0])) return false;
    count = PySequence_Fast_GET_SIZE(items[0]);
    items = PySequence_Fast_ITEMS(items[0]);
  }
  bridge::Capture* const capture = bridge::Capture::current();
  if (capture == nullptr || std::none_of(items, items + count, is_tensor)) return false;
  return std::all_of(items, items + count, [&](PyObject* item) {
    if (!is_tensor(item)) return PyLong_Check(item) || PyFloat_Check(item) || is_symbolic_number(item);
    return is_exact_tensor(item) && bridge::is_given(*capture, tensor_of(item), /*to_decide=*/true);
  });
}

PyObject* consumer_for(const CressetCall& call) {
  PyObject* callable = call.callable;
  const auto found = consumers.find(callable);
  if (found == consumers.end()) return nullptr;
  const Consumer& consumer = found->second;
  if (consumer.at < 0) return consumer.function;
  if (call.nargs <= consumer.at) return nullptr;
  if (consumer.at == 1 && PyType_IsSubtype(Py_TYPE(callable), &PyMethodDescr_Type) &&
      (PyObject*)Py_TYPE(call.args[0]) != (PyObject*)PyDescr_TYPE(callable))
    return nullptr;  // the object belongs to a subclass
  if (runs_program(call.args[consumer.at]) || sums_symbols(call) || decides_on_given(call, consumer.function))
    return consumer.function;
  PyObject* const first = call.args[0];
  PyObject* key = keyword(call, "key");
  const bool one_argument = call.nargs == 1 && !PyDict_Check(first);
  if (key != nullptr && one_argument && is_of_program(key)) return consumer.function;
  static PyObject* const reduce = module_attribute("functools", "reduce");
  return callable == reduce && is_of_program(first) ? consumer.function : nullptr;
}

// Whether the class implements the method in Python. object.__str__ calls __repr__.
bool has_text_of(PyTypeObject* type, bool of_str) {
  static PyObject* const name = PyUnicode_InternFromString("__str__");
  if (!is_heap_type(type)) return false;
  if (!of_str) return has_method(type, "__repr__");
  return has_method(type, "__str__") ||
         (_PyType_Lookup(type, name) == _PyType_Lookup(&PyBaseObject_Type, name) && has_method(type, "__repr__"));
}

// str(thing) and repr(thing) where the class of `thing` implements them in Python.
PyObject* text_maker_for(const CressetCall& call) {
  static PyObject* const repr = module_attribute("builtins", "repr");
  const bool of_str = call.callable == (PyObject*)&PyUnicode_Type;
  if ((!of_str && call.callable != repr) || call.nargs != 1 || call.kwnames != nullptr) return nullptr;
  PyObject* const thing = call.args[0];
  if (!is_heap_type(Py_TYPE(thing)) || is_tensor(thing) || is_symbolic_number(thing)) return nullptr;
  static PyObject *const str_of = module_attribute(python_names::kPolyfills, "str_of"),
                         *const repr_of = module_attribute(python_names::kPolyfills, "repr_of");
  return has_text_of(Py_TYPE(thing), of_str) ? (of_str ? str_of : repr_of) : nullptr;
}

// The instruction after the call in progress, with its operand. opcode -1: not a plain call, or the last instruction.
struct Instruction {
  int opcode, operand;
};
Instruction behind(const CressetActivation& activation) {
  const PyRef code = checked(PyCode_GetCode(activation.code));
  const auto* units = (const unsigned char*)PyBytes_AS_STRING(code.get());
  const auto count = PyBytes_GET_SIZE(code.get()) / 2;
  if (units[2 * activation.instruction] != CALL) return {-1, 0};
  Py_ssize_t next = activation.instruction + 1;
  while (next < count && units[2 * next] == CACHE) ++next;
  return next < count ? Instruction{units[2 * next], units[2 * next + 1]} : Instruction{-1, 0};
}

// Whether only the evaluator iterates over the result of the call in progress, immediately. Also true if the result is
// passed to a callable for which `takes` holds.
template <class Takes>
bool is_iterated(const CressetActivation& activation, Takes&& takes) {
  const auto [opcode, operand] = behind(activation);
  if (opcode < 0) return false;
  if (opcode == GET_ITER || opcode == LIST_EXTEND || opcode == UNPACK_SEQUENCE) return true;
  if (cresset_begins_call(opcode) == 0 || operand != 1) return false;
  CressetFrameImage image;
  cresset_eval_image(&activation, CRESSET_AFTER, &image);
  if (cresset_callable_is_first() != 0) {
    PyObject** const called = image.stack_depth >= 2 ? image.stack + image.stack_depth - 2 : nullptr;
    return called != nullptr && called[0] != nullptr && takes(called[0], called[1] != nullptr ? 1 : 0);
  }
  const auto is_taken = [&](int from_top, Py_ssize_t at) {
    PyObject* callable = image.stack_depth >= from_top ? image.stack[image.stack_depth - from_top] : nullptr;
    return callable != nullptr && takes(callable, at);
  };
  return is_taken(1, 0) || is_taken(2, 1);
}

bool is_consumed(PyObject* callable, Py_ssize_t at) {
  const auto found = consumers.find(callable);
  return found != consumers.end() && found->second.at == at;
}
bool is_only_iterated(const CressetActivation& activation) { return is_iterated(activation, is_consumed); }

// Whether the end value of a range with a step is never visible.
bool is_only_counted(const CressetActivation& activation) {
  static PyObject* const length = module_attribute("builtins", "len");
  return is_iterated(activation, [](PyObject* callable, Py_ssize_t at) {
    return is_consumed(callable, at) || iterators.count(callable) != 0 || callable == length ||
           callable == (PyObject*)&PyReversed_Type;
  });
}

PyObject* iterator_for(const CressetActivation& activation, const CressetCall& call) {
  const auto found = iterators.find(call.callable);
  if (found == iterators.end() || call.nargs == 0) return nullptr;
  const bool calls_function = call.callable == (PyObject*)&PyMap_Type || call.callable == (PyObject*)&PyFilter_Type;
  if (calls_function && call.nargs < 2) return nullptr;
  if (call.kwnames != nullptr && call.callable != (PyObject*)&PyEnum_Type) return nullptr;
  bool runs = calls_function && is_of_program(call.args[0]);
  for (Py_ssize_t i = calls_function ? 1 : 0; i < call.nargs; ++i) runs = runs || runs_program(call.args[i]);
  return runs && is_only_iterated(activation) ? found->second : nullptr;
}

const Looped* looped_for(PyObject* callable) {
  const auto found = looped.find(definition_of(callable));
  if (found == looped.end()) return nullptr;
  // A subclass inherits chain.from_iterable.
  return is_c_function(callable) && looped.find(PyCFunction_GET_SELF(callable)) == looped.end() ? nullptr
                                                                                                : &found->second;
}

// The value in this call, without a guard; 0 if unknown.
int64_t hint_of(PyObject* number) {
  if (!is_symint(number)) {
    const long long value = PyLong_AsLongLong(number);
    return value == -1 && PyErr_Occurred() != nullptr ? PyErr_Clear(), 0 : value;
  }
  const auto* node = dynamic_cast<const bridge::SymNode*>(node_of(number).get());
  return node != nullptr ? node->env()->hint(node->expr()).value_or(0) : 0;
}

// range(n) in the head of a loop which had other lengths before.
bool is_range_of_many_lengths(const CressetActivation& activation, const CressetCall& call) {
  const auto is_int = [](PyObject* number) { return PyLong_CheckExact(number) || is_symint(number); };
  if (call.kwnames != nullptr || !std::all_of(call.args, call.args + call.nargs, is_int)) return false;
  if (call.nargs == 3 && is_symint(call.args[2])) return false;
  const int64_t first = call.nargs == 1 ? 0 : hint_of(call.args[0]), step = call.nargs == 3 ? hint_of(call.args[2]) : 1;
  const int64_t last = hint_of(call.args[call.nargs == 1 ? 0 : 1]);
  if (step == 0 || !std::any_of(call.args, call.args + call.nargs, is_unspecialized)) return false;
  return is_of_many_lengths(activation, (last - first + step - (step > 0 ? 1 : -1)) / step);
}

// itertools functions in the head of a loop: a frame keeps its position over a graph break and can call functions of
// the program.
PyObject* loop_for(const CressetActivation& activation, const CressetCall& call) {
  const Looped* const found = looped.empty() ? nullptr : looped_for(call.callable);
  if (found == nullptr || call.nargs > found->most || cresset_hides_frames_of(activation.code)) return nullptr;
  Py_ssize_t given = call.nargs;
  for (Py_ssize_t i = 0; i < cresset_count_named(&call); ++i, ++given)
    if (PySequence_Contains(found->names, PyTuple_GET_ITEM(call.kwnames, i)) != 1) return nullptr;
  if (given < found->least) return nullptr;
  const bool is_range = call.callable == (PyObject*)&PyRange_Type;
  if (behind(activation).opcode == GET_ITER)
    return !is_range || is_range_of_many_lengths(activation, call) ? found->function : nullptr;
  if (is_range) return nullptr;
  bool runs = false;
  for (Py_ssize_t i = 0; i < given; ++i) runs = runs || is_of_program(call.args[i]) || runs_program(call.args[i]);
  return runs && is_only_iterated(activation) ? found->function : nullptr;
}

// Whether the number depends only on ints that are symbols before they have varied.
bool is_presumed(PyObject* number) {
  const auto* node = dynamic_cast<const bridge::SymNode*>(node_of(number).get());
  if (node == nullptr || presumed.empty() || node->expr() == sym::ExprId{}) return false;
  std::vector<sym::VarId> vars;
  node->env()->pool().collect_vars(node->expr(), vars);
  return !vars.empty() && std::all_of(vars.begin(), vars.end(), [&](sym::VarId var) {
    const sym::Symbol* symbol = node->env()->symbol(var);
    return symbol != nullptr && presumed.contains(symbol->source);
  });
}

// Whether an argument is a symbolic number, or a list or tuple which contains a symbolic number.
bool is_given_symbols(const CressetCall& call, bool varied) {
  const auto counts = [&](PyObject* o) { return is_symbolic_number(o) && !(varied && is_presumed(o)); };
  const Py_ssize_t count = cresset_count_arguments(&call);
  return std::any_of(call.args, call.args + count, [&](PyObject* arg) {
    if (!PyTuple_Check(arg) && !PyList_CheckExact(arg)) return counts(arg);
    PyObject** const items = PySequence_Fast_ITEMS(arg);
    return std::any_of(items, items + PySequence_Fast_GET_SIZE(arg), counts);
  });
}

bool has_size_of_data(const at::Tensor& tensor) {
  if (tensor.is_nested()) return false;  // has no sizes
  const auto sizes = tensor.sym_sizes();
  return std::any_of(sizes.begin(), sizes.end(), [](const c10::SymInt& size) {
    return size.is_heap_allocated() && !size.toSymNodeImplUnowned()->has_hint();
  });
}

// Whether an argument is a symbolic number or a tensor with a data-dependent size.
bool is_given_data(const CressetCall& call) {
  const Py_ssize_t count = cresset_count_arguments(&call);
  return std::any_of(call.args, call.args + count, [](PyObject* arg) {
    return is_symbolic_number(arg) || (is_tensor(arg) && has_size_of_data(tensor_of(arg)));
  });
}

// Whether a factor, always a keyword argument, is a tensor used as a number. Tensors with gradients are excluded,
// because the number would cut the derivative.
bool is_given_factors(const CressetCall& call) {
  if (call.kwnames == nullptr || inside_transform()) return false;
  for (Py_ssize_t k = 0; k < cresset_count_named(&call); ++k) {
    PyObject* const arg = call.args[call.nargs + k];
    if (!is_exact_tensor(arg) || tensor_of(arg).dim() != 0) continue;
    if (tensor_of(arg).requires_grad() || tensor_of(arg)._fw_grad(0).defined()) continue;
    PyObject* const name = PyTuple_GET_ITEM(call.kwnames, k);
    for (const char* factor : {"alpha", "beta", "value"})
      if (PyUnicode_CompareWithASCIIString(name, factor) == 0) return true;
  }
  return false;
}

bool is_wanted(const Decomposition& form, const CressetCall& call) {
  switch (form.when) {
    case When::Symbols:
      return is_given_symbols(call, form.varied);
    case When::Always:
      return true;
    case When::Data:
      return is_given_data(call);
    case When::Factors:
      return is_given_factors(call);
    case When::SymbolsOrFactors:
      return is_given_symbols(call, form.varied) || is_given_factors(call);
  }
  return false;
}

// Whether a Python function accepts these arguments. Otherwise the C function handles or rejects them.
bool has_parameters(PyObject* function, const CressetCall& call, Py_ssize_t self) {
  const auto* code = (const PyCodeObject*)PyFunction_GET_CODE(function);
  PyObject* const defaults = PyFunction_GET_DEFAULTS(function);
  const Py_ssize_t optional = defaults != nullptr ? PyTuple_GET_SIZE(defaults) : 0;
  const Py_ssize_t given = call.nargs + self;
  if (given > code->co_argcount && (code->co_flags & CO_VARARGS) == 0) return false;
  const PyRef names = checked(PyObject_GetAttrString((PyObject*)code, "co_varnames"));
  std::vector<bool> known(static_cast<size_t>(code->co_argcount + code->co_kwonlyargcount));
  std::fill_n(known.begin(), std::min<Py_ssize_t>(given, code->co_argcount), true);
  for (Py_ssize_t k = 0; k < cresset_count_named(&call); ++k) {
    const auto same = [&](size_t i) {
      return PyUnicode_Compare(PyTuple_GET_ITEM(names.get(), i), PyTuple_GET_ITEM(call.kwnames, k)) == 0;
    };
    size_t at = 0;
    while (at < known.size() && !same(at)) ++at;
    if (at == known.size() || known[at]) return false;
    known[at] = true;
  }
  return std::all_of(known.begin(), known.begin() + code->co_argcount - optional, [](bool is) { return is; });
}

// C iterators that call a number method: a Python function calls the method instead.
PyObject* caller_for(const CressetCall& call) {
  static const std::array<std::pair<PyObject*, PyObject*>, 4> callers{{
      {(PyObject*)&PyMap_Type, module_attribute(python_names::kPolyfills, "map_by_call")},
      {(PyObject*)&PyFilter_Type, module_attribute(python_names::kPolyfills, "filter_by_call")},
      {module_attribute("itertools", "starmap"), module_attribute(python_names::kPolyfills, "starmap_by_call")},
      {module_attribute("itertools", "accumulate"), module_attribute(python_names::kPolyfills, "accumulate_by_call")},
  }};
  if (!PyType_Check(call.callable)) return nullptr;
  for (const auto& [iterator, caller] : callers)
    if (call.callable == iterator) {
      const bool given = std::any_of(call.args, call.args + cresset_count_arguments(&call), &is_method_of_numbers);
      return given && has_parameters(caller, call, 0) ? caller : nullptr;
    }
  return nullptr;
}

// The decomposition of a function, if it applies to these arguments.
const Decomposition* decomposition_for(PyObject* original, const CressetCall& call) {
  const auto found = decompositions.find(original);
  return found != decompositions.end() && is_wanted(found->second, call) ? &found->second : nullptr;
}

void note_decomposition(PyObject* original) {
  note_special_call(original);
  if (!Py_IS_TYPE(original, &PyMethodDescr_Type)) return;
  decomposition_methods[((PyMethodDescrObject*)original)->d_method] = original;
  note_special_call(((PyMethodDescrObject*)original)->d_method);
}

// The descriptor of a bound tensor method, if it has a decomposition. Runs at every call of C code.
PyObject* descriptor_of(PyObject* callable) {
  if (!is_c_function(callable)) return nullptr;
  PyObject* const self = PyCFunction_GET_SELF(callable);
  if (self == nullptr || !is_tensor(self)) return nullptr;
  const auto found = decomposition_methods.find(((PyCFunctionObject*)callable)->m_ml);
  if (found == decomposition_methods.end()) return nullptr;
  // An override in a subclass must not be bypassed.
  PyObject* const here = _PyType_Lookup(Py_TYPE(self), PyDescr_NAME(found->second));
  return here == found->second ? here : nullptr;
}

}  // namespace

PyObject* source_of_script(PyObject* callable) {
  static PyObject* const type = private_attribute("torch._C", "ScriptFunction");
  if (!Py_IS_TYPE(callable, (PyTypeObject*)type)) return nullptr;
  // torch's name for the original function
  static PyObject* const name = PyUnicode_InternFromString("_torchdynamo_inline");
  const PyRef source = PyRef::steal(PyObject_GetAttr(callable, name));
  if (!source) PyErr_Clear();  // made by tracing
  return source && PyFunction_Check(source.get()) ? source.get() : nullptr;
}

void presume_varying(std::unordered_set<std::string> sources) { presumed = std::move(sources); }

PyRef decomposition_of(const CressetActivation& activation, const CressetCall& call) {
  if (cresset_hides_frames_of(activation.code)) return {};
  PyObject* const descriptor = descriptor_of(call.callable);
  PyObject* const original = descriptor != nullptr ? descriptor : call.callable;
  const Decomposition* form = decomposition_for(original, call);
  if (form != nullptr && form->function == nullptr) {
    import_module(PyUnicode_AsUTF8(form->module));
    form = decomposition_for(original, call);
    CRESSET_CHECK(form == nullptr || form->function != nullptr, "a module has the forms that are said to be in it");
  }
  if (form == nullptr) return {};
  PyObject* const function = form->function;
  if (!has_parameters(function, call, descriptor != nullptr ? 1 : 0)) return {};
  return descriptor == nullptr ? PyRef::borrow(function)
                               : checked(PyMethod_New(function, PyCFunction_GET_SELF(call.callable)));
}

bool is_decomposition_of(PyObject* original, const PyCodeObject* code) {
  const auto found = decompositions.find(original);
  if (found == decompositions.end() || found->second.function == nullptr) return false;
  const auto* const outer = (PyCodeObject*)PyFunction_GET_CODE(found->second.function);
  if (outer == code) return true;
  PyObject** const inner = PySequence_Fast_ITEMS(outer->co_consts);
  return std::any_of(inner, inner + PyTuple_GET_SIZE(outer->co_consts),
                     [&](const PyObject* constant) { return constant == (const PyObject*)code; });
}

void call_for_symbols(PyObject* original, PyObject* function) {
  for_symbols[Py_NewRef(original)] = Py_NewRef(function);  // kept for the whole process
}

PyObject* proxy_of(const CressetActivation& activation, const CressetCall& call) {
  const auto found = for_symbols.find(call.callable);
  if (found == for_symbols.end()) return nullptr;
  // the replacement calls the original
  if ((PyObject*)activation.code == PyFunction_GET_CODE(found->second)) return nullptr;
  if (call.callable != (PyObject*)&PyRange_Type) return found->second;
  if (!std::any_of(call.args, call.args + call.nargs, is_symint)) return nullptr;
  const bool raises = call.nargs == 3 && PyLong_CheckExact(call.args[2]) && PyObject_IsTrue(call.args[2]) == 0;
  return raises || is_only_counted(activation) ? found->second : nullptr;
}

PyRef rows_of(const CressetActivation& activation, PyObject* tensor) {
  if (!is_exact_tensor(tensor) || at::GradMode::is_enabled() || cresset_hides_frames_of(activation.code)) return {};
  const at::Tensor& rows = tensor_of(tensor);
  if (rows.dim() == 0 || rows.requires_grad() || rows.is_nested()) return {};
  const PyRef length = checked(PyObject_CallMethod(tensor, "size", "i", 0));
  if (!is_symint(length.get()) || !is_unspecialized(length.get())) return {};
  if (!is_of_many_lengths(activation, hint_of(length.get()))) return {};
  static PyObject* const rows_in_turn = module_attribute(python_names::kLoops, "rows_of");
  return checked(PyObject_CallFunctionObjArgs(rows_in_turn, tensor, length.get(), nullptr));
}

PyObject* polyfill_of(const CressetActivation& activation, const CressetCall& call) {
  // The polyfill of sorted() calls sorted() with a list method, and the polyfill of add_note() calls the original.
  if (cresset_hides_frames_of(activation.code) && (call.kwnames != nullptr || always_replaced(call))) return nullptr;
  if (PyObject* function = consumer_for(call)) return function;
  if (PyObject* function = text_maker_for(call)) return function;
  if (PyObject* function = loop_for(activation, call)) return function;
  if (PyObject* iterator = iterator_for(activation, call)) return iterator;
  return caller_for(call);
}

PyObject* next_item_of(PyObject* iterator) {
  if (!held_by_builtin(iterator) || !runs_program(iterator)) return nullptr;
  static PyObject *const of_map = module_attribute(python_names::kPolyfills, "next_of_map"),
                         *const of_filter = module_attribute(python_names::kPolyfills, "next_of_filter"),
                         *const of_zip = module_attribute(python_names::kPolyfills, "next_of_zip");
  return Py_IS_TYPE(iterator, &PyMap_Type) ? of_map : Py_IS_TYPE(iterator, &PyFilter_Type) ? of_filter : of_zip;
}

// A whole number that is known when the call begins. Tensor.__format__ reads it, where it is a symbol of torch's class
// that no code but the program's makes one that can be formatted.
static bool formats_input_scalar(PyObject* object) {
  bridge::Capture* const capture = bridge::Capture::current();
  if (capture == nullptr || !is_exact_tensor(object)) return false;
  const at::Tensor& tensor = tensor_of(object);
  return tensor.dim() == 0 && at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false) &&
         bridge::is_given(*capture, tensor, /*to_decide=*/false);
}

PyObject* formatter_of(const CressetOperator& op) {
  if (op.kind != CRESSET_OP_FORMAT || op.operation == 'a') return nullptr;
  PyTypeObject* const type = Py_TYPE(op.operands[0]);
  if (!is_heap_type(type) || is_symbolic_number(op.operands[0])) return nullptr;
  if (is_tensor(op.operands[0]) && (op.operation != 0 || !formats_input_scalar(op.operands[0]))) return nullptr;
  static PyObject* const name = PyUnicode_InternFromString("__format__");
  static PyObject *const by_class = module_attribute(python_names::kPolyfills, "format_by_class"),
                         *const of_str = module_attribute(python_names::kPolyfills, "formatted_str_of"),
                         *const of_repr = module_attribute(python_names::kPolyfills, "formatted_repr_of");
  if (op.operation == 'r') return has_text_of(type, /*of_str=*/false) ? of_repr : nullptr;
  if (op.operation == 0 && has_method(type, "__format__")) return by_class;
  if (op.operation == 0 && _PyType_Lookup(type, name) != _PyType_Lookup(&PyBaseObject_Type, name)) return nullptr;
  const bool takes_spec = op.operation == 's' || op.operands[1] == nullptr;  // object.__format__ rejects a format spec
  return takes_spec && has_text_of(type, /*of_str=*/true) ? of_str : nullptr;
}

// The class that the call instantiates by type.__call__. A metaclass with its own __call__ may delegate to
// type.__call__ by super(). Borrowed.
static PyTypeObject* instantiated(PyObject* callable) {
  static PyObject* const by_type = checked(PyObject_GetAttrString((PyObject*)&PyType_Type, "__call__")).release();
  if (is_method_wrapper(callable)) {
    const MethodWrapper parts = decompose_wrapper(callable);
    return parts.descriptor == by_type && PyType_Check(parts.self) ? (PyTypeObject*)parts.self : nullptr;
  }
  return PyType_Check(callable) && Py_TYPE(callable)->tp_call == PyType_Type.tp_call ? (PyTypeObject*)callable
                                                                                     : nullptr;
}

PyRef maker_of_instance(const CressetCall& call) {
  PyTypeObject* const type = call.evaluated ? nullptr : instantiated(call.callable);
  if (type == nullptr || !is_heap_type(type)) return {};
  static PyObject *const new_name = PyUnicode_InternFromString("__new__"), *const init_name =
                                                                               PyUnicode_InternFromString("__init__");
  static PyObject* const make = module_attribute(python_names::kPolyfills, "make_instance");
  PyObject* const init = _PyType_Lookup(type, init_name);
  if (call.callable != (PyObject*)type && init != nullptr && PyFunction_Check(init))
    return checked(PyMethod_New(make, (PyObject*)type));
  PyObject* const found = _PyType_Lookup(type, new_name);
  if (found == nullptr || !Py_IS_TYPE(found, &PyStaticMethod_Type)) return {};
  const PyRef function = checked(PyObject_GetAttrString(found, "__func__"));
  if (!PyFunction_Check(function.get())) return {};
  // The `__new__` of a named tuple and of cresset's own polyfills runs no code of the program.
  PyObject* const module = PyDict_GetItemString(PyFunction_GET_GLOBALS(function.get()), "__name__");
  const std::string_view from = module != nullptr ? utf8(module) : "";
  if (from.starts_with("namedtuple_") || from.starts_with("cresset.")) return {};
  return checked(PyMethod_New(make, (PyObject*)type));
}

PyObject* hide_frames(PyObject*, PyObject* code) {
  if (!PyCode_Check(code)) return PyErr_SetString(PyExc_TypeError, "a code object is wanted"), nullptr;
  cresset_hide_frames_of((PyCodeObject*)code);
  return Py_NewRef(Py_None);
}

PyObject* decomposition_in(PyObject*, PyObject* args) {
  PyObject *original, *module;
  int when;
  if (!PyArg_ParseTuple(args, "OUi", &original, &module, &when)) return nullptr;
  const Decomposition form{.module = module, .when = static_cast<When>(when)};
  if (!decompositions.try_emplace(original, form).second) return Py_NewRef(Py_None);
  Py_INCREF(original), Py_INCREF(module);  // kept for the whole process
  note_decomposition(original);
  return Py_NewRef(Py_None);
}

PyObject* use_decomposition(PyObject*, PyObject* args) {
  PyObject *original, *function;
  int when, varied;
  if (!PyArg_ParseTuple(args, "OO!ip", &original, &PyFunction_Type, &function, &when, &varied)) return nullptr;
  Py_INCREF(original);  // kept for the whole process
  decompositions[original] = {.function = Py_NewRef(function), .when = static_cast<When>(when), .varied = varied != 0};
  note_decomposition(original);
  cresset_hide_frames_of((PyCodeObject*)PyFunction_GET_CODE(function));
  return Py_NewRef(Py_None);
}

PyObject* effect_of(PyObject*, PyObject* args) {
  if (PyTuple_GET_SIZE(args) == 0) return PyErr_SetString(PyExc_TypeError, "a callable is wanted"), nullptr;
  PyObject* const* items = PySequence_Fast_ITEMS(args);
  PyObject* const callable = items[0];
  static const std::unordered_map<CEffect, const char*> names = {
      {CEffect::Pure, "graph"},
      {CEffect::Reads, "reads"},
      {CEffect::Writes, "writes"},
      {CEffect::ReadsAndWrites, "writes"},
      {CEffect::SetsAttribute, "writes"},
      {CEffect::GetsAttribute, "reads"},
      {CEffect::Untraceable, "graph break"},
  };
  if (has_substitute(callable)) return PyUnicode_FromString("substituted");
  if (consumers.count(callable) != 0 || iterators.count(callable) != 0 || looped_for(callable) != nullptr)
    return PyUnicode_FromString("polyfill");
  try {
    return PyUnicode_FromString(names.at(classify_call(callable, items + 1, PyTuple_GET_SIZE(args) - 1).effect));
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyObject* use_loops(PyObject*, PyObject* rows) {
  for (Py_ssize_t i = 0; PyList_Check(rows) && i < PyList_GET_SIZE(rows); ++i) {
    PyObject *builtin, *function, *names;
    Py_ssize_t least, most;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "OOnnO!", &builtin, &function, &least, &most, &PyTuple_Type,
                          &names))
      return nullptr;
    const void* const by = definition_of(builtin);
    looped[by] = {Py_NewRef(function), least, most < 0 ? PY_SSIZE_T_MAX : most, Py_NewRef(names)};
    Py_INCREF(builtin);  // kept for the whole process
    note_special_call(by);
  }
  return Py_NewRef(Py_None);
}

PyObject* use_polyfills(PyObject*, PyObject* args) {
  PyObject *all_consumers, *all_iterators, *list_of, *first_of, *assign, *data_of, *attribute_of, *set_item;
  if (!PyArg_ParseTuple(args, "O!O!OOOOOO", &PyList_Type, &all_consumers, &PyList_Type, &all_iterators, &list_of,
                        &first_of, &assign, &data_of, &attribute_of, &set_item))
    return nullptr;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all_consumers); ++i) {
    PyObject *builtin, *function;
    Py_ssize_t at;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(all_consumers, i), "OOn", &builtin, &function, &at)) return nullptr;
    consumers[Py_NewRef(builtin)] = {Py_NewRef(function), at};
    note_special_call(builtin);
  }
  const CressetPolyfills known = {Py_NewRef(list_of),
                                  Py_NewRef(first_of),
                                  Py_NewRef(assign),
                                  Py_NewRef(data_of),
                                  Py_NewRef(attribute_of),
                                  Py_NewRef(set_item),
                                  [](PyObject* values) -> int { return runs_program(values) ? 1 : 0; }};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all_iterators); ++i) {
    PyObject *builtin, *type;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(all_iterators, i), "OO", &builtin, &type)) return nullptr;
    iterators[Py_NewRef(builtin)] = Py_NewRef(type);
    note_special_call(builtin);
  }
  cresset_eval_use(&known);
  return Py_NewRef(Py_None);
}

}  // namespace cresset::frontend
