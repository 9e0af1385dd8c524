// Calls of the program: what C functions read and write, which of them end the piece, which are done otherwise.
#include <opcode.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "bridge/symbolic_batching.h"
#include "frontend/compiled_function.h"
#include "frontend/context_variables.h"
#include "frontend/control.h"
#include "frontend/dict_keys.h"
#include "frontend/equivalents.h"
#include "frontend/eval/binders.h"
#include "frontend/eval/bytecode.h"
#include "frontend/eval/changers.h"
#include "frontend/foreign.h"
#include "frontend/grown.h"
#include "frontend/items.h"
#include "frontend/left_to_autograd.h"
#include "frontend/left_whole.h"
#include "frontend/of_type.h"
#include "frontend/other_tracers.h"
#include "frontend/outsiders.h"
#include "frontend/pins.h"
#include "frontend/plain_operators.h"
#include "frontend/py_objects.h"
#include "frontend/session.h"
#include "frontend/set_aside.h"
#include "frontend/settings.h"
#include "frontend/special_calls.h"
#include "frontend/special_cases.h"
#include "frontend/substitutes.h"
#include "frontend/symbols.h"
#include "frontend/texts.h"
#include "frontend/transforms.h"
#include "frontend/value_objects.h"

namespace cresset::frontend {

// Builtins that look at what they are given from outside, or at an attribute that they tell of.
static bool asks_one_question(PyObject* callable) {
  static PyObject* const builtins[] = {
      module_attribute("builtins", "isinstance"), module_attribute("builtins", "issubclass"),
      module_attribute("builtins", "getattr"), module_attribute("builtins", "hasattr")};
  return is_among(builtins, callable);
}

// Builtins that put items elsewhere, or count them, without looking into them.
static bool looks_at_items_only(PyObject* callable) {
  if (PyType_Check(callable)) return callable != (PyObject*)&PyUnicode_Type && callable != (PyObject*)&PyBytes_Type;
  static PyObject* const builtins[] = {module_attribute("builtins", "len"), module_attribute("builtins", "iter"),
                                       module_attribute("builtins", "next")};
  return is_among(builtins, callable) || asks_one_question(callable);
}

static bool is_call(const CressetActivation& activation) {
  return cresset_is_call(opcode_in_progress(activation)) != 0;
}

// torch.compile's own wrappers hang their frame evaluator in around what they call. It would take the program's frames
// from us, and there is none: None is what was there before.
static bool installs_frame_evaluator(PyObject* callable) {
  if (!is_c_function(callable)) return false;
  static PyObject* const install = private_attribute("torch._C._dynamo.eval_frame", "set_eval_frame");
  return callable == install;
}

// The call runs Python code that nobody evaluates, and that may look at the thread's dispatch keys, as torch's tracers
// do: it has those of the program. The next piece brings the capture's keys back. Inside of a transform, levels of
// autograd hold symbolic sizes, which operators under the capture's key alone take.
static void end_before_native_call(bridge::Capture& capture, const std::string& why) {
  capture.flush(why);
  if (capture.closed() && !inside_transform()) bridge::Capture::leave_dispatch_state();
}

// A Python function that will be evaluated, unless it wants to be called otherwise.
CressetAction Session::before_function(CressetActivation* activation, const CressetCall& call) {
  if (const CompiledFunction* inner = as_compiled_function(call.callable); inner != nullptr && existed(call.callable))
    learn_function(inner->function());
  PyObject* wrapped = cresset_eval_wrapped(call.callable);
  if (wrapped != nullptr && existed(call.callable)) learn_function(wrapped);
  PyObject* callee = wrapped != nullptr ? wrapped : call.callable;
  const bool by_autograd = outer_.empty() && brings_function_left_to_autograd(callee, call);
  const bool by_tracer = is_tracer(callee, call);
  const CallMode mode = by_autograd || by_tracer ? CallMode::Disabled : call_mode(callee);
  if (mode == CallMode::Evaluated) return CRESSET_RUN;
  in_progress_.end();
  if (is_call(*activation)) {  // else the text shows another operation: a property, an operator's method
    start(activation, Operation::Kind::Call, 0);
    in_progress_.call = call;
  }
  if (mode == CallMode::Disabled) {
    capture_->set_location();
    end_before_native_call(*capture_, by_tracer ? kTraces : by_autograd ? kLeftToAutograd : why_disabled(callee));
  }
  return CRESSET_NATIVE;
}

static bool uses_up(const CCall& what, const CressetCall& call) {
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites) return true;
  const Py_ssize_t named = cresset_count_named(&call);
  return any_among(call.args, call.args + call.nargs + named,
                   [](PyObject* o) { return Py_TYPE(o)->tp_iternext != nullptr && PyIter_Check(o) != 0; });
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
  } else if (is_method_wrapper(callable)) {
    self = take_apart_wrapper(callable).self;
    function = (const char*)take_apart_wrapper(callable).descriptor + 1;  // no self among its arguments
  } else if (PyType_Check(callable)) {
    function = callable;
  }
  const bool of_class = self != nullptr && PyType_Check(self);  // torch's functions are static methods of a class
  if (function == nullptr || (of_class && !PyCFunction_CheckExact(callable)))
    return classify_call(callable, call.args, call.nargs);
  const AddressPair key =
      of_class ? AddressPair{self, function} : AddressPair{function, self != nullptr ? Py_TYPE(self) : nullptr};
  const CCall* known = classified_.find(key);
  if (known == nullptr) {
    const CCall what = classify_call(callable, call.args, call.nargs);
    known = &(classified_[key] = what);
    // A bound one would keep its self.
    if (is_method_wrapper(callable))
      keep(PyRef::borrow(take_apart_wrapper(callable).descriptor));
    else if (!PyCFunction_CheckExact(callable) || self == nullptr || of_class)
      keep(PyRef::borrow(callable));
    if (self != nullptr) keep(PyRef::borrow((PyObject*)Py_TYPE(self)));
  }
  if (known->by_arguments) return classify_call(callable, call.args, call.nargs);
  CCall out = *known;
  if (out.self != nullptr) out.self = self;
  return out;
}

