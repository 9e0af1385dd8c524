// Calls of C functions: reads and writes, graph breaks. The rules for all calls: call_rules.cpp.
#include <opcode.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "bridge/aten/autograd_history.h"
#include "bridge/autograd/leaf_groups.h"
#include "bridge/decompositions/vmap_rules.h"
#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/of_type.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/eval/binders.h"
#include "frontend/eval/bytecode.h"
#include "frontend/eval/changers.h"
#include "frontend/feedback/eager_autograd_calls.h"
#include "frontend/feedback/external_generators.h"
#include "frontend/feedback/opaque_calls.h"
#include "frontend/feedback/specializations.h"
#include "frontend/guards/torch_settings.h"
#include "frontend/session/rules.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/call_filter.h"
#include "frontend/trace_rules/call_modes.h"
#include "frontend/trace_rules/context_variables.h"
#include "frontend/trace_rules/fast_operator_calls.h"
#include "frontend/trace_rules/other_tracers.h"
#include "frontend/trace_rules/polyfills.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/substitutes.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/value_objects.h"

namespace cresset::frontend {

// Builtins which inspect only the type of an argument, or an attribute that a hook reports.
static bool asks_one_question(PyObject* callable) {
  static PyObject* const builtins[] = {
      module_attribute("builtins", "isinstance"), module_attribute("builtins", "issubclass"),
      module_attribute("builtins", "getattr"), module_attribute("builtins", "hasattr")};
  return is_among(builtins, callable);
}

// Also given a class, they make no instance of it.
static bool makes_no_instances(PyObject* callable) {
  static PyObject* const builtins[] = {
      module_attribute("builtins", "super"),          module_attribute("builtins", "id"),
      module_attribute("builtins", "callable"),       module_attribute("builtins", "str"),
      module_attribute("builtins", "repr"),           module_attribute("builtins", "hash"),
      module_attribute("_abc", "_abc_instancecheck"), module_attribute("_abc", "_abc_subclasscheck")};
  return is_among(builtins, callable) || asks_one_question(callable);
}

// Builtins that move or count items without inspecting them.
static bool looks_at_items_only(PyObject* callable) {
  if (PyType_Check(callable)) return callable != (PyObject*)&PyUnicode_Type && callable != (PyObject*)&PyBytes_Type;
  static PyObject* const builtins[] = {module_attribute("builtins", "len"), module_attribute("builtins", "iter"),
                                       module_attribute("builtins", "next")};
  return is_among(builtins, callable) || asks_one_question(callable);
}

static bool is_call(const CressetActivation& activation) {
  return cresset_is_call(opcode_in_progress(activation)) != 0;
}

// The call runs Python code which nobody evaluates, and which may look at the thread's dispatch keys, as torch's
// tracers do: the thread has the keys of the program. The next segment brings the capture's keys back. Inside of a
// transform, levels of autograd hold symbolic sizes, which operators under the capture's key alone take.
static void end_before_native_call(bridge::Capture& capture, BreakReason why) {
  capture.flush(std::move(why));
  if (capture.closed() && !inside_transform()) bridge::Capture::leave_dispatch_state();
}

// A hook which autograd calls is about to be registered for a view, from which other tensors of the segment were
// computed: their gradients must pass the view, and the segment keeps autograd's own graph.
static void keep_graph_before_hook(OpenSegment& segment, PyObject* object) {
  if (object == nullptr || !is_tensor(object)) return;
  const bridge::AboveAutograd recording;
  std::vector<at::Tensor> live = segment.capture().held();
  for (const bridge::Storage& storage : segment.capture().storages())
    if (storage.real.defined() && storage.version != 0) live.push_back(storage.real);
  if (bridge::is_read_by_others(tensor_of(object), live))
    segment.refuse(BreakKind::RequiredGradients,
                   "gradients are wanted, and tensors are computed from a view with a hook");
}

// A Python function, which is evaluated unless its call mode says otherwise.
CressetAction Session::before_function(CressetActivation* activation, const CressetCall& call) {
  if (PyObject* inner = cresset_eval_inside(call.callable); inner != nullptr && provenance_.existed(call.callable))
    reads_.learn_function(inner);
  PyObject* wrapped = cresset_eval_wrapped(call.callable);
  if (wrapped != nullptr && provenance_.existed(call.callable)) reads_.learn_function(wrapped);
  PyObject* callee = wrapped != nullptr ? wrapped : call.callable;
  const bool by_autograd = !subgraphs_.is_inside() && calls_eager_autograd_function(callee, call);
  const bool by_tracer = is_tracer(callee, call);
  const CallMode mode = by_autograd || by_tracer ? CallMode::Disabled : call_mode(callee, activation->code);
  if (mode == CallMode::Evaluated) return CRESSET_RUN;
  operation_.in_progress().end();
  if (is_call(*activation)) {  // otherwise the bytecode shows another operation: a property, an operator method
    operation_.start(activation, Operation::Kind::Call, 0);
    operation_.in_progress().call = call;
  }
  if (mode == CallMode::Disabled) {
    segment_.capture().set_location();
    if (by_autograd)
      keep_graph_before_hook(segment_, PyMethod_Check(callee) ? PyMethod_GET_SELF(callee)
                                       : call.nargs > 0       ? call.args[0]
                                                              : nullptr);
    end_before_native_call(segment_.capture(), by_tracer ? BreakReason(BreakKind::OtherTracer, kTraces)
                                               : by_autograd
                                                   ? BreakReason(BreakKind::AutogradFeature, kEagerAutogradCall)
                                                   : why_disabled(callee));
  }
  return CRESSET_NATIVE;
}

static bool uses_up(const CCall& what, const CressetCall& call) {
  if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites) return true;
  const Py_ssize_t named = cresset_count_named(&call);
  return any_among(call.args, call.args + call.nargs + named,
                   [](PyObject* o) { return Py_TYPE(o)->tp_iternext != nullptr && PyIter_Check(o) != 0; });
}

