// What the evaluator tells a session, and calls of C functions.
#include <opcode.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "bridge/symbolic_float.h"
#include "frontend/compiled_function.h"
#include "frontend/control.h"
#include "frontend/equivalents.h"
#include "frontend/foreign.h"
#include "frontend/py_objects.h"
#include "frontend/session.h"
#include "frontend/set_aside.h"
#include "frontend/special_cases.h"
#include "frontend/symbols.h"
#include "frontend/transforms.h"

namespace cresset::frontend {

Operation InProgress::kept() const {
  Operation out;
  out.kind = kind;
  out.operation = operation;
  if (kind != Operation::Kind::Call) {
    for (PyObject* operand : operands)
      if (operand != nullptr) out.operands.push_back(PyRef::borrow(operand));
    return out;
  }
  out.positional = call.nargs;
  out.kwnames = PyRef::borrow(call.kwnames);
  out.operands.push_back(PyRef::borrow(call.callable));
  const Py_ssize_t named = call.kwnames != nullptr ? PyTuple_GET_SIZE(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < call.nargs + named; ++i) out.operands.push_back(PyRef::borrow(call.args[i]));
  return out;
}

void Session::start(CressetActivation* activation, Operation::Kind kind, int operation) {
  in_progress_ = {activation, activation->instruction, kind, operation, {}, {nullptr, nullptr}};
  in_progress_.serial = capture_->serial();
  in_progress_.writes = capture_->writes();
  in_progress_.in_transform = inside_transform();
}

// A branch on a tensor, or on a number that data gives: the piece ends, and one for this outcome begins.
int Session::truth(CressetActivation* activation, PyObject* value) {
  if (PyDict_Check(value)) return read_whole(value), CRESSET_TRUTH_RUN;  // of a subclass: whether it is empty
  read_whole(value);
  const bool number = is_symbolic_number(value);
  if (!number && operators_call_python()) return CRESSET_TRUTH_RUN;
  if (!number && (!is_exact_tensor(value) || bridge::TraceTensor::from(tensor_of(value)) == nullptr))
    return CRESSET_TRUTH_RUN;
  start(activation, Operation::Kind::Truth, 0);
  in_progress_.operands[0] = value;
  const int answer = PyObject_IsTrue(value);
  in_progress_ = {};
  if (answer >= 0 && capture_->closed()) maker_.go_on(activation, CRESSET_BEFORE, answer ? Py_True : Py_False);
  return answer;
}

namespace {

// Python's own values, whose operators are C code alone.
bool is_builtin_operand(PyObject* object) {
  return PyUnicode_CheckExact(object) || PyDict_CheckExact(object) || PyLong_CheckExact(object) ||
         PyFloat_CheckExact(object) || PyBool_Check(object) || PyList_CheckExact(object) ||
         PyTuple_CheckExact(object) || object == Py_None || PyRange_Check(object);
}

std::optional<Operation::Kind> kind_of(CressetOperatorKind kind) {
  switch (kind) {
    case CRESSET_OP_BINARY:
      return Operation::Kind::Binary;
    case CRESSET_OP_UNARY:
      return Operation::Kind::Unary;
    case CRESSET_OP_COMPARE:
      return Operation::Kind::Compare;
    case CRESSET_OP_SUBSCRIPT:
      return Operation::Kind::Subscript;
    case CRESSET_OP_CONTAINS:
      return Operation::Kind::Contains;
    case CRESSET_OP_FORMAT:
      return Operation::Kind::Format;
    default:
      return std::nullopt;
  }
}

bool holds_symbol(PyObject* key) {
  if (!PyTuple_CheckExact(key)) return is_symint(key);
  PyObject** items = PySequence_Fast_ITEMS(key);
  return std::any_of(items, items + PyTuple_GET_SIZE(key), [](PyObject* item) { return is_symint(item); });
}

// tensor[n], or with a value tensor[n] = value, where n is symbolic and stays so. Empty, without an exception: it is
// torch's to do.
PyRef at_symbol(PyObject* tensor, PyObject* key, PyObject* value) {
  if (!is_exact_tensor(tensor) || !holds_symbol(key) || operators_call_python()) return {};
  static PyObject* const get = module_attribute("cresset._capture_patches", "get_item");
  static PyObject* const set = module_attribute("cresset._capture_patches", "set_item");
  cresset_eval_pause();
  PyRef done = PyRef::steal(PyObject_CallFunctionObjArgs(value != nullptr ? set : get, tensor, key, value, nullptr));
  cresset_eval_unpause();
  return done.get() == Py_NotImplemented ? PyRef() : done;
}

}  // namespace

static bool is_container(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object) || PyAnySet_Check(object) ||
         is_deque(object);
}