// Whether a container holds such an object that was there before.
bool Session::holds_foreign(PyObject* container) const {
  return holds_any(container, [&](PyObject* item) { return is_opaque(item) || (is_closed(item) && existed(item)); });
}

// Whether an object that was there before holds what no fact speaks of.
bool Session::is_closed_to_facts(PyObject* object) const {
  if (!opaque_.empty() && is_opaque(object)) return true;  // bytes, too, which are not known by their address
  if (is_plain_tensor(object) || !existed(object)) return false;
  return is_closed(object) || (PyIter_Check(object) && !PyGen_CheckExact(object));
}

// list.append and its kin do not look into a list that pieces must not look into.
static bool only_adds_to_grown(const CressetCall& call) {
  const CCall what = classify_call(call.callable, call.args, call.nargs);
  return what.effect == CEffect::Writes && what.self != nullptr && has_grown(what.self);
}

// A call of such a function runs none of its code yet.
static bool makes_generator(PyObject* callable) {
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  constexpr int kKinds = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  return PyFunction_Check(callable) && (((PyCodeObject*)PyFunction_GET_CODE(callable))->co_flags & kKinds) != 0;
}

// Whether C code may look into such an object, or read attributes that it does not tell of.
bool Session::looks_inside(const CressetCall& call) const {
  if (makes_generator(call.callable)) return false;
  static const struct {
    PyObject* is_callable = module_attribute("builtins", "callable");
    PyObject* id = module_attribute("builtins", "id");
    PyObject* has = module_attribute("builtins", "hasattr");
    PyObject* get = module_attribute("builtins", "getattr");
    PyObject* getter = module_attribute("operator", "attrgetter");
    PyObject* caller = module_attribute("operator", "methodcaller");
  } known;
  if ((call.callable == known.has || call.callable == known.get) && call.nargs > 0) {
    if (is_opaque(call.args[0])) return true;
    if (call.nargs > 1 && PyUnicode_Check(call.args[1]) &&
        (is_of_this_call(call.args[0], call.args[1]) || is_data_of_other(call.args[0], call.args[1])))
      return true;
  }
  if (asks_one_question(call.callable) || call.callable == known.is_callable || call.callable == known.id ||
      call.callable == (PyObject*)&PyType_Type)
    return false;
  const auto asks = [](PyObject* object) {
    return (PyObject*)Py_TYPE(object) == known.getter || (PyObject*)Py_TYPE(object) == known.caller;
  };
  const Py_ssize_t count = cresset_count_arguments(&call);
  const auto any = [&](auto&& is) { return any_among(call.args, call.args + count, is); };
  if (asks(call.callable)) return any([&](PyObject* o) { return existed(o) && !is_plain_tensor(o); });
  // What most calls are given holds nothing, and is none of those objects.
  const auto is_plain = [](PyObject* o) {
    return is_plain_tensor(o) || PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyBool_Check(o) || o == Py_None ||
           PyFloat_CheckExact(o) || Py_IS_TYPE(o, &PyFunction_Type);
  };
  bool holders = false;
  const auto is_value = [&](PyObject* o) {
    if (PyDict_CheckExact(o) || PyList_CheckExact(o)) return holders = true;
    if (!PyTuple_CheckExact(o)) return is_plain(o);
    PyObject** const items = PySequence_Fast_ITEMS(o);
    return all_among(items, items + PyTuple_GET_SIZE(o), is_plain);
  };
  if (opaque_.empty() && !any_grown() && all_among(call.args, call.args + count, is_value) &&
      !is_method_wrapper(call.callable) && special_call(call.callable) == kOrdinaryCall &&
      (!holders || hands_items_on(call.callable))) {
    PyObject* const self = is_c_function(call.callable) ? PyCFunction_GET_SELF(call.callable) : nullptr;
    if (self == nullptr || PyModule_Check(self) || !is_closed_to_facts(self)) return false;
  }
  if (any_grown() && only_adds_to_grown(call)) return false;
  if (is_c_function(call.callable)) {
    PyObject* self = PyCFunction_GET_SELF(call.callable);
    if (self != nullptr && !PyModule_Check(self) && is_closed_to_facts(self)) return true;
  }
  if (PyType_Check(call.callable) && makes_foreign((PyTypeObject*)call.callable)) return true;
  if (enters_inference_apart(call.callable)) return true;
  if (PyMethod_Check(call.callable) && !PyFunction_Check(PyMethod_GET_FUNCTION(call.callable)) &&
      is_closed_to_facts(PyMethod_GET_SELF(call.callable)))
    return true;
  if (is_method_wrapper(call.callable) && is_closed_to_facts(take_apart_wrapper(call.callable).self)) return true;
  const auto is_closed = [&](PyObject* o) { return is_closed_to_facts(o); };
  if (is_closed(call.callable) || any([&](PyObject* o) { return asks(o) || is_closed(o); })) return true;
  return !hands_items_on(call.callable) && any([&](PyObject* o) { return holds_foreign(o); });
}