// list.append and similar methods do not inspect a closed list.
static bool only_adds_to_growing(const CressetCall& call) {
  const CCall what = classify_call(call.callable, call.args, call.nargs);
  return what.effect == CEffect::Writes && what.self != nullptr && is_growing_container(what.self);
}

// A call of a generator function runs no code of it yet.
static bool makes_generator(PyObject* callable) {
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  constexpr int kKinds = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  return PyFunction_Check(callable) && (((PyCodeObject*)PyFunction_GET_CODE(callable))->co_flags & kKinds) != 0;
}

namespace {

// Builtins which answer questions about objects, and operators which look attributes up by name.
struct KnownQuestions {
  PyObject* is_callable = module_attribute("builtins", "callable");
  PyObject* id = module_attribute("builtins", "id");
  PyObject* has = module_attribute("builtins", "hasattr");
  PyObject* get = module_attribute("builtins", "getattr");
  PyObject* getter = module_attribute("operator", "attrgetter");
  PyObject* caller = module_attribute("operator", "methodcaller");

  bool looks_up_by_name(PyObject* object) const {
    return (PyObject*)Py_TYPE(object) == getter || (PyObject*)Py_TYPE(object) == caller;
  }
  bool needs_no_look(PyObject* callable) const {
    return asks_one_question(callable) || callable == is_callable || callable == id ||
           callable == (PyObject*)&PyType_Type;
  }
};

const KnownQuestions& known_questions() {
  static const KnownQuestions known;
  return known;
}

// Arguments which contain no objects and are not closed.
bool is_plain_argument(PyObject* o) {
  return is_plain_tensor(o) || PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyBool_Check(o) || o == Py_None ||
         PyFloat_CheckExact(o) || Py_IS_TYPE(o, &PyFunction_Type);
}

}  // namespace

// Whether C code may inspect a closed object, or read attributes without a hook.
struct Session::CallQuestions {
  Session& session;