// A container, and those in it when the call made it. Of one that was there before, read_whole() knows.
void Session::read_deep(PyObject* object, int depth) {
  if (existed(object)) return read_whole(object);
  if (depth > 50 || !is_container(object)) return;
  if (PyDict_Check(object)) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) read_deep(value, depth + 1);
  } else if (PyList_Check(object) || PyTuple_Check(object)) {
    PyObject** items = PySequence_Fast_ITEMS(object);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) read_deep(items[i], depth + 1);
  }
}

// Builtins that look at what they are given from outside, or at an attribute that they tell of.
static bool asks_one_question(PyObject* callable) {
  static PyObject* const builtins[] = {
      module_attribute("builtins", "isinstance"), module_attribute("builtins", "issubclass"),
      module_attribute("builtins", "getattr"), module_attribute("builtins", "hasattr")};
  return std::find(std::begin(builtins), std::end(builtins), callable) != std::end(builtins);
}

// Builtins that put items elsewhere, or count them, without looking into them.
static bool looks_at_items_only(PyObject* callable) {
  if (PyType_Check(callable)) return callable != (PyObject*)&PyUnicode_Type && callable != (PyObject*)&PyBytes_Type;
  static PyObject* const builtins[] = {module_attribute("builtins", "len"), module_attribute("builtins", "iter"),
                                       module_attribute("builtins", "next")};
  return std::find(std::begin(builtins), std::end(builtins), callable) != std::end(builtins) ||
         asks_one_question(callable);
}

// Operators on tensors are done here, so that what follows a break is known to follow it.
CressetAction Session::operate(CressetActivation* activation, const CressetOperator& op, PyObject** result) {
  if (op.kind == CRESSET_OP_BINARY || op.kind == CRESSET_OP_COMPARE)
    if (PyRef value = with_numpy_scalar(op)) return *result = value.release(), CRESSET_RESULT;
  // What is made of containers is made of all that they hold: a + b, a * 2, a | b, f"{a}".
  if (op.kind == CRESSET_OP_BINARY || op.kind == CRESSET_OP_FORMAT) {
    const bool of_text = op.kind == CRESSET_OP_FORMAT || PyUnicode_Check(op.operands[0]);  // "%s" % (a, b)
    for (PyObject* operand : op.operands)
      if (operand != nullptr && is_container(operand)) of_text ? read_deep(operand) : read_whole(operand);
  }
  const bool may_advance = op.kind == CRESSET_OP_UNPACK || op.kind == CRESSET_OP_NEXT || op.kind == CRESSET_OP_ITER ||
                           op.kind == CRESSET_OP_CONTAINS;
  if (!outer_.empty() && may_advance && PyIter_Check(op.operands[0]))
    no_effect_on(op.operands[0], "it advances an iterator from outside");
  const std::optional<Operation::Kind> kind = kind_of(op.kind);
  if (PyObject* inside = existed(op.operands[0]) ? viewed(op.operands[0]) : nullptr) {
    learn(inside);
    if (op.kind != CRESSET_OP_SUBSCRIPT || !PyDict_CheckExact(inside)) return read_whole(inside), CRESSET_RUN;
    PyObject* value = PyDict_GetItemWithError(inside, op.operands[1]);
    if (value == nullptr) PyErr_Clear();
    return read_key(inside, op.operands[1], value), CRESSET_RUN;
  }
  bool tensors = false, foreign = false;
  for (PyObject* operand : op.operands) {
    if (operand == nullptr || is_builtin_operand(operand)) continue;
    const bool is_number = is_symfloat(operand) || is_symint(operand);
    tensors =
        tensors || is_exact_tensor(operand) || is_symfloat(operand) || (op.kind == CRESSET_OP_FORMAT && is_number);
    if (is_number || is_exact_tensor(operand)) continue;
    if (!is_foreign(operand)) return CRESSET_RUN;
    foreign = foreign || is_closed_to_facts(operand);
  }
  if (!kind && foreign) return refuse(std::string("looks into a ") + Py_TYPE(op.operands[0])->tp_name), CRESSET_RUN;
  if (!kind || !(tensors || foreign) || operators_call_python()) return CRESSET_RUN;
  // The evaluator tells of what native operators read and write in containers: those are left to it.
  const bool in_place = op.kind == CRESSET_OP_BINARY && op.operation >= NB_INPLACE_ADD;
  if (in_place && !is_exact_tensor(op.operands[0])) return CRESSET_RUN;
  if (op.kind != CRESSET_OP_FORMAT)
    for (PyObject* operand : op.operands)
      if (operand != nullptr && is_container(operand)) read_deep(operand);
  start(activation, *kind, op.operation);
  in_progress_.operands[0] = op.operands[0];
  in_progress_.operands[1] = op.operands[1];
  const PyObject* looked_into = op.operands[op.operands[1] != nullptr && is_closed_to_facts(op.operands[1]) ? 1 : 0];
  if (foreign) capture_->flush(std::string("an operator that looks into a ") + Py_TYPE(looked_into)->tp_name);
  PyRef value = *kind == Operation::Kind::Subscript ? at_symbol(op.operands[0], op.operands[1], nullptr) : PyRef();
  if (!value && PyErr_Occurred() == nullptr) {
    const Operation operation = in_progress_.kept();
    value = inside_transform() ? run_on_wrappers(*capture_, [&] { return perform(operation); }) : perform(operation);
  }
  in_progress_ = {};
  if (!value) return after_failure(activation), CRESSET_FAIL;
  if (capture_->closed()) maker_.go_on(activation, CRESSET_AFTER, value.get());
  *result = value.release();
  return CRESSET_RESULT;
}

