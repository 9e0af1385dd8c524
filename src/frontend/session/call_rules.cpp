// The trace rules of calls: what the session does before the evaluator makes one.
#include <algorithm>

#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/eval/binders.h"
#include "frontend/feedback/external_generators.h"
#include "frontend/feedback/opaque_calls.h"
#include "frontend/guards/torch_settings.h"
#include "frontend/session/lengths_in_state.h"
#include "frontend/session/rules.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/call_filter.h"
#include "frontend/trace_rules/call_modes.h"
#include "frontend/trace_rules/polyfills.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/substitutes.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

// torch.compile's wrappers install their frame evaluator around calls. It would take the program's frames away from
// cresset's evaluator. The call is answered with None, the value for no previous evaluator.
static bool installs_frame_evaluator(PyObject* callable) {
  if (!is_c_function(callable)) return false;
  static PyObject* const install = private_attribute("torch._C._dynamo.eval_frame", "set_eval_frame");
  return callable == install;
}

static bool takes_growing(const Session& session, const CressetCall& call) {
  const auto is_uninspected = [&](PyObject* o) { return is_growing_container(o) && session.provenance().existed(o); };
  return any_growing() && any_among(call.args, call.args + call.nargs, is_uninspected);
}

// Whether the call consumes an external generator completely. Lazy iterators take single items.
static bool takes_external_generator(const CressetCall& call) {
  if (call.evaluated) return false;
  const bool is_iterator = call.callable == (PyObject*)&PyEnum_Type || call.callable == (PyObject*)&PyMap_Type ||
                           call.callable == (PyObject*)&PyFilter_Type || call.callable == (PyObject*)&PyZip_Type;
  return !is_iterator && any_among(call.args, call.args + call.nargs, is_external_generator);
}

// The substitute, polyfill or decomposition to call with the same arguments.
static PyRef called_instead(const Session& session, const CressetActivation& activation, const CressetCall& call) {
  if (PyRef instead = substitute_of(activation, call)) return instead;
  // run as a whole
  if (takes_growing(session, call) || takes_external_generator(call) ||
      session.provenance().arrays().makes_string(call))
    return {};
  if (PyObject* source = source_of_script(call.callable)) return PyRef::borrow(source);
  if (call.evaluated) return {};
  if (PyObject* instead = polyfill_of(activation, call)) return PyRef::borrow(instead);
  if (PyRef instead = decomposition_of(activation, call)) return instead;
  if (PyObject* instead = proxy_of(activation, call)) return PyRef::borrow(instead);
  static PyObject* const next = module_attribute("builtins", "next");
  if (call.callable == next && call.nargs == 1 && call.kwnames == nullptr &&
      !session.provenance().existed(call.args[0]))
    if (PyObject* instead = next_item_of(call.args[0])) return PyRef::borrow(instead);
  return maker_of_instance(call);
}

// globals(), locals(), vars(), dir() and sys._getframe() of evaluated frames; vars(object).
static PyRef names_in_frame(Session& session, const CressetActivation& activation, const CressetCall& call) {
  static PyObject* const asked[] = {module_attribute("builtins", "globals"), module_attribute("builtins", "locals"),
                                    module_attribute("builtins", "dir"), module_attribute("builtins", "vars")};
  static PyObject* const get_frame = module_attribute("sys", "_getframe");
  const auto* const which = std::find(std::begin(asked), std::end(asked), call.callable);
  if (call.kwnames != nullptr || (which == std::end(asked) && call.callable != get_frame)) return {};
  const bool of_object = call.nargs == 1 && which == std::end(asked) - 1;
  if (call.callable != get_frame && call.nargs != 0 && !of_object) return {};
  static PyObject* const dict = PyUnicode_InternFromString("__dict__");
  if (of_object && session.attributes().is_of_this_call(call.args[0], dict)) return {};
  PyRef value = PyRef::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), nullptr));
  if (!value) return PyErr_Clear(), PyRef();  // the call itself raises the error
  if (of_object) session.attributes().read_attribute(call.args[0], dict, value.get());
  if (which == std::begin(asked)) session.reads().learn(value.get());
  if (call.callable != get_frame) return value;
  if (!is_evaluated(activation, value.get()))
    session.segment().refuse(BreakKind::UnguardedState, "looks at the frames of its callers");
  return value;
}