  // hasattr() and getattr() of an object whose attribute no hook reports.
  bool asks_unreported_attribute(const CressetCall& call) const {
    const KnownQuestions& known = known_questions();
    if ((call.callable != known.has && call.callable != known.get) || call.nargs == 0) return false;
    if (session.provenance().is_opaque(call.args[0])) return true;
    return call.nargs > 1 && PyUnicode_Check(call.args[1]) &&
           (session.attributes().is_of_this_call(call.args[0], call.args[1]) ||
            is_data_of_other(call.args[0], call.args[1]));
  }

  // Most calls: nothing is closed, and the arguments are plain, or containers which the callee hands on.
  bool takes_plain_arguments(const CressetCall& call) const {
    if (session.provenance().any_opaque() || any_growing()) return false;
    bool holders = false;
    const auto is_value = [&](PyObject* o) {
      if (PyDict_CheckExact(o) || PyList_CheckExact(o)) return holders = true;
      if (!PyTuple_CheckExact(o)) return is_plain_argument(o);
      PyObject** const items = PySequence_Fast_ITEMS(o);
      return all_among(items, items + PyTuple_GET_SIZE(o), is_plain_argument);
    };
    if (!all_among(call.args, call.args + cresset_count_arguments(&call), is_value)) return false;
    if (is_method_wrapper(call.callable) || special_call(call.callable) != kOrdinaryCall) return false;
    return (!holders || hands_items_on(call.callable)) && !is_c_method_of_uninspected(call.callable);
  }