// The operation, done natively, raised what is set now.
void Session::after_failure(CressetActivation* activation) {
  if (!capture_->closed()) return;
  PyRef exception = PendingError().normalized();
  maker_.go_on(activation, CRESSET_AFTER, nullptr, exception.get());
  PyObject* type = Py_NewRef(PyExceptionInstance_Class(exception.get()));
  PyObject* traceback = PyException_GetTraceback(exception.get());
  PyErr_Restore(type, exception.release(), traceback);
}

static bool is_call(const CressetActivation& activation) {
  const int opcode = opcode_in_progress(activation);
  return opcode == CALL || opcode == CALL_FUNCTION_EX;
}

// A Python function that will be evaluated, unless it wants to be called otherwise.
CressetAction Session::before_function(CressetActivation* activation, const CressetCall& call) {
  if (const CompiledFunction* inner = as_compiled_function(call.callable); inner != nullptr && existed(call.callable))
    learn_function(inner->function());
  PyObject* wrapped = cresset_eval_wrapped(call.callable);
  if (wrapped != nullptr && existed(call.callable)) learn_function(wrapped);
  PyObject* callee = wrapped != nullptr ? wrapped : call.callable;
  const CallMode mode = call_mode(callee);
  if (mode == CallMode::Evaluated) return CRESSET_RUN;
  in_progress_ = {};
  if (is_call(*activation)) {  // else the text shows another operation: a property, an operator's method
    start(activation, Operation::Kind::Call, 0);
    in_progress_.call = call;
  }
  if (mode == CallMode::Disabled) {
    if (capture_->locate) capture_->locate(*capture_);
    capture_->flush(why_disabled(callee));
  }
  return CRESSET_NATIVE;
}

static bool uses_up(const CCall& what, const CressetCall& call) {
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites) return true;
  const Py_ssize_t named = call.kwnames != nullptr ? PyTuple_GET_SIZE(call.kwnames) : 0;
  return std::any_of(call.args, call.args + call.nargs + named, [](PyObject* o) { return PyIter_Check(o) != 0; });
}

// The table's answer depends on the function and the type of its self alone: it is asked once for each pair.
CCall Session::classify(const CressetCall& call) {
  PyObject *callable = call.callable, *self = nullptr;
  const void* function = nullptr;
  if (PyCFunction_CheckExact(callable)) {
    self = PyCFunction_GET_SELF(callable);
    function = ((PyCFunctionObject*)callable)->m_ml;
    if (self != nullptr && PyModule_Check(self)) self = nullptr;
  } else if ((Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type) &&
             call.nargs > 0) {
    self = call.args[0];
    function = callable;
  } else if (PyType_Check(callable)) {
    function = callable;
  }
  if (function == nullptr || (self != nullptr && PyType_Check(self)))
    return classify_call(callable, call.args, call.nargs);
  const auto [known, fresh] = classified_.emplace(Pair{function, self != nullptr ? Py_TYPE(self) : nullptr}, CCall{});
  if (fresh) {
    known->second = classify_call(callable, call.args, call.nargs);
    if (!PyCFunction_CheckExact(callable) || self == nullptr)
      keep(PyRef::borrow(callable));  // a bound one keeps its self
    if (self != nullptr) keep(PyRef::borrow((PyObject*)Py_TYPE(self)));
  }
  CCall out = known->second;
  if (out.self != nullptr) out.self = self;
  return out;
}