// Classes that are called, or handed to C code that may call them, make instances.
void Session::note_classes(const CressetCall& call) {
  const auto note = [&](PyObject* object) {
    if (PyType_Check(object) && existed(object)) facts_->classes().makes_instances((PyTypeObject*)object);
  };
  note(call.callable);
  if (call.evaluated) return;
  PyObject* const* const end = call.args + cresset_count_arguments(&call);
  PyObject* const* first = call.args;
  while (first != end && PyType_Check(*first) == 0) ++first;
  if (first == end || asks_one_question(call.callable)) return;
  for (; first != end; ++first) note(*first);
}

static bool takes_grown(const Session& session, const CressetCall& call) {
  const auto is_closed = [&](PyObject* o) { return has_grown(o) && session.existed(o); };
  return any_grown() && any_among(call.args, call.args + call.nargs, is_closed);
}

// A generator from outside is used up as a whole; but what is iterated over at once takes one item after another.
static bool takes_outsider(const CressetCall& call) {
  if (call.evaluated) return false;
  const bool is_iterator = call.callable == (PyObject*)&PyEnum_Type || call.callable == (PyObject*)&PyMap_Type ||
                           call.callable == (PyObject*)&PyFilter_Type || call.callable == (PyObject*)&PyZip_Type;
  return !is_iterator && any_among(call.args, call.args + call.nargs, is_outsider);
}

// What is evaluated in the place of a C function, with the same arguments.
static PyRef called_instead(const Session& session, const CressetActivation& activation, const CressetCall& call) {
  if (PyRef instead = substitute_of(activation, call)) return instead;
  if (takes_grown(session, call) || takes_outsider(call) || session.arrays().makes_text(call)) return {};  // as a whole
  if (PyObject* source = source_of_script(call.callable)) return PyRef::borrow(source);
  if (call.evaluated) return {};
  if (PyObject* instead = equivalent_of(activation, call)) return PyRef::borrow(instead);
  if (PyRef instead = symbolic_form_of(activation, call)) return instead;
  if (PyObject* instead = stand_in_of(activation, call)) return PyRef::borrow(instead);
  static PyObject* const next = module_attribute("builtins", "next");
  if (call.callable == next && call.nargs == 1 && call.kwnames == nullptr && !session.existed(call.args[0]))
    if (PyObject* instead = next_item_of(call.args[0])) return PyRef::borrow(instead);
  return maker_of_instance(call);
}

// Of what ends the piece where it is called.
static std::string text_of(const CressetCall& call) {
  static PyObject* const assign = module_attribute("cresset._C", "_assign");
  if (call.callable != assign || call.nargs != 3) return "a call of " + describe_callable(call.callable);
  return std::string("an assignment to the .") + utf8(call.args[1]) + " of a tensor";
}

// What is put into a set in which it is not, where asking runs no code of the program's.
static PyObject* new_item(const CCall& what, const CressetCall& call) {
  if (what.self == nullptr || !PySet_Check(what.self) || std::string_view(what.name) != "add") return nullptr;
  PyObject* const item = what.first < static_cast<size_t>(call.nargs) ? call.args[what.first] : nullptr;
  const bool by_identity = item != nullptr && !is_tensor(item) && is_equal_by_identity(item);
  if (item == nullptr || (!is_constant_value(item) && !by_identity)) return nullptr;
  return PySet_Contains(what.self, item) == 0 ? item : nullptr;
}

// Of a dictionary. *key: where the call may write, too; what only reads tells of its key itself.
static bool asks_for_one_key(const CCall& what, const CressetCall& call, PyObject** key) {
  if (what.self == nullptr || !PyDict_Check(what.self)) return false;
  const std::string_view name = what.name;
  if (name == "get" || name == "__getitem__" || name == "__contains__") return true;
  if (name != "setdefault" && name != "pop") return false;
  if (what.first >= static_cast<size_t>(call.nargs) || !is_constant_value(call.args[what.first])) return false;
  return *key = call.args[what.first], true;
}

// Who called torch.autograd's functions in Python, which the engine is run by.
static const CressetActivation& user_of_autograd(const CressetActivation& activation) {
  static PyObject* const package = PyUnicode_InternFromString("torch.autograd");
  const auto is_autograds = [](const CressetActivation& a) {
    PyObject* const module = PyFunction_Check(a.function) ? ((PyFunctionObject*)a.function)->func_module : nullptr;
    return module != nullptr && PyUnicode_Check(module) &&
           PyUnicode_Tailmatch(module, package, 0, PY_SSIZE_T_MAX, -1) == 1;
  };
  const CressetActivation* user = &activation;
  while (user->caller != nullptr && is_autograds(*user)) user = user->caller;
  return *user;
}