  bool is_c_method_of_uninspected(PyObject* callable) const {
    PyObject* const self = is_c_function(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
    return self != nullptr && !PyModule_Check(self) && session.provenance().is_uninspected_by_guards(self);
  }

  bool is_method_of_uninspected(PyObject* callable) const {
    if (is_c_function(callable)) return is_c_method_of_uninspected(callable);
    if (PyMethod_Check(callable) && !PyFunction_Check(PyMethod_GET_FUNCTION(callable)))
      return session.provenance().is_uninspected_by_guards(PyMethod_GET_SELF(callable));
    return is_method_wrapper(callable) &&
           session.provenance().is_uninspected_by_guards(decompose_wrapper(callable).self);
  }

  bool looks_inside(const CressetCall& call) const {
    if (makes_generator(call.callable)) return false;
    const KnownQuestions& known = known_questions();
    if (asks_unreported_attribute(call)) return true;
    if (known.needs_no_look(call.callable)) return false;
    const Py_ssize_t count = cresset_count_arguments(&call);
    const auto any = [&](auto&& is) { return any_among(call.args, call.args + count, is); };
    const auto looks_up = [&](PyObject* o) { return known.looks_up_by_name(o); };
    if (looks_up(call.callable))
      return any([&](PyObject* o) { return session.provenance().existed(o) && !is_plain_tensor(o); });
    if (takes_plain_arguments(call)) return false;
    if (any_growing() && only_adds_to_growing(call)) return false;
    if (is_method_of_uninspected(call.callable)) return true;
    if (PyType_Check(call.callable) && makes_foreign((PyTypeObject*)call.callable)) return true;
    if (enters_inference_apart(call.callable) || session.provenance().is_uninspected_by_guards(call.callable))
      return true;
    if (any([&](PyObject* o) { return looks_up(o) || session.provenance().is_uninspected_by_guards(o); })) return true;
    return !hands_items_on(call.callable) && any([&](PyObject* o) { return session.provenance().holds_foreign(o); });
  }
};

// Classes that are called, or passed to C code which may call them, create instances.
void Session::note_classes(const CressetCall& call) {
  const auto note = [&](PyObject* object) {
    if (PyType_Check(object) && provenance_.existed(object))
      segment_.guards().classes().makes_instances((PyTypeObject*)object);
  };
  note(call.callable);
  if (call.evaluated) return;
  PyObject* const* const end = call.args + cresset_count_arguments(&call);
  PyObject* const* first = call.args;
  while (first != end && PyType_Check(*first) == 0) ++first;
  if (first == end || makes_no_instances(call.callable)) return;
  for (; first != end; ++first) note(*first);
}

// The reason for a graph break at this call.
static std::string text_of(const CressetCall& call) {
  static PyObject* const assign = module_attribute(python_names::kBinding, "_assign");
  if (call.callable != assign || call.nargs != 3) return "a call of " + describe_callable(call.callable);
  return std::string("an assignment to the .") + utf8(call.args[1]) + " of a tensor";
}

// The item that the call adds to a set, if it is new and its lookup runs no program code.
static PyObject* new_item(const CCall& what, const CressetCall& call) {
  if (what.self == nullptr || !PySet_Check(what.self) || std::string_view(what.name) != "add") return nullptr;
  PyObject* const item = what.first < static_cast<size_t>(call.nargs) ? call.args[what.first] : nullptr;
  const bool by_identity = item != nullptr && !is_tensor(item) && is_equal_by_identity(item);
  if (item == nullptr || (!is_constant_value(item) && !by_identity)) return nullptr;
  return PySet_Contains(what.self, item) == 0 ? item : nullptr;
}

// Whether a dictionary method accesses a single key. *key is set if the call may also write; pure reads report their
// key.
static bool asks_for_one_key(const CCall& what, const CressetCall& call, PyObject** key) {
  if (what.self == nullptr || !PyDict_Check(what.self)) return false;
  const std::string_view name = what.name;
  if (name == "get" || name == "__getitem__" || name == "__contains__") return true;
  if (name != "setdefault" && name != "pop") return false;
  if (what.first >= static_cast<size_t>(call.nargs) || !is_constant_value(call.args[what.first])) return false;
  return *key = call.args[what.first], true;
}

// The caller of torch.autograd's Python functions, which run the engine.
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

// Whether the side effect is confined to the call's own tensors.
static bool stays_within(const CressetActivation& activation, const CCall& what, const CressetCall& call) {
  if (is_hook_of_own_node(what) || is_lock_of_cached_property(activation, what)) return true;
  if (!differentiates_own_tensors(what, call)) return false;
  const std::string_view name = what.name;
  if (name == "retain_grad") return !is_for_others(UseOfAutograd::Retains, activation.code);
  if (name != "run_backward" || !at::GradMode::is_enabled()) return true;
  return !is_for_others(UseOfAutograd::Frees, user_of_autograd(activation).code);
}

// Runs the call and its callees in CPython.
CressetAction Session::call_whole(CressetActivation* activation, const CressetCall& call) {
  if (provenance_.existed(call.callable)) reads_.learn_function(call.callable);
  operation_.start(activation, Operation::Kind::Call, 0);
  operation_.in_progress().call = call;
  segment_.capture().set_location();
  return end_before_native_call(segment_.capture(), {BreakKind::UntraceableFunction, kOpaqueCall}), CRESSET_NATIVE;
}

// The effect of a C function with these arguments.
CCall Session::effect_of(const CressetActivation& activation, const CressetCall& call) {
  CCall what = CallQuestions{*this}.looks_inside(call) || asks_for_types(call) ? CCall{CEffect::Untraceable}
                                                                               : classifier_.classify(call);
  if (what.effect == CEffect::Pure && (switches_tracer(what.name, call) || is_of_tracer_proxies(call)))
    what.effect = CEffect::Untraceable;
  const bool of_new =
      what.self != nullptr && !provenance_.existed(what.self) && std::string_view(what.name) == "__setstate__";
  if (what.effect == CEffect::Untraceable && (of_new || stays_within(activation, what, call)))
    what.effect = CEffect::Pure;
  return what;
}

// torch's Python code for iterating over a tensor calls unbind.
static bool takes_rows(PyObject* callable) {
  static PyObject *const function = module_attribute("torch", "unbind"), *const method = [] {
    return checked(PyObject_GetAttrString(module_attribute("torch._C", "TensorBase"), "unbind")).release();
  }();
  return callable == function || callable == method;
}

CressetAction Session::before_c_call(CressetActivation* activation, const CressetCall& given, PyObject** result) {
  if (given.nargs > 0 && takes_rows(given.callable)) note_rows(given.args[0]);
  operation_.start(activation, Operation::Kind::Call, 0);
  operation_.in_progress().call = given;
  if (!subgraphs_.is_inside() && !provenance_.any_opaque() && !any_growing() && !operation_.in_progress().in_transform)
    if (CCall what; is_plain_operator(given, &what))
      return lives_.forget_dying(), before_known_call(activation, what, given, result);
  if (!subgraphs_.is_inside() && calls_eager_autograd_function(given.callable, given)) {
    segment_.capture().set_location();
    end_before_native_call(segment_.capture(), {BreakKind::AutogradFeature, kEagerAutogradCall});
    return CRESSET_NATIVE;
  }
  CressetCall call = given;
  const bool names = names_attribute(call);  // an attribute name is inspected first
  CCall what = names ? CCall{} : effect_of(*activation, call);
  if (names || (what.effect != CEffect::Untraceable && any_symbolic_strings())) {
    if (looks_at_string_of_float(call))
      return segment_.capture().flush({BreakKind::SymbolicNumber, "a symbolic string with a float is inspected"}),
             CRESSET_RUN;
    if (look_at_strings(activation, call) || names) what = effect_of(*activation, call);
  }
  if (what.self != nullptr && PyContextVar_CheckExact(what.self)) {
    if (provenance_.existed(what.self)) writes_.use_context_variable(what.self, std::string_view(what.name) != "get");
    if (std::string_view(what.name) == "set") note_set(what.self, *activation, given);
    if (PyRef value = with_plain_numbers(call))
      return operation_.in_progress().end(), *result = value.release(), CRESSET_RESULT;
  }
  if (lives_.watches_death(what, call) || lives_.may_end_a_life(what))
    return segment_.refuse(BreakKind::ObjectLifetime, kWatchesDeaths),
           segment_.capture().flush({BreakKind::ObjectLifetime, kWatchesDeaths}), CRESSET_RUN;
  return before_known_call(activation, what, call, result);
}

// An older heap or sorted list: the order of its symbolic numbers may differ at each call.
static bool orders_symbols(const CCall& what, const CressetCall& call) {
  if (!what.by_arguments || what.self == nullptr || !PyList_CheckExact(what.self)) return false;
  const std::string_view name = what.name;
  if (!name.starts_with("heap") && !name.starts_with("insort")) return false;
  const auto is_symbol = [](PyObject* object) { return is_symbolic_number(object); };
  return holds_any(what.self, is_symbol) || any_among(call.args + 1, call.args + call.nargs, [&](PyObject* item) {
           return is_symbol(item) || holds_any(item, is_symbol);
         });
}

// Whether C code would specialize a number which has had too many values.
static bool specializes_any(Session& session, const CressetActivation& activation, const CressetCall& call,
                            bool is_operator) {
  if (!is_operator && !is_c_function(call.callable)) return false;
  std::vector<PyRef> unspecialized = unspecialized_among(call);
  if (unspecialized.empty() || !session.operation().may_break_at_specialization()) return false;
  session.operation().in_progress().unspecialized = std::move(unspecialized);
  session.operation().in_progress().of_operator = is_operator;
  static PyObject* const set_item = module_attribute(python_names::kPolyfills, "set_item");  // replaces a statement
  const bool for_caller = activation.function == set_item && activation.caller != nullptr;
  const CressetActivation& asks = for_caller ? *activation.caller : activation;
  return is_operator ? specializes_too_often(asks, call) : specializes_too_often(asks);
}

// The owner of the attribute which a call reads or sets, and the position of the attribute's name.
static std::pair<PyObject*, size_t> attribute_of(const CCall& what, const CressetCall& call) {
  return what.self != nullptr ? std::pair(what.self, what.first) : std::pair(call.args[0], size_t{1});
}

// Methods which hand out an item of the container.
static bool gives_item(std::string_view name, const CCall& what, const CressetCall& call) {
  static const std::unordered_set<std::string_view> kNames = {"pop",         "heappop", "heapreplace",
                                                              "heappushpop", "popleft", "setdefault"};
  if (name != "__getitem__") return kNames.contains(name);
  return what.first >= static_cast<size_t>(call.nargs) || !PySlice_Check(call.args[what.first]);
}

// The rules of calls of C functions with a known effect.
struct Session::KnownCallRules {
  using Action = std::optional<CressetAction>;