static bool is_warn(PyObject* callable) {
  static PyObject* const warn = module_attribute("warnings", "warn");
  return callable == warn;
}

// Whether an object that was there before holds what no fact speaks of.
bool Session::is_closed_to_facts(PyObject* object) const {
  if (is_plain_tensor(object) || !existed(object)) return false;
  return is_foreign(object) || (PyIter_Check(object) && !PyGen_CheckExact(object));
}

// Whether C code may look into such an object, or read attributes that it does not tell of.
bool Session::looks_inside(const CressetCall& call) const {
  static PyObject *const is_callable = module_attribute("builtins", "callable"), *const id =
                                                                                     module_attribute("builtins", "id");
  if (asks_one_question(call.callable) || call.callable == is_callable || call.callable == id ||
      call.callable == (PyObject*)&PyType_Type)
    return false;
  static PyObject* const getter = module_attribute("operator", "attrgetter");
  static PyObject* const caller = module_attribute("operator", "methodcaller");
  const auto asks = [](PyObject* object) {
    return (PyObject*)Py_TYPE(object) == getter || (PyObject*)Py_TYPE(object) == caller;
  };
  const Py_ssize_t count = call.nargs + (call.kwnames != nullptr ? PyTuple_GET_SIZE(call.kwnames) : 0);
  const auto any = [&](auto&& is) { return std::any_of(call.args, call.args + count, is); };
  if (asks(call.callable)) return any([&](PyObject* o) { return existed(o) && !is_plain_tensor(o); });
  if (PyCFunction_Check(call.callable)) {
    PyObject* self = PyCFunction_GET_SELF(call.callable);
    if (self != nullptr && !PyModule_Check(self) && is_closed_to_facts(self)) return true;
  }
  return is_closed_to_facts(call.callable) || any([&](PyObject* o) { return asks(o) || is_closed_to_facts(o); });
}

// A function of functools.lru_cache that was there before: what it keeps is a fact. A value that it does not keep yet
// is made as it would be without us, for whoever is first.
CressetAction Session::call_cached(const CressetCall& call, PyObject** result) {
  static PyObject* const type = module_attribute("functools", "_lru_cache_wrapper");
  PyObject* function = PyMethod_Check(call.callable) ? PyMethod_GET_FUNCTION(call.callable) : call.callable;
  if ((PyObject*)Py_TYPE(function) != type || !existed(function)) return CRESSET_RUN;
  std::vector<PyObject*> args(call.args, call.args + call.nargs);
  if (function != call.callable) args.insert(args.begin(), PyMethod_GET_SELF(call.callable));
  const bool plain = call.kwnames == nullptr && std::all_of(args.begin(), args.end(), [&](PyObject* arg) {
                       return is_constant_value(arg) || (existed(arg) && !is_tensor(arg));
                     });
  if (!plain) return CRESSET_NATIVE;
  PyRef value;
  {
    const bridge::Capture::StepAside outside;
    value = PyRef::steal(PyObject_Vectorcall(function, args.data(), args.size(), nullptr));
  }
  if (!value) return refuse("a cached function raised"), CRESSET_FAIL;
  const FunctionCache kept = function_cache(function, args.data(), static_cast<Py_ssize_t>(args.size()));
  PyObject* entry = kept.cache ? PyDict_GetItemWithError(kept.cache.get(), kept.key.get()) : nullptr;
  if (entry == nullptr) PyErr_Clear(), refuse("calls a cached function that keeps nothing");
  if (entry != nullptr) {
    learn(kept.cache.get());
    read_key(kept.cache.get(), kept.key.get(), entry);
  }
  learn(value.get());
  *result = value.release();
  return CRESSET_RESULT;
}

void Session::read_context_variable(PyObject* variable, bool will_change) {
  PyObject* now = nullptr;
  if (PyContextVar_Get(variable, nullptr, &now) < 0) return PyErr_Clear();
  const PyRef value = PyRef::steal(now);
  if (variables_before_.count(variable) != 0) return;  // it is what this piece has set it to
  if (first(variable, Py_None)) facts_->member(variable, Py_None, value.get());
  learn(value.get());
  if (will_change) variables_before_.emplace(variable, value);
}

// Classes that are called, or handed to C code that may call them, make instances.
void Session::note_classes(const CressetCall& call) {
  const auto note = [&](PyObject* object) {
    if (PyType_Check(object) && existed(object)) facts_->classes().makes_instances((PyTypeObject*)object);
  };
  note(call.callable);
  if (call.evaluated || asks_one_question(call.callable)) return;
  const Py_ssize_t named = call.kwnames != nullptr ? PyTuple_GET_SIZE(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < call.nargs + named; ++i) note(call.args[i]);
}