// eval(text) and exec(text) use the names of the calling frame. With explicit names they can be called from anywhere.
static PyObject* with_names_of_frame(Session& session, const CressetCall& call) {
  static PyObject *const eval = module_attribute("builtins", "eval"), *const exec =
                                                                          module_attribute("builtins", "exec");
  if ((call.callable != eval && call.callable != exec) || call.nargs != 1 || call.kwnames != nullptr) return nullptr;
  static PyObject* const with_names = module_attribute(python_names::kPolyfills, "with_names");
  PyObject* globals = PyEval_GetGlobals();
#if PY_VERSION_HEX >= 0x030D0000
  const PyRef locals = checked(PyEval_GetFrameLocals());  // for a function, a new snapshot each time
#else
  const PyRef locals = PyRef::borrow(PyEval_GetLocals());
#endif
  session.reads().learn(globals);
  const bridge::Capture::StepAside outside;
  return session.provenance().keep(
      checked(PyObject_CallFunctionObjArgs(with_names, call.callable, globals, locals.get(), nullptr)));
}

// sys._getframemodulename, which typing and namedtuple call: the module of a caller's function.
static PyRef module_of_frame(const CressetActivation& activation, const CressetCall& call) {
  static PyObject* const get_name = [] {
    PyObject* const found = PySys_GetObject("_getframemodulename");  // CPython 3.12 and up
    return Py_XNewRef(found);
  }();
  if (get_name == nullptr || call.callable != get_name || call.kwnames != nullptr) return {};
  static PyObject* const get_frame = module_attribute("sys", "_getframe");
  const auto count = static_cast<size_t>(call.nargs);
  const PyRef frame = PyRef::steal(PyObject_Vectorcall(get_frame, call.args, count, nullptr));
  if (!frame) return PyErr_Clear(), PyRef();  // no frame: the call itself returns None
  if (!is_evaluated(activation, frame.get())) return {};
  return checked(PyObject_Vectorcall(call.callable, call.args, count, nullptr));
}

// Whether C code performs the call unchanged for all arguments, as for most calls. isinstance() is tested separately.
static bool is_ordinary(Session& session, const CressetCall& call, uint8_t special) {
  return (special & ~(kAsksType | kNamesAttribute)) == 0 && !call.evaluated && !any_growing() &&
         !any_external_generators && !session.addresses().any_addresses() &&
         !session.segment().capture().symbolic_numbers;
}

static bool names_attribute_to_read(PyObject* callable) {
  static PyObject *const get = module_attribute("builtins", "getattr"), *const has =
                                                                            module_attribute("builtins", "hasattr");
  return callable == get || callable == has;
}

// Calls a substitute that is marked to run in CPython.
static CressetAction call_unseen(PyObject* function, const CressetCall& call, PyObject** result) {
  const NotEvaluated own_business;
  *result = PyObject_Vectorcall(function, call.args, static_cast<size_t>(call.nargs), call.kwnames);
  return *result != nullptr ? CRESSET_RESULT : CRESSET_FAIL;
}

// The object with plain numbers for symbolic ones, also inside of tuples. Guards hold later calls to these numbers.
static PyRef specialized(PyObject* object) {
  if (is_symint(object)) return checked(PyNumber_Index(object));
  if (is_symfloat(object)) return checked(PyNumber_Float(object));
  if (is_symbool(object)) {
    const int truth = PyObject_IsTrue(object);
    if (truth < 0) throw PythonError{};
    return PyRef::borrow(truth == 1 ? Py_True : Py_False);
  }
  if (!PyTuple_CheckExact(object)) return PyRef::borrow(object);
  const PyRef items = checked(PySequence_List(object));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i)
    PyList_SetItem(items.get(), i, specialized(PyList_GET_ITEM(items.get(), i)).release());
  return checked(PyList_AsTuple(items.get()));
}