  Session& session;
  CressetActivation* activation;
  const CCall& what;
  const CressetCall& call;
  PyObject** result;

  bool is_pure() const { return what.effect == CEffect::Pure; }
  Action end_with(PyRef value) const {
    session.operation().in_progress().end();
    return value ? (*result = value.release(), CRESSET_RESULT) : CRESSET_FAIL;
  }
  Action flush(BreakKind kind, std::string why) const {
    return session.segment().capture().flush({kind, std::move(why)}), CRESSET_RUN;
  }

  Action numpy_arrays() const {
    if (what.effect != CEffect::Untraceable && !session.provenance().arrays().any()) return {};
    return session.call_of_arrays(activation, what, call, result);
  }

  // What the call does whatever follows: subgraphs, attributes, batching.
  Action notes() const {
    if (session.subgraphs().is_inside()) session.subgraphs().no_call_in_subgraph(what, call);
    if (what.effect == CEffect::SetsAttribute) session.writes().will_set_attribute(what, call);
    if (!session.batching_ && begins_batching(what.name))
      session.batching_ = std::make_shared<bridge::SymbolicBatching>();
    return {};
  }

  Action operator_in_transform() const {
    if (!is_pure()) return {};
    if (keeps_sizes(what.name))
      return flush(BreakKind::AutogradFeature, "an operator whose derivative keeps sizes, inside of a transform");
    if (!is_operator_on_wrappers(what.name, call)) return {};
    return end_with(call_on_wrappers(session.segment().capture(), call));
  }