CressetAction Session::before_call(CressetActivation* activation, const CressetCall& call, PyObject** result) {
  note_classes(call);
  if (PyObject* instead = call.evaluated ? nullptr : equivalent_of(*activation, call))
    return learn_function(instead), *result = instead, CRESSET_INSTEAD;
  if (const CressetAction answered = call_cached(call, result); answered == CRESSET_NATIVE) {
    start(activation, Operation::Kind::Call, 0);
    in_progress_.call = call;
    capture_->flush("a call of a cached function with arguments that vary");
    return CRESSET_RUN;
  } else if (answered != CRESSET_RUN) {
    return answered;
  }
  if (call.evaluated && asks_to_do_otherwise(*activation, call)) return *result = Py_NewRef(Py_False), CRESSET_RESULT;
  if (call.evaluated) return before_function(activation, call);
  if (role_of(activation->code) != CodeRole::Replacement) {
    if (const CressetAction answered = ask_type(call, result); answered != CRESSET_RUN) return answered;
    if (const CressetAction answered = make_number(activation, call, result); answered != CRESSET_RUN) return answered;
  }
  if (is_warn(call.callable)) {
    if (!outer_.empty()) fail_part("it warns");
    return log_warning(call);
  }
  start(activation, Operation::Kind::Call, 0);
  in_progress_.call = call;
  CCall what = looks_inside(call) ? CCall{CEffect::Outside} : classify(call);
  if (what.effect == CEffect::Outside && differentiates_own_tensors(what, call)) what.effect = CEffect::Pure;
  if (what.effect == CEffect::Outside && is_lock_of_cached_property(*activation, what)) what.effect = CEffect::Pure;
  if (what.self != nullptr && PyContextVar_CheckExact(what.self) && existed(what.self))
    read_context_variable(what.self, std::string_view(what.name) != "get");
  if (!outer_.empty()) no_call_in_part(what, call);
  if (what.effect == CEffect::Pure)
    if (PyRef value = with_plain_bools(call)) return in_progress_ = {}, *result = value.release(), CRESSET_RESULT;
  if (what.effect == CEffect::Pure && is_operator_on_wrappers(what.name, call)) {
    PyRef value = run_on_wrappers(*capture_, [&] {
      return PyRef::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
    });
    in_progress_ = {};
    return value ? (*result = value.release(), CRESSET_RESULT) : CRESSET_FAIL;
  }
  if (what.effect == CEffect::Pure && reads_memory_of_outsider(what)) {
    capture_->flush("the memory of a tensor is asked for");
    return CRESSET_RUN;
  }
  if (what.effect == CEffect::Pure) {  // a function of torch's: lists of sizes, of tensors, of numbers
    const Py_ssize_t named = call.kwnames != nullptr ? PyTuple_GET_SIZE(call.kwnames) : 0;
    for (Py_ssize_t i = 0; i < call.nargs + named; ++i) read_deep(call.args[i]);
    return in_progress_.uses_up = uses_up(what, call), CRESSET_RUN;
  }
  if (what.effect == CEffect::Outside) {
    capture_->flush("a call of " + describe_callable(call.callable));
    return CRESSET_RUN;
  }
  const std::string_view name = what.name;
  const bool one_key = what.self != nullptr && PyDict_Check(what.self) &&
                       (name == "get" || name == "__getitem__" || name == "__contains__");
  if (what.effect != CEffect::Writes && what.self != nullptr && !one_key) read_whole(what.self);
  const size_t named = call.kwnames != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(call.kwnames)) : 0;
  const bool deep = what.effect == CEffect::Reads && !looks_at_items_only(call.callable);
  for (size_t i = what.first; i < static_cast<size_t>(call.nargs) + named; ++i)
    deep ? read_deep(call.args[i]) : read_whole(call.args[i]);
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites) will_write(what.self);
  in_progress_.uses_up = uses_up(what, call);
  return CRESSET_RUN;
}

// warnings.warn() is done as it is, unseen; later calls warn of the same place, as often as the filters want then.
CressetAction Session::log_warning(const CressetCall& call) {
  in_progress_ = {};
  const PyRef helpers = import_module("cresset._capture_patches");
  const PyRef place = checked(PyObject_GetAttrString(helpers.get(), "place_of_warning"));
  const PyRef found =
      PyRef::steal(PyObject_Vectorcall(place.get(), call.args, static_cast<size_t>(call.nargs), call.kwnames));
  if (!found) return PyErr_Clear(), CRESSET_NATIVE;  // the call itself says what is wrong with it
  const PyRef again = checked(PyObject_GetAttrString(helpers.get(), "warn_again"));
  PyObject* registry = PyTuple_GET_ITEM(found.get(), 0);
  learn(registry);
  Write write{Write::Kind::Method, PyRef::borrow(registry), again, {}, {}, 0};
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(found.get()); ++i)
    write.values.push_back(PyRef::borrow(PyTuple_GET_ITEM(found.get(), i)));
  add_write(std::move(write));
  return CRESSET_NATIVE;
}