// What is an effect of its kind, but of this call's on its own tensors.
static bool stays_within(const CressetActivation& activation, const CCall& what, const CressetCall& call) {
  if (is_hook_of_own_node(what) || is_lock_of_cached_property(activation, what)) return true;
  if (!differentiates_own_tensors(what, call)) return false;
  const std::string_view name = what.name;
  if (name == "retain_grad") return !is_for_others(UseOfAutograd::Retains, activation.code);
  if (name != "run_backward" || !at::GradMode::is_enabled()) return true;
  return !is_for_others(UseOfAutograd::Frees, user_of_autograd(activation).code);
}

// Natively, what it calls included.
CressetAction Session::call_whole(CressetActivation* activation, const CressetCall& call) {
  if (existed(call.callable)) learn_function(call.callable);
  start(activation, Operation::Kind::Call, 0);
  in_progress_.call = call;
  capture_->set_location();
  return end_before_native_call(*capture_, kLeftWhole), CRESSET_NATIVE;
}

// The module that a caller's function is of, by its depth, as typing and namedtuple ask for it.
static PyRef module_of_frame(const CressetActivation& activation, const CressetCall& call) {
  static PyObject* const get_name = [] {
    PyObject* const found = PySys_GetObject("_getframemodulename");  // CPython 3.12 and up
    return Py_XNewRef(found);
  }();
  if (get_name == nullptr || call.callable != get_name || call.kwnames != nullptr) return {};
  static PyObject* const get_frame = module_attribute("sys", "_getframe");
  const auto count = static_cast<size_t>(call.nargs);
  const PyRef frame = PyRef::steal(PyObject_Vectorcall(get_frame, call.args, count, nullptr));
  if (!frame) return PyErr_Clear(), PyRef();  // there is none: the call itself says None
  if (!is_evaluated(activation, frame.get())) return {};
  return checked(PyObject_Vectorcall(call.callable, call.args, count, nullptr));
}

// Whether the call is one that C code does as it is, whatever it is given: most are. Not asked of isinstance() alone.
bool Session::is_ordinary(const CressetCall& call, uint8_t special) const {
  return (special & ~(kAsksType | kNamesAttribute)) == 0 && !call.evaluated && !any_grown() && !any_outsiders &&
         addresses_.empty() && !capture_->symbolic_numbers;
}

static bool names_attribute_to_read(PyObject* callable) {
  static PyObject *const get = module_attribute("builtins", "getattr"), *const has =
                                                                            module_attribute("builtins", "hasattr");
  return callable == get || callable == has;
}

// A substitute that says so itself.
static CressetAction call_unseen(PyObject* function, const CressetCall& call, PyObject** result) {
  const NotEvaluated own_business;
  *result = PyObject_Vectorcall(function, call.args, static_cast<size_t>(call.nargs), call.kwnames);
  return *result != nullptr ? CRESSET_RESULT : CRESSET_FAIL;
}

CressetAction Session::before_call(CressetActivation* activation, const CressetCall& call, PyObject** result) {
  if (is_plain_question(call)) return CRESSET_RUN;
  if (call.nargs > 1 && names_attribute_to_read(call.callable)) cresset_eval_bind(call.args[0], call.args[1]);
  note_classes(call);
  note_callable(activation, call.callable);
  if (is_left_whole(*activation, call.callable)) {
    PyRef instead = substitute_of(*activation, call);
    if (!instead) return call_whole(activation, call);
    CressetCall whole = call;  // also where later calls do it
    whole.callable = stand_in(std::move(instead));
    call_whole(activation, whole);
    const CressetAction done = call_unseen(whole.callable, whole, result);
    in_progress_.end();
    if (done == CRESSET_FAIL) return after_failure(activation), done;
    PyRef value = PyRef::steal(*result);
    go_on_with(activation, value);
    return *result = value.release(), done;
  }
  if (const uint8_t special = call.evaluated ? uint8_t{kAnyCall} : special_call(call.callable);
      is_ordinary(call, special)) {
    if (special == kAsksType && role_of(activation->code) != CodeRole::Replacement)
      if (const CressetAction answered = ask_type(call, result); answered != CRESSET_RUN) return answered;
    hands_methods_on(call);
    return before_c_call(activation, call, result);
  }
  if (PyObject* const answer = answer_to_compiling(*activation, call))
    return *result = Py_NewRef(answer), CRESSET_RESULT;
  if (PyRef number = next_of_uncounted(call)) return *result = number.release(), CRESSET_RESULT;
  if (PyRef instead = called_instead(*this, *activation, call)) {
    if (PyFunction_Check(instead.get()) && call_mode(instead.get()) == CallMode::Native)
      return call_unseen(instead.get(), call, result);
    const bool is_method = PyMethod_Check(instead.get()) != 0;  // of a tensor, which must not seem to be kept
    learn_function(is_method ? PyMethod_GET_FUNCTION(instead.get()) : instead.get());
    PyRef& place = is_method ? called_instead_ : kept_.emplace_back();
    return *result = (place = std::move(instead)).get(), CRESSET_INSTEAD;
  }
  if (const CressetAction answered = call_cached(*activation, call, result); answered == CRESSET_NATIVE) {
    start(activation, Operation::Kind::Call, 0);
    in_progress_.call = call;
    return capture_->flush("a call of a cached function with arguments that vary"), CRESSET_RUN;
  } else if (answered != CRESSET_RUN) {
    return answered;
  }
  if (call.evaluated && !PyFunction_Check(call.callable) && call.nargs > 0 && is_outsider(call.args[0]) &&
      (is_c_function(call.callable) || Py_IS_TYPE(call.callable, &PyMethodDescr_Type))) {  // next(g), g.send(x)
    CressetCall natively = call;
    natively.evaluated = 0;
    return before_c_call(activation, natively, result);
  }
  if (call.evaluated) return before_function(activation, call);
  if (!addresses_.empty()) use_addresses(call);
  if (role_of(activation->code) != CodeRole::Replacement) {
    if (const CressetAction answered = ask_type(call, result); answered != CRESSET_RUN) return answered;
    if (PyRef length = length_in_state(call)) return *result = length.release(), CRESSET_RESULT;
    if (const CressetAction answered = make_number(activation, call, result); answered != CRESSET_RUN) return answered;
    if (PyRef value = of_plain_numbers(call)) return *result = value.release(), CRESSET_RESULT;
    if (const CressetAction done = call_method_of_text(activation, call, result); done != CRESSET_RUN) return done;
  }
  if (installs_frame_evaluator(call.callable)) return *result = Py_NewRef(Py_None), CRESSET_RESULT;
  if (PyRef names = names_in_frame(*activation, call)) return *result = names.release(), CRESSET_RESULT;
  if (PyRef name = module_of_frame(*activation, call)) return *result = name.release(), CRESSET_RESULT;
  if (PyObject* instead = with_names_of_frame(call)) return *result = instead, CRESSET_INSTEAD;
  hands_methods_on(call);
  if (call.kwnames == nullptr && setting_of(call.callable) != Setting::None) return use_setting(call, result);
  if (is_warn(call.callable)) {
    if (!outer_.empty()) fail_part("it warns");
    return log_warning(activation, call, result);
  }
  return before_c_call(activation, call, result);
}