// A rule notes what the call reads, or gives the action. The first action counts.
struct Session::CallRules {
  using Action = std::optional<CressetAction>;

  Session& session;
  CressetActivation* activation;
  const CressetCall& call;
  PyObject** result;

  Action give(PyRef value) const { return *result = value.release(), CRESSET_RESULT; }
  static Action unless_run(CressetAction action) { return action != CRESSET_RUN ? Action(action) : std::nullopt; }

  Action plain_question() const {
    return session.classifier().is_plain_question(call) ? Action(CRESSET_RUN) : std::nullopt;
  }

  Action notes() const {
    if (call.nargs > 1 && names_attribute_to_read(call.callable)) cresset_eval_bind(call.args[0], call.args[1]);
    session.note_classes(call);
    note_callable(activation, call.callable);
    return {};
  }

  // A call which is known to run as a whole in CPython.
  Action opaque_call() const {
    if (!is_opaque_call(*activation, call.callable)) return {};
    PyRef instead = substitute_of(*activation, call);
    if (!instead) return session.call_whole(activation, call);
    CressetCall whole = call;  // later calls use the substitute too
    whole.callable = session.provenance().keep(std::move(instead));
    session.call_whole(activation, whole);
    const CressetAction done = call_unseen(whole.callable, whole, result);
    session.operation().in_progress().end();
    if (done == CRESSET_FAIL) return session.operation().after_failure(activation), done;
    PyRef value = PyRef::steal(*result);
    session.operation().go_on_with(activation, value);
    return *result = value.release(), done;
  }

  // Most calls: the rules below have nothing to say about them.
  Action ordinary_call() const {
    const uint8_t special = call.evaluated ? uint8_t{kAnyCall} : special_call(call.callable);
    if (!is_ordinary(session, call, special)) return {};
    if (special == kAsksType && session.frames().role_of(activation->code) != EnteredFrames::CodeRole::Replacement)
      if (const CressetAction answered = ask_type(call, result); answered != CRESSET_RUN) return answered;
    return c_function();
  }

  Action answered_question() const {
    if (PyObject* const answer = answer_to_compiling(*activation, call)) return give(PyRef::borrow(answer));
    PyRef number = next_of_uncounted(call);
    return number ? give(std::move(number)) : std::nullopt;
  }

  Action replacement() const {
    PyRef instead = called_instead(session, *activation, call);
    if (!instead) return {};
    if (PyFunction_Check(instead.get()) && call_mode(instead.get(), activation->code) == CallMode::Native)
      return call_unseen(instead.get(), call, result);
    const bool is_method = PyMethod_Check(instead.get()) != 0;  // a bound method holds its tensor: keep only the last
    session.reads().learn_function(is_method ? PyMethod_GET_FUNCTION(instead.get()) : instead.get());
    if (is_method) return *result = (session.called_instead_ = std::move(instead)).get(), CRESSET_INSTEAD;
    return *result = session.provenance().keep(std::move(instead)), CRESSET_INSTEAD;
  }

  Action cached_function() const {
    const CressetAction answered = session.call_cached(*activation, call, result);
    if (answered != CRESSET_NATIVE) return unless_run(answered);
    session.operation().start(activation, Operation::Kind::Call, 0);
    session.operation().in_progress().call = call;
    session.segment().capture().flush(
        {BreakKind::SymbolicNumber, "a call of a cached function with arguments that vary"});
    return CRESSET_RUN;
  }

  // next(g) and g.send(x) of an external generator.
  Action external_generator() const {
    if (!call.evaluated || PyFunction_Check(call.callable) || call.nargs == 0 || !is_external_generator(call.args[0]))
      return {};
    if (!is_c_function(call.callable) && !Py_IS_TYPE(call.callable, &PyMethodDescr_Type)) return {};
    CressetCall natively = call;
    natively.evaluated = 0;
    return session.before_c_call(activation, natively, result);
  }