  Action with_plain_numbers() const {
    PyRef value = is_pure() ? with_numbers_it_takes(call) : PyRef();
    return value ? end_with(std::move(value)) : std::nullopt;
  }

  // A function of torch: lists of sizes, tensors, numbers.
  Action torch_function() const {
    if (!is_pure()) return {};
    if (reads_foreign_memory(what)) return flush(BreakKind::MemoryAccess, "the memory of a tensor is asked for");
    if (reshapes_lazy_tensor(what))
      return flush(BreakKind::UnsupportedLayout, "a conjugated or negated tensor changes its shape in place");
    const Py_ssize_t named = cresset_count_named(&call);
    for (Py_ssize_t i = 0; i < call.nargs + named; ++i)
      is_tensor(call.args[i]) ? session.reads().hold_metadata(call.args[i]) : session.reads().read_deep(call.args[i]);
    if (specializes_any(session, *activation, call, /*is_operator=*/true))
      return flush(BreakKind::SymbolicNumber, text_of(call));
    return session.operation().in_progress().uses_up = uses_up(what, call), CRESSET_RUN;
  }

  Action graph_break() const {
    const bool untraceable = what.effect == CEffect::Untraceable;
    const bool ends = [&] {
      if (untraceable || specializes_any(session, *activation, call, /*is_operator=*/false)) return true;
      return what.self != nullptr && session.provenance().existed(what.self) &&
             session.operation().may_break_at_specialization() && orders_symbols(what, call);
    }();
    if (!ends) return {};
    const bool runs_frame = any_among(call.args, call.args + call.nargs, is_external_generator);
    flush(untraceable ? BreakKind::UntraceableFunction : BreakKind::SymbolicNumber, text_of(call));
    return runs_frame ? CRESSET_NATIVE : CRESSET_RUN;
  }