// What a C function is, of these arguments.
CCall Session::effect_of(const CressetActivation& activation, const CressetCall& call) {
  CCall what = looks_inside(call) || asks_for_types(call) ? CCall{CEffect::Outside} : classify(call);
  if (what.effect == CEffect::Pure && (switches_tracer(what.name, call) || is_of_stand_ins(call)))
    what.effect = CEffect::Outside;
  const bool of_new = what.self != nullptr && !existed(what.self) && std::string_view(what.name) == "__setstate__";
  if (what.effect == CEffect::Outside && (of_new || stays_within(activation, what, call))) what.effect = CEffect::Pure;
  return what;
}

// As iterating over a tensor does, in Python code of torch's.
static bool takes_rows(PyObject* callable) {
  static PyObject *const function = module_attribute("torch", "unbind"), *const method = [] {
    return checked(PyObject_GetAttrString(module_attribute("torch._C", "TensorBase"), "unbind")).release();
  }();
  return callable == function || callable == method;
}

CressetAction Session::before_c_call(CressetActivation* activation, const CressetCall& given, PyObject** result) {
  if (given.nargs > 0 && takes_rows(given.callable)) note_rows(given.args[0]);
  start(activation, Operation::Kind::Call, 0);
  in_progress_.call = given;
  if (outer_.empty() && opaque_.empty() && !any_grown() && !in_progress_.in_transform)
    if (CCall what; is_plain_operator(given, &what))
      return dying_ = nullptr, before_known_call(activation, what, given, result);
  CressetCall call = given;
  const bool names = names_attribute(call);  // the name is looked at before all
  CCall what = names ? CCall{} : effect_of(*activation, call);
  if (names || (what.effect != CEffect::Outside && any_texts())) {
    if (looks_at_text_of_float(call)) return capture_->flush("a look at the text of a float"), CRESSET_RUN;
    if (look_at_texts(activation, call) || names) what = effect_of(*activation, call);
  }
  if (what.self != nullptr && PyContextVar_CheckExact(what.self)) {
    if (existed(what.self)) read_context_variable(what.self, std::string_view(what.name) != "get");
    if (std::string_view(what.name) == "set") note_set(what.self, *activation, given);
    if (PyRef value = with_plain_numbers(call)) return in_progress_.end(), *result = value.release(), CRESSET_RESULT;
  }
  if (watches_death(what, call) || may_end_a_life(what))
    return refuse(kWatchesDeaths), capture_->flush(kWatchesDeaths), CRESSET_RUN;
  return before_known_call(activation, what, call, result);
}

// A heap, or a sorted list, that was there before: how its numbers compare is another order at each call.
static bool orders_symbols(const CCall& what, const CressetCall& call) {
  if (!what.by_arguments || what.self == nullptr || !PyList_CheckExact(what.self)) return false;
  const std::string_view name = what.name;
  if (!name.starts_with("heap") && !name.starts_with("insort")) return false;
  const auto is_symbol = [](PyObject* object) { return is_symbolic_number(object); };
  return holds_any(what.self, is_symbol) || any_among(call.args + 1, call.args + call.nargs, [&](PyObject* item) {
           return is_symbol(item) || holds_any(item, is_symbol);
         });
}