  // torch calls this the tracing of a forbidden callable.
  Action forbidden_function() const {
    if (!call.evaluated || !is_forbidden(call.callable)) return {};
    PyErr_Format(PyExc_AssertionError, "cresset: compiled code must not call %R, which torch forbids there",
                 call.callable);
    return CRESSET_FAIL;
  }

  // The function runs now, outside of the capture, and never when the captured program runs. A tensor among the
  // arguments may have no data yet: such a call is a graph break (call_mode).
  Action assumed_constant() const {
    if (!call.evaluated || !is_assumed_constant(call.callable)) return {};
    const Py_ssize_t count = cresset_count_arguments(&call);
    const NotEvaluated own_business;
    std::vector<PyRef> plain;
    std::vector<PyObject*> args;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (is_tensor(call.args[i])) return {};
      plain.push_back(specialized(call.args[i]));
      args.push_back(plain.back().get());
    }
    PyRef value;
    {
      const bridge::Capture::StepAside outside;
      value =
          PyRef::steal(PyObject_Vectorcall(call.callable, args.data(), static_cast<size_t>(call.nargs), call.kwnames));
    }
    if (!value) return CRESSET_FAIL;
    session.reads().learn(value.get());
    return *result = value.release(), CRESSET_RESULT;
  }

  Action python_function() const {
    return call.evaluated ? Action(session.before_function(activation, call)) : std::nullopt;
  }

  Action numbers_and_strings() const {
    if (session.addresses().any_addresses())
      session.addresses().use_addresses(session.classifier().classify(call), call);
    if (session.frames().role_of(activation->code) == EnteredFrames::CodeRole::Replacement) return {};
    if (const CressetAction answered = ask_type(call, result); answered != CRESSET_RUN) return answered;
    if (PyRef length = length_in_state(call, session)) return give(std::move(length));
    if (const CressetAction made = session.make_number(activation, call, result); made != CRESSET_RUN) return made;
    if (PyRef value = of_plain_numbers(call)) return give(std::move(value));
    return unless_run(session.call_method_of_string(activation, call, result));
  }

  Action frames_of_program() const {
    if (installs_frame_evaluator(call.callable)) return give(PyRef::borrow(Py_None));
    if (PyRef names = names_in_frame(session, *activation, call)) return give(std::move(names));
    if (PyRef name = module_of_frame(*activation, call)) return give(std::move(name));
    PyObject* const instead = with_names_of_frame(session, call);
    return instead != nullptr ? (*result = instead, Action(CRESSET_INSTEAD)) : std::nullopt;
  }

  Action setting_or_warning() const {
    if (call.kwnames == nullptr && setting_of(call.callable) != Setting::None) {
      session.hands_methods_on(call);
      return session.use_setting(call, result);
    }
    if (!is_warn(call.callable)) return {};
    session.hands_methods_on(call);
    if (session.subgraphs().is_inside()) session.subgraphs().fail_subgraph("it warns");
    return session.log_warning(activation, call, result);
  }

  Action c_function() const {
    session.hands_methods_on(call);
    return session.before_c_call(activation, call, result);
  }
};

CressetAction Session::before_call(CressetActivation* activation, const CressetCall& call, PyObject** result) {
  // The order is a part of the semantics: each rule relies on the rules before it.
  static constexpr CallRules::Action (CallRules::* kRules[])() const = {
      &CallRules::plain_question,     &CallRules::notes,
      &CallRules::opaque_call,        &CallRules::ordinary_call,
      &CallRules::answered_question,  &CallRules::replacement,
      &CallRules::cached_function,    &CallRules::external_generator,
      &CallRules::forbidden_function, &CallRules::assumed_constant,
      &CallRules::python_function,    &CallRules::numbers_and_strings,
      &CallRules::frames_of_program,  &CallRules::setting_or_warning,
      &CallRules::c_function,
  };
  const CallRules rules{*this, activation, call, result};
  return first_action(rules, kRules, CRESSET_RUN);
}

}  // namespace cresset::frontend