  // A C function which reads or writes containers.
  Action container_function() const {
    session.reads().note_keys(what, call);
    note_reads_of_self();
    const size_t count = static_cast<size_t>(call.nargs) + static_cast<size_t>(cresset_count_named(&call));
    const bool deep = what.effect == CEffect::Reads && !looks_at_items_only(call.callable);
    for (size_t i = what.first; i < count; ++i)
      deep ? session.reads().read_deep(call.args[i]) : session.reads().read_whole(call.args[i]);
    if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites)
      session.writes().will_write(what.self);
    if (PyObject* item = new_item(what, call)) session.writes().will_add(what.self, item);
    // str.format looks up attributes: "{0.n}".
    if (what.self != nullptr && PyUnicode_Check(what.self) && what.name == std::string_view("format"))
      for (size_t i = what.first; i < count; ++i)
        if (session.provenance().existed(call.args[i]) && !is_tensor(call.args[i]))
          session.attributes().read_all(call.args[i]);
    return session.operation().in_progress().uses_up = uses_up(what, call), CRESSET_RUN;
  }

  // Behind the call.
  void note_attribute_set() const {
    const auto [owner, at] = attribute_of(what, call);
    const size_t count = static_cast<size_t>(call.nargs);
    if (at >= count) return;
    PyObject* const value = at + 1 < count ? call.args[at + 1] : nullptr;
    CressetChanger changer;  // a Python setter was evaluated, and its writes are recorded
    if (cresset_find_changer(owner, call.args[at], value == nullptr, what.self != nullptr, &changer) != 0) return;
    session.writes().log_attribute(owner, call.args[at], value);
  }

  void note_container_call(PyObject* given) const {
    const std::string_view name = what.name;
    if (PyDict_Check(what.self) && (name == "get" || name == "__getitem__" || name == "__contains__") &&
        what.first < static_cast<size_t>(call.nargs)) {
      PyObject* key = call.args[what.first];
      PyObject* const value = value_under(what.self, key);  // the program compared the keys: use the call's result
      return session.reads().read_key(what.self, key,
                                      value != nullptr || name == "__contains__" || !asks_program(key) ? value : given);
    }
    if (what.effect == CEffect::Writes || what.effect == CEffect::ReadsAndWrites)
      session.writes().log_method(what, call);
    if (name == "__reduce_ex__" || name == "__reduce__" || name == "__getstate__")
      return session.attributes().read_all(what.self);
    if (gives_item(name, what, call)) session.reads().learn(given);
    if (name == "popitem" && PyTuple_CheckExact(given))  // a new pair
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) session.reads().learn(PyTuple_GET_ITEM(given, i));
  }

 private:
  void note_reads_of_self() const {
    PyObject* key = nullptr;
    const bool reads_self = what.effect != CEffect::Writes && what.self != nullptr;
    if (reads_self && !asks_for_one_key(what, call, &key)) session.reads().read_whole(what.self);
    if (key != nullptr) session.reads().read_contains(what.self, key);
  }
};

CressetAction Session::before_known_call(CressetActivation* activation, const CCall& what, const CressetCall& call,
                                         PyObject** result) {
  writes_.forget_asking(activation);
  static constexpr KnownCallRules::Action (KnownCallRules::* kRules[])() const = {
      &KnownCallRules::numpy_arrays,       &KnownCallRules::notes,          &KnownCallRules::operator_in_transform,
      &KnownCallRules::with_plain_numbers, &KnownCallRules::torch_function, &KnownCallRules::graph_break,
      &KnownCallRules::container_function,
  };
  const KnownCallRules rules{*this, activation, what, call, result};
  return first_action(rules, kRules, CRESSET_RUN);
}