// Whether C code would pin a number that was another one too often.
bool Session::pins_any(const CressetActivation& activation, const CressetCall& call, bool is_operator) {
  if (!is_operator && !is_c_function(call.callable)) return false;
  std::vector<PyRef> unpinned = unpinned_among(call);
  if (unpinned.empty() || !may_end_at_pin()) return false;
  in_progress_.unpinned = std::move(unpinned);
  in_progress_.of_operator = is_operator;
  static PyObject* const set_item = module_attribute("cresset._equivalents", "set_item");  // stands for a statement
  const bool for_caller = activation.function == set_item && activation.caller != nullptr;
  const CressetActivation& asks = for_caller ? *activation.caller : activation;
  return is_operator ? pins_too_often(asks, call) : pins_too_often(asks);
}

CressetAction Session::before_known_call(CressetActivation* activation, const CCall& what, const CressetCall& call,
                                         PyObject** result) {
  if (asked_in_ == activation) asked_in_ = nullptr;
  if (what.effect == CEffect::Outside || arrays_.any())
    if (const auto done = call_of_arrays(activation, what, call, result)) return *done;
  if (!outer_.empty()) no_call_in_part(what, call);
  if (what.effect == CEffect::SetsAttribute) will_set_attribute(what, call);
  if (!batching_ && begins_batching(what.name)) batching_ = std::make_shared<bridge::SymbolicBatching>();
  if (what.effect == CEffect::Pure && keeps_sizes(what.name))
    return capture_->flush("an operator whose derivative keeps sizes, inside of a transform"), CRESSET_RUN;
  if (what.effect == CEffect::Pure && is_operator_on_wrappers(what.name, call)) {
    PyRef value = call_on_wrappers(*capture_, call);
    in_progress_.end();
    return value ? (*result = value.release(), CRESSET_RESULT) : CRESSET_FAIL;
  }
  if (what.effect == CEffect::Pure)
    if (PyRef value = with_numbers_it_takes(call)) return in_progress_.end(), *result = value.release(), CRESSET_RESULT;
  if (what.effect == CEffect::Pure && reads_memory_of_outsider(what))
    return capture_->flush("the memory of a tensor is asked for"), CRESSET_RUN;
  if (what.effect == CEffect::Pure) {  // a function of torch's: lists of sizes, of tensors, of numbers
    const Py_ssize_t named = cresset_count_named(&call);
    for (Py_ssize_t i = 0; i < call.nargs + named; ++i)
      is_tensor(call.args[i]) ? hold_metadata(call.args[i]) : read_deep(call.args[i]);
    if (pins_any(*activation, call, /*is_operator=*/true)) return capture_->flush(text_of(call)), CRESSET_RUN;
    return in_progress_.uses_up = uses_up(what, call), CRESSET_RUN;
  }
  if (what.effect == CEffect::Outside || pins_any(*activation, call, /*is_operator=*/false) ||
      (what.self != nullptr && existed(what.self) && may_end_at_pin() && orders_symbols(what, call))) {
    const bool runs_frame = any_among(call.args, call.args + call.nargs, is_outsider);
    return capture_->flush(text_of(call)), runs_frame ? CRESSET_NATIVE : CRESSET_RUN;
  }
  note_keys(what, call);
  PyObject* key = nullptr;
  const bool reads_self = what.effect != CEffect::Writes && what.self != nullptr;
  if (reads_self && !asks_for_one_key(what, call, &key)) read_whole(what.self);
  if (key != nullptr) read_contains(what.self, key);
  const size_t named = static_cast<size_t>(cresset_count_named(&call));
  const bool deep = what.effect == CEffect::Reads && !looks_at_items_only(call.callable);
  for (size_t i = what.first; i < static_cast<size_t>(call.nargs) + named; ++i)
    deep ? read_deep(call.args[i]) : read_whole(call.args[i]);
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites) will_write(what.self);
  if (PyObject* item = new_item(what, call)) added_.emplace_back(what.self, item);
  // Which looks up attributes: "{0.n}".
  if (what.self != nullptr && PyUnicode_Check(what.self) && what.name == std::string_view("format"))
    for (size_t i = what.first; i < static_cast<size_t>(call.nargs) + named; ++i)
      if (existed(call.args[i]) && !is_tensor(call.args[i])) read_all(call.args[i]);
  in_progress_.uses_up = uses_up(what, call);
  return CRESSET_RUN;
}

// All that an object consists of, as copying and pickling it take it.
void Session::read_all(PyObject* object) {
  if (PyObject* dict = instance_dict(object)) {
    learn(dict);
    read_whole(dict);
  }
  PyObject* bases = Py_TYPE(object)->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); ++i) {
    auto* base = (PyTypeObject*)PyTuple_GET_ITEM(bases, i);
    PyObject *name, *slot;
    Py_ssize_t position = 0;
    while (is_heap_type(base) && PyDict_Next(type_dict(base), &position, &name, &slot)) {
      if (Py_TYPE(slot) != &PyMemberDescr_Type || are_slots_known(object) || !first(object, name)) continue;
      const PyRef value = PyRef::steal(Py_TYPE(slot)->tp_descr_get(slot, object, (PyObject*)Py_TYPE(object)));
      if (!value) PyErr_Clear();
      facts_->member(object, slot, value.get());
      learn(value.get());
    }
  }
  read_whole(object);
}