void Session::after_call(CressetActivation* activation, const CressetCall& call, PyObject* result,
                         PyObject* exception) {
  const bool mine = std::exchange(in_progress_, {}).activation == activation;
  if (open()) return note_call(call, result);
  if (mine && (result != nullptr || exception != nullptr)) maker_.go_on(activation, CRESSET_AFTER, result, exception);
}

static bool asks_abstract_class(const CressetCall& call) {
  static PyObject* const of_instance = module_attribute("_abc", "_abc_instancecheck");
  static PyObject* const of_class = module_attribute("_abc", "_abc_subclasscheck");
  return (call.callable == of_instance || call.callable == of_class) && call.nargs > 0 && PyType_Check(call.args[0]);
}

void Session::note_call(const CressetCall& call, PyObject* result) {
  const CCall what = classify(call);
  const size_t count = static_cast<size_t>(call.nargs);
  const std::string_view name = what.name;
  if (asks_abstract_class(call) && existed(call.args[0])) facts_->classes().abstract((PyTypeObject*)call.args[0]);
  if (PyWeakref_CheckRefExact(call.callable) && existed(call.callable)) learn(result);
  if (what.effect == CEffect::Pure || what.effect == CEffect::Outside) return;
  if (what.effect == CEffect::GetsAttribute) {
    PyObject* owner = what.self != nullptr ? what.self : call.args[0];
    const size_t at = what.self != nullptr ? what.first : 1;
    if (at < count) read_attribute(owner, call.args[at], result);
    return;
  }
  if (result == nullptr) return;
  if (what.effect == CEffect::SetsAttribute) {
    PyObject* owner = what.self != nullptr ? what.self : call.args[0];
    const size_t at = what.self != nullptr ? what.first : 1;
    static PyObject* const setter = PyUnicode_InternFromString("__setattr__");
    // A setter in Python was evaluated, and its own writes are known.
    if (what.self == nullptr && PyFunction_Check(_PyType_Lookup(Py_TYPE(owner), setter))) return;
    if (at < count) log_attribute(owner, call.args[at], at + 1 < count ? call.args[at + 1] : nullptr);
    return;
  }
  if (what.self == nullptr || !existed(what.self)) return;
  if (PyDict_Check(what.self) && (name == "get" || name == "__getitem__" || name == "__contains__") &&
      what.first < count) {
    PyObject* key = call.args[what.first];
    PyObject* value = PyDict_GetItemWithError(what.self, key);
    if (value == nullptr) PyErr_Clear();
    return read_key(what.self, key, value);
  }
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites) log_method(what, call);
  const bool makes = name == "__getitem__" && what.first < count && PySlice_Check(call.args[what.first]);
  if (name == "pop" || name == "popleft" || name == "setdefault" || name == "popitem" ||
      (name == "__getitem__" && !makes))
    learn(result);
}

// Others take what an iterator gives.
static bool stores_what_it_is_given(PyObject* method) {
  static const std::unordered_set<std::string_view> kNames = {"append",     "appendleft",  "insert", "add",
                                                              "setdefault", "__setitem__", "pop"};
  return kNames.count(utf8(method)) != 0;
}

// The C method is called again at replay, not what a subclass made of it.
void Session::log_method(const CCall& what, const CressetCall& call) {
  PyObject* method = nullptr;
  const PyRef key = checked(PyUnicode_FromString(what.name));
  PyObject* bases = Py_TYPE(what.self)->tp_mro;
  for (Py_ssize_t i = 0; method == nullptr && i < PyTuple_GET_SIZE(bases); ++i) {
    auto* base = (PyTypeObject*)PyTuple_GET_ITEM(bases, i);
    PyObject* found = PyDict_GetItemWithError(type_dict(base), key.get());
    if (found != nullptr && (Py_TYPE(found) == &PyMethodDescr_Type || Py_TYPE(found) == &PyWrapperDescr_Type))
      method = found;
  }
  if (method == nullptr) return refuse(std::string("calls ") + what.name);
  Write write{Write::Kind::Method, PyRef::borrow(what.self), PyRef::borrow(method), {}, PyRef::borrow(call.kwnames), 0};
  const size_t count = static_cast<size_t>(call.nargs) +
                       (call.kwnames != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(call.kwnames)) : 0);
  for (size_t i = what.first; i < count; ++i) {
    // What is left of an iterator says nothing of what it gave.
    if (PyIter_Check(call.args[i]) && !stores_what_it_is_given(key.get())) {
      without_symbols(PyRef::borrow(what.self));  // no write speaks of them
      return refuse(std::string("calls ") + what.name + " with an iterator");
    }
    write.values.push_back(PyRef::borrow(call.args[i]));
  }
  add_write(std::move(write));
}