// Handles methods of older containers passed to C code, which may call them without a hook: map(x.append, ...).
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
    if (self == nullptr || PyModule_Check(self) || !provenance_.existed(self) || !is_container(self)) continue;
    if (const CEffect effect = classifier_.classify(inner).effect;
        effect == CEffect::Writes || effect == CEffect::ReadsAndWrites)
      segment_.refuse(BreakKind::SideEffect,
                      "hands a method that changes a " + std::string(Py_TYPE(self)->tp_name) + " to C code");
    reads_.read_whole(self);
  }
}

// An operator that ended the segment is recorded too: the next capture ends before it specializes the numbers.
static void note_specializations(Session& session, const CressetActivation& activation, const CressetCall& call,
                                 PyObject* result, const std::vector<PyRef>& unspecialized, bool of_operator) {
  if (!is_plain_result(result)) return;
  for (const PyRef& number : unspecialized)
    if (of_operator && (!session.segment().is_open() || !is_unspecialized(number.get())))
      note_specialization(activation, call, number.get());
    else if (!of_operator && session.segment().is_open() && !is_unspecialized(number.get()))
      note_specialization(activation, number.get());
}

void Session::after_call(CressetActivation* activation, const CressetCall& call, PyObject** result,
                         PyObject* exception) {
  if (*result != nullptr && classifier_.is_plain_question(call)) return;
  const bool of_operator = operation_.in_progress().of_operator;
  const std::vector<PyRef> unspecialized = std::exchange(operation_.in_progress().unspecialized, {});
  operation_.in_progress().end();
  if (*result != nullptr && !unspecialized.empty())
    note_specializations(*this, *activation, call, *result, unspecialized, of_operator);
  if (exception != nullptr)
    if (PyRef given = done_with_plain_numbers(call, classifier_.classify(call).effect, exception))
      *result = given.release(), exception = nullptr;
  if (segment_.is_open()) return classifier_.note_question(call, *result), note_call(*activation, call, *result);
  operation_.after_end(activation, call, result, exception);
}

// The class that an abstract class is asked about; nullptr: another call.
static PyObject* asked_of_abstract_class(const CressetCall& call) {
  if (call.nargs != 2 || !PyType_Check(call.args[0])) return nullptr;
  static PyObject* const of_instance = module_attribute("_abc", "_abc_instancecheck");
  static PyObject* const of_class = module_attribute("_abc", "_abc_subclasscheck");
  if (call.callable == of_instance) return (PyObject*)Py_TYPE(call.args[1]);
  return call.callable == of_class && PyType_Check(call.args[1]) ? call.args[1] : nullptr;
}

void Session::note_call(const CressetActivation& activation, const CressetCall& call, PyObject* result) {
  if (was_plain_operator(call)) return;
  const CCall what = classifier_.classify(call);
  const KnownCallRules rules{*this, nullptr, what, call, nullptr};
  const std::string_view name = what.name;
  operation_.change_tangent_levels(changes_level(name));
  if (PyObject* const asked = asked_of_abstract_class(call); asked != nullptr && provenance_.existed(call.args[0]))
    segment_.guards().classes().abstract((PyTypeObject*)call.args[0], asked, result == Py_True);
  if (is_weakref(call.callable)) reads_.read_weakref(call.callable, result);
  if (addresses_.note_address(activation, call, result)) hooks_->tells_all = 1;
  if (what.self != nullptr && name == "__call__" && is_weakref(what.self)) reads_.read_weakref(what.self, result);
  if (what.effect == CEffect::Pure || what.effect == CEffect::Untraceable) return;
  if (what.effect == CEffect::GetsAttribute) {
    const auto [owner, at] = attribute_of(what, call);
    if (at < static_cast<size_t>(call.nargs)) attributes_.read_attribute(owner, call.args[at], result);
    return;
  }
  if (result == nullptr) return;
  if (what.effect == CEffect::SetsAttribute) return rules.note_attribute_set();
  if (what.self == nullptr) return;
  if (!provenance_.existed(what.self)) return is_container(what.self) ? reads_.meet_unknown(what.self) : void();
  rules.note_container_call(result);
}

}  // namespace cresset::frontend