// globals(), locals(), vars(), dir() and sys._getframe(), of frames that are evaluated here; vars(object).
PyRef Session::names_in_frame(const CressetActivation& activation, const CressetCall& call) {
  static PyObject* const asked[] = {module_attribute("builtins", "globals"), module_attribute("builtins", "locals"),
                                    module_attribute("builtins", "dir"), module_attribute("builtins", "vars")};
  static PyObject* const get_frame = module_attribute("sys", "_getframe");
  const auto* const which = std::find(std::begin(asked), std::end(asked), call.callable);
  if (call.kwnames != nullptr || (which == std::end(asked) && call.callable != get_frame)) return {};
  const bool of_object = call.nargs == 1 && which == std::end(asked) - 1;
  if (call.callable != get_frame && call.nargs != 0 && !of_object) return {};
  static PyObject* const dict = PyUnicode_InternFromString("__dict__");
  if (of_object && is_of_this_call(call.args[0], dict)) return {};
  PyRef value = PyRef::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), nullptr));
  if (!value) return PyErr_Clear(), PyRef();  // the call itself says what is wrong with it
  if (of_object) read_attribute(call.args[0], dict, value.get());
  if (which == std::begin(asked)) learn(value.get());
  if (call.callable != get_frame) return value;
  if (!is_evaluated(activation, value.get())) refuse("looks at the frames of its callers");
  return value;
}

// eval(text) and exec(text) of the names in the frame that calls: given them, they may be called from anywhere.
PyObject* Session::with_names_of_frame(const CressetCall& call) {
  static PyObject *const eval = module_attribute("builtins", "eval"), *const exec =
                                                                          module_attribute("builtins", "exec");
  if ((call.callable != eval && call.callable != exec) || call.nargs != 1 || call.kwnames != nullptr) return nullptr;
  static PyObject* const with_names = module_attribute("cresset._equivalents", "with_names");
  PyObject* globals = PyEval_GetGlobals();
#if PY_VERSION_HEX >= 0x030D0000
  const PyRef locals = checked(PyEval_GetFrameLocals());  // of a function a snapshot, another one each time
#else
  const PyRef locals = PyRef::borrow(PyEval_GetLocals());
#endif
  learn(globals);
  const bridge::Capture::StepAside outside;
  return stand_in(checked(PyObject_CallFunctionObjArgs(with_names, call.callable, globals, locals.get(), nullptr)));
}

// Borrowed, for CRESSET_INSTEAD.
PyObject* Session::stand_in(PyRef function) {
  kept_.push_back(std::move(function));
  return kept_.back().get();
}

// A method of a container that was there before, handed to C code, which may call it unseen: map(x.append, ...).
void Session::hands_methods_on(const CressetCall& call) {
  const Py_ssize_t named = cresset_count_named(&call);
  if (!any_among(call.args, call.args + call.nargs + named, is_c_function)) return;
  static PyObject* const is_callable = module_attribute("builtins", "callable");
  if (asks_one_question(call.callable) || call.callable == is_callable) return;
  PyObject* keeper = is_c_function(call.callable) ? PyCFunction_GET_SELF(call.callable) : nullptr;
  if (keeper != nullptr && is_container(keeper)) return;
  for (Py_ssize_t i = 0; i < call.nargs + named; ++i) {
    if (!is_c_function(call.args[i])) continue;
    const CressetCall inner{call.args[i], nullptr, 0, nullptr, 0};
    PyObject* self = PyCFunction_GET_SELF(inner.callable);
    if (self == nullptr || PyModule_Check(self) || !existed(self) || !is_container(self)) continue;
    if (const CEffect effect = classify(inner).effect; effect == CEffect::Writes || effect == CEffect::ReadsAndWrites)
      refuse("hands a method that changes a " + std::string(Py_TYPE(self)->tp_name) + " to C code");
    read_whole(self);
  }
}

// Containers that a call may have put its arguments into.
static std::vector<PyObject*> containers_of(const CressetCall& call) {
  std::vector<PyObject*> out;
  PyObject* const self = is_c_function(call.callable) ? PyCFunction_GET_SELF(call.callable) : nullptr;
  if (self != nullptr && is_container(self)) out.push_back(self);
  for (Py_ssize_t i = 0; i < call.nargs; ++i)
    if (is_container(call.args[i])) out.push_back(call.args[i]);
  return out;
}

void Session::after_call(CressetActivation* activation, const CressetCall& call, PyObject** result,
                         PyObject* exception) {
  if (*result != nullptr && is_plain_question(call)) return;
  const bool of_operator = in_progress_.of_operator;
  const std::vector<PyRef> unpinned = std::exchange(in_progress_.unpinned, {});
  in_progress_.end();
  if (*result != nullptr && !unpinned.empty()) note_pins(*activation, call, *result, unpinned, of_operator);
  if (exception != nullptr)
    if (PyRef given = done_with_plain_numbers(call, classify(call).effect, exception))
      *result = given.release(), exception = nullptr;
  if (open()) return note_question(call, *result), note_call(*activation, call, *result);
  after_end(activation, call, result, exception);
}

// One that ended the piece itself ends it as well before it takes the numbers.
void Session::note_pins(const CressetActivation& activation, const CressetCall& call, PyObject* result,
                        const std::vector<PyRef>& unpinned, bool of_operator) {
  if (!is_plain_result(result)) return;
  for (const PyRef& number : unpinned)
    if (of_operator && (!open() || !is_unpinned(number.get())))
      note_pin(activation, call, number.get());
    else if (!of_operator && open() && !is_unpinned(number.get()))
      note_pin(activation, number.get());
}