// Its __next__ was evaluated.
static bool advances_in_python(PyObject* iterator) {
  static PyObject* const name = PyUnicode_InternFromString("__next__");
  PyObject* next = is_heap_type(Py_TYPE(iterator)) ? _PyType_Lookup(Py_TYPE(iterator), name) : nullptr;
  return next != nullptr && PyFunction_Check(next);
}

// The table. C++ exceptions stop here.
struct SessionHooks {
  // Nothing is told between pieces, unless it is `always`.
  template <class F>
  static int guarded(void* session, F&& f, bool always = false) {
    try {
      if (always || static_cast<Session*>(session)->open()) f(*static_cast<Session*>(session));
      return 0;
    } catch (const PythonError&) {
      return -1;
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
      return -1;
    }
  }

  static int read_name(void* s, CressetActivation* a, CressetNamespace where, PyObject* mapping, PyObject* name,
                       PyObject* value) {
    return guarded(s, [&](Session& session) {
      PyObject* globals = PyFunction_Check(a->function) ? PyFunction_GET_GLOBALS(a->function) : nullptr;
      if (where == CRESSET_IN_LOCALS || globals == nullptr) return;
      session.read_key(globals, name, where == CRESSET_IN_GLOBALS ? value : nullptr);
      if (where == CRESSET_IN_BUILTINS && PyDict_Check(mapping)) session.read_key(mapping, name, value);
    });
  }
  static int read_cell(void* s, CressetActivation*, PyObject* cell, int, PyObject* value) {
    return guarded(s, [&](Session& session) {
      if (!session.existed(cell) || (!session.is_whole(cell) && session.refuse_generator(value))) return;
      session.learn(value);
      if (session.mark_whole(cell)) session.facts_->cell(cell, value);
    });
  }
  static int read_attribute(void* s, CressetActivation*, const CressetAttributeRead* read) {
    return guarded(s, [&](Session& session) { session.read_attribute(*read); });
  }
  static int read_item(void* s, CressetActivation*, PyObject* container, PyObject* key, PyObject* value) {
    return guarded(s, [&](Session& session) { session.read_item(container, key, value); });
  }
  static int read_contents(void* s, CressetActivation*, PyObject* container) {
    return guarded(s, [&](Session& session) { session.read_whole(container); });
  }
  static int read_length(void* s, CressetActivation*, PyObject* container, Py_ssize_t) {
    return guarded(s, [&](Session& session) { session.read_whole(container); });
  }
  static int read_iterator(void* s, CressetActivation*, PyObject* iterable, PyObject*) {
    return guarded(s, [&](Session& session) {
      if (PyIter_Check(iterable)) session.no_effect_on(iterable, "it advances an iterator from outside");
      session.read_whole(iterable);
    });
  }
  static int read_contains(void* s, CressetActivation*, PyObject* container, PyObject* item, int) {
    return guarded(s, [&](Session& session) {
      if (!session.existed(container)) return;
      if (!PyDict_Check(container)) return session.read_whole(container);
      PyObject* value = PyDict_GetItemWithError(container, item);
      if (value == nullptr) PyErr_Clear();
      session.read_key(container, item, value);
    });
  }
  static int read_compare(void* s, CressetActivation*, PyObject* left, PyObject* right, int, PyObject*) {
    return guarded(s, [&](Session& session) {
      session.read_whole(left);
      session.read_whole(right);
    });
  }
  static int read_default(void* s, CressetActivation*, PyObject* function, Py_ssize_t, PyObject* keyword,
                          PyObject* value) {
    return guarded(s, [&](Session& session) {
      if (!session.existed(function)) return;
      PyObject* by_keyword = keyword != nullptr ? ((PyFunctionObject*)function)->func_kwdefaults : nullptr;
      if (by_keyword != nullptr) return session.read_key(by_keyword, keyword, value);
      session.learn(value);
    });
  }
  static int before_write(void* s, CressetActivation*, const CressetWrite* write) {
    bool done = false;
    const int told = guarded(s, [&](Session& session) {
      session.before_write(*write);
      if (write->kind != CRESSET_WRITE_ITEM || write->value == nullptr) return;
      done = static_cast<bool>(at_symbol(write->owner, write->key, write->value));
      if (!done && PyErr_Occurred() != nullptr) throw PythonError{};
    });
    return told < 0 ? told : done;
  }
  static int after_write(void* s, CressetActivation*, const CressetWrite* write) {
    return guarded(s, [&](Session& session) { session.after_write(*write); });
  }
  static CressetAction before_call(void* s, CressetActivation* activation, const CressetCall* call, PyObject** result) {
    CressetAction action = CRESSET_RUN;
    const int done = guarded(s, [&](Session& session) { action = session.before_call(activation, *call, result); });
    return done < 0 ? CRESSET_FAIL : action;
  }
  static int after_call(void* s, CressetActivation* activation, const CressetCall* call, PyObject* result,
                        PyObject* exception) {
    return guarded(
        s, [&](Session& session) { session.after_call(activation, *call, result, exception); }, /*always=*/true);
  }
  static int truth(void* s, CressetActivation* activation, PyObject* value) {
    int answer = CRESSET_TRUTH_RUN;
    const int done = guarded(s, [&](Session& session) { answer = session.truth(activation, value); });
    return done < 0 ? done : answer;
  }
  static CressetAction before_operator(void* s, CressetActivation* activation, const CressetOperator* op,
                                       PyObject** result) {
    CressetAction action = CRESSET_RUN;
    const int done = guarded(s, [&](Session& session) { action = session.operate(activation, *op, result); });
    return done < 0 ? CRESSET_FAIL : action;
  }
  static int read_next(void* s, CressetActivation*, PyObject* iterator, PyObject*) {
    return guarded(s, [&](Session& session) {
      if (session.existed(iterator) && !advances_in_python(iterator))
        session.refuse("advances an iterator that was there before");
    });
  }
  static CressetAction enter_frame(void* s, CressetActivation* activation) {
    CressetAction action = CRESSET_RUN;
    const auto enter = [&](Session& session) { action = session.enter(*activation); };
    return guarded(s, enter, /*always=*/true) < 0 ? CRESSET_FAIL : action;
  }
};