// The piece ended in the call, or before.
void Session::after_end(CressetActivation* activation, const CressetCall& call, PyObject** result,
                        PyObject* exception) {
  if (was_in_call_at_the_end(activation)) {
    for (PyObject* container : containers_of(call)) without_symbols(PyRef::borrow(container));
    if (*result != nullptr) {
      PyRef plain = without_symbols(PyRef::borrow(*result));
      PyRef::steal(std::exchange(*result, plain.release()));
    }
  }
  if (ended_in_ == nullptr && !is_in_calls_at_the_end(activation)) maker_.out_of_calls(activation);
  if (ended_in_ != activation || (*result == nullptr && exception == nullptr)) return;
  ended_in_ = nullptr;
  if (PyRef number = maker_.go_on(activation, CRESSET_AFTER, *result, exception))
    PyRef::steal(std::exchange(*result, number.release()));
}

static bool asks_abstract_class(const CressetCall& call) {
  if (call.nargs == 0 || !PyType_Check(call.args[0])) return false;
  static PyObject* const of_instance = module_attribute("_abc", "_abc_instancecheck");
  static PyObject* const of_class = module_attribute("_abc", "_abc_subclasscheck");
  return call.callable == of_instance || call.callable == of_class;
}

void Session::note_call(const CressetActivation& activation, const CressetCall& call, PyObject* result) {
  if (was_plain_operator(call)) return;
  const CCall what = classify(call);
  const size_t count = static_cast<size_t>(call.nargs);
  const std::string_view name = what.name;
  tangent_levels_ += changes_level(name);
  if (asks_abstract_class(call) && existed(call.args[0])) facts_->classes().abstract((PyTypeObject*)call.args[0]);
  if (is_weakref(call.callable)) read_weakref(call.callable, result);
  note_address(activation, call, result);
  if (what.self != nullptr && name == "__call__" && is_weakref(what.self)) read_weakref(what.self, result);
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
    if (at >= count) return;
    PyObject* const value = at + 1 < count ? call.args[at + 1] : nullptr;
    CressetChanger changer;  // a setter in Python was evaluated, and its own writes are known
    if (cresset_find_changer(owner, call.args[at], value == nullptr, what.self != nullptr, &changer) != 0) return;
    return log_attribute(owner, call.args[at], value);
  }
  if (what.self == nullptr) return;
  if (!existed(what.self)) return is_container(what.self) ? meet_unknown(what.self) : void();
  if (PyDict_Check(what.self) && (name == "get" || name == "__getitem__" || name == "__contains__") &&
      what.first < count) {
    PyObject* key = call.args[what.first];
    PyObject* const value = value_under(what.self, key);  // the program was asked: what it gave
    return read_key(what.self, key, value != nullptr || name == "__contains__" || !asks_program(key) ? value : result);
  }
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites) log_method(what, call);
  if (name == "__reduce_ex__" || name == "__reduce__" || name == "__getstate__") return read_all(what.self);
  const bool makes = name == "__getitem__" && what.first < count && PySlice_Check(call.args[what.first]);
  if (name == "pop" || name == "heappop" || name == "heapreplace" || name == "heappushpop" || name == "popleft" ||
      name == "setdefault" || (name == "__getitem__" && !makes))
    learn(result);
  if (name == "popitem" && PyTuple_CheckExact(result))  // a pair that is made for it
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) learn(PyTuple_GET_ITEM(result, i));
}

// Others take what an iterator gives.
static bool stores_what_it_is_given(PyObject* method) {
  static const std::unordered_set<std::string_view> kNames = {"append",     "appendleft",  "insert", "add",
                                                              "setdefault", "__setitem__", "pop"};
  return kNames.count(utf8(method)) != 0;
}

// An item that the call has put into a set, and now takes out: as the guards of recursive functions do, for which it is
// an address.
bool Session::takes_back(const CCall& what, const CressetCall& call) {
  const std::string_view name = what.name;
  if (!PySet_Check(what.self) || (name != "discard" && name != "remove") || writes_.empty()) return false;
  if (what.first >= static_cast<size_t>(call.nargs)) return false;
  const std::pair added(what.self, call.args[what.first]);
  const auto known = std::find(added_.begin(), added_.end(), added);
  const auto last = std::find_if(writes_.rbegin(), writes_.rend(),
                                 [&](const Write& write) { return write.owner.get() == what.self; });
  if (known == added_.end() || last == writes_.rend() || last->kind != Write::Kind::Method ||
      last->values.size() != 1 || last->values[0].get() != added.second)
    return false;
  keep(last->values[0]);
  added_.erase(known);
  writes_.erase(std::next(last).base());
  return true;
}

// The C method is called again at replay, not what a subclass made of it.
void Session::log_method(const CCall& what, const CressetCall& call) {
  if (takes_back(what, call)) return;
  if (asked_in_ == cresset_eval_current()) no_effects_again(call.callable);
  PyObject* method = what.by_arguments ? call.callable : nullptr;
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
  const auto count = static_cast<size_t>(cresset_count_arguments(&call));
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

}  // namespace cresset::frontend