void Session::learn_function(PyObject* function) {
  learn(function);
  if (!PyMethod_Check(function)) return;
  learn(PyMethod_GET_SELF(function));
  learn(PyMethod_GET_FUNCTION(function));
}

PyRef Session::call(PyObject* function, PyObject* args, PyObject* kwargs) {
  learn_function(function);
  if (PyMethod_Check(function)) {
    facts_->name(PyMethod_GET_SELF(function), "self");
  }
  return watched([&] { return PyRef::steal(cresset_eval_call(function, args, kwargs)); });
}

PyRef Session::resume(const Place& place, PyRef contents, PyObject* value, PyObject* exception) {
  return watched([&] { return frontend::resume(place, std::move(contents), value, exception, /*natively=*/false); });
}

namespace {
thread_local Session* current_session = nullptr;
}
Session* Session::current() { return current_session; }

PyRef Session::watched(const std::function<PyRef()>& run) {
  CressetEvalHooks hooks{};
  hooks.session = this;
  hooks.read_name = &SessionHooks::read_name;
  hooks.read_cell = &SessionHooks::read_cell;
  hooks.read_attribute = &SessionHooks::read_attribute;
  hooks.read_item = &SessionHooks::read_item;
  hooks.read_contents = &SessionHooks::read_contents;
  hooks.read_length = &SessionHooks::read_length;
  hooks.read_iterator = &SessionHooks::read_iterator;
  hooks.read_contains = &SessionHooks::read_contains;
  hooks.read_compare = &SessionHooks::read_compare;
  hooks.read_default = &SessionHooks::read_default;
  hooks.read_next = &SessionHooks::read_next;
  hooks.before_write = &SessionHooks::before_write;
  hooks.after_write = &SessionHooks::after_write;
  hooks.truth = &SessionHooks::truth;
  hooks.before_operator = &SessionHooks::before_operator;
  hooks.before_call = &SessionHooks::before_call;
  hooks.after_call = &SessionHooks::after_call;
  hooks.enter_frame = &SessionHooks::enter_frame;
  if (cresset_eval_begin(&hooks) < 0) throw PythonError{};
  Session* const around = std::exchange(current_session, this);
  PyRef result = run();
  current_session = around;
  cresset_eval_end();
  return result;
}

}  // namespace cresset::frontend
