// The evaluator's hooks: reads, writes, operators. Calls: session_calls.cpp, frames: entered_frames.cpp.
#include <opcode.h>
#include <torch/csrc/Exceptions.h>

#include <algorithm>
#include <string_view>

#include "bridge/symbolic/number_formatting.h"
#include "frontend/cache_entries/growing_containers.h"
#include "frontend/cpython/dict_keys.h"
#include "frontend/cpython/items.h"
#include "frontend/cpython/kept_for_good.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/eval/bytecode.h"
#include "frontend/feedback/opaque_calls.h"
#include "frontend/feedback/specializations.h"
#include "frontend/guards/tensor_class.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/polyfills.h"
#include "frontend/trace_rules/redundant_view_branch.h"
#include "frontend/trace_rules/special_cases.h"
#include "frontend/trace_rules/transforms.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbolic_strings.h"
#include "frontend/values/symbols.h"
#include "frontend/values/tensor_indices.h"

namespace cresset::frontend {

// A branch on a tensor or a data-dependent number: the segment ends, and a segment for this outcome begins.
int Session::truth(CressetActivation* activation, PyObject* value) {
  if (PyDict_Check(value)) return reads_.read_whole(value), CRESSET_TRUTH_RUN;  // a dict subclass: whether it is empty
  reads_.read_whole(value);
  if (provenance_.is_uninspected_by_guards(value))
    segment_.refuse(BreakKind::UnguardedState, std::string("asks for the truth of a ") + Py_TYPE(value)->tp_name);
  const bool number = is_symbolic_number(value);
  if (!number && operators_call_python()) return CRESSET_TRUTH_RUN;
  if (!number && !is_plain_tensor(value)) return CRESSET_TRUTH_RUN;
  if (number && !operators_call_python() &&
      do_spared_view(activation, value, [this](PyObject* object) { return provenance_.existed(object); }))
    return 0;
  if (number) note_decision(*activation);
  operation_.start(activation, Operation::Kind::Truth, 0);
  operation_.in_progress().operands[0] = value;
  const int answer = PyObject_IsTrue(value);
  operation_.in_progress().end();
  if (answer >= 0 && segment_.capture().closed()) maker_.go_on(activation, CRESSET_BEFORE, answer ? Py_True : Py_False);
  return answer;
}

namespace {

bool holds_symbol(PyObject* key) {
  if (!PyTuple_CheckExact(key)) return is_symint(key);
  PyObject** items = PySequence_Fast_ITEMS(key);
  return any_among(items, items + PyTuple_GET_SIZE(key), [](PyObject* item) { return is_symint(item); });
}

// Whether a tensor is stored at positions given by another tensor.
bool is_put(PyObject* key, PyObject* value) {
  if (!is_exact_tensor(value)) return false;
  if (!PyTuple_CheckExact(key)) return is_exact_tensor(key);
  PyObject** items = PySequence_Fast_ITEMS(key);
  return any_among(items, items + PyTuple_GET_SIZE(key), is_exact_tensor);
}

// tensor[n], or tensor[n] = value with a value, for a symbolic or data-dependent index n. Returns nothing, without an
// exception, when torch handles the operator.
PyRef at_symbol(PyObject* tensor, PyObject* given, PyObject* value) {
  if (!is_exact_tensor(tensor) || operators_call_python()) return {};
  const PyRef numbered = inside_transform() ? PyRef::borrow(given) : with_numbers_of_data(given);
  PyObject* const key = numbered.get();
  if (key == given && !holds_symbol(key) && (value == nullptr || !is_put(key, value))) return {};
  static PyObject* const get = module_attribute(python_names::kSubstitutes, "get_item");
  static PyObject* const set = module_attribute(python_names::kSubstitutes, "set_item");
  const NotEvaluated own_business;
  PyRef done = PyRef::steal(PyObject_CallFunctionObjArgs(value != nullptr ? set : get, tensor, key, value, nullptr));
  return done.get() == Py_NotImplemented ? PyRef() : done;
}

}  // namespace

namespace {

// Replaces the operands by plain numbers while the operator runs.
class PlainOperands {
 public:
  PlainOperands(const CressetOperator& op, InProgress& in_progress) {
    for (size_t i = 0; i < 2; ++i)
      if (op.operands[i] != nullptr)
        in_progress.operands[i] = (plain_[i] = without_symbols(PyRef::borrow(op.operands[i]))).get();
  }

 private:
  PyRef plain_[2];
};

}  // namespace

// Runs an opaque operator and its callees in CPython.
CressetAction Session::operate_whole(CressetActivation* activation, const CressetOperator& op, PyObject** result) {
  const bool takes_item = op.kind == CRESSET_OP_NEXT || op.kind == CRESSET_OP_ITER;
  if (takes_item && PyGen_CheckExact(op.operands[0])) {
    static PyObject* const instead = module_attribute(python_names::kPolyfills, "next_of_external_generator");
    if (op.kind == CRESSET_OP_ITER || !provenance_.is_opaque(op.operands[0])) return CRESSET_RUN;
    return reads_.learn(instead), *result = instead, CRESSET_INSTEAD;
  }
  const std::optional<Operation::Kind> kind = kind_of(op.kind);
  if (!kind || !is_opaque_call(*activation, nullptr)) return operate(activation, op, result);
  operation_.start(activation, *kind, op.operation);
  std::copy_n(op.operands, 2, operation_.in_progress().operands);
  segment_.capture().set_location();
  segment_.capture().flush({BreakKind::UntraceableFunction, kOpaqueCall});
  const PlainOperands plain(op, operation_.in_progress());  // the segment of these numbers has ended
  PyRef value = perform(operation_.in_progress().kept());
  operation_.in_progress().end();
  if (!value) return operation_.after_failure(activation), CRESSET_FAIL;
  operation_.go_on_with(activation, value);
  return *result = value.release(), CRESSET_RESULT;
}

// A store under a symbolic key, history[step] = loss: whether the key had too many different values.
static bool stores_by_any(Session& session, const CressetActivation& activation, const CressetWrite& write) {
  if (write.kind != CRESSET_WRITE_ITEM || write.value == nullptr || !PyDict_Check(write.owner)) return false;
  static PyObject* const ordered = module_attribute("collections", "OrderedDict");  // of hooks, with weak references
  if (Py_IS_TYPE(write.owner, (PyTypeObject*)ordered)) return false;
  if (!is_unspecialized(write.key) || !session.operation().may_break_at_specialization() ||
      !has_item_method_of_c(write.owner, "__setitem__"))
    return false;
  if (specializes_too_often(activation)) return true;
  return note_specialization(activation, write.key), false;
}

// foreign: a graph break is necessary.
CressetAction Session::operate_natively(CressetActivation* activation, const CressetOperator& op, Operation::Kind kind,
                                        bool foreign, PyObject** result) {
  operation_.start(activation, kind, op.operation);
  operation_.in_progress().operands[0] = op.operands[0];
  operation_.in_progress().operands[1] = op.operands[1];
  const PyObject* looked_into =
      op.operands[op.operands[1] != nullptr && provenance_.is_uninspected_by_guards(op.operands[1]) ? 1 : 0];
  if (foreign)
    segment_.capture().flush(
        {BreakKind::UnguardedState, std::string("an operator that looks into a ") + Py_TYPE(looked_into)->tp_name});
  std::optional<PlainOperands> plain;  // other C code would treat symbols as plain objects
  if (foreign) plain.emplace(op, operation_.in_progress());
  PyRef value = kind == Operation::Kind::Subscript ? at_symbol(op.operands[0], op.operands[1], nullptr) : PyRef();
  if (!value && PyErr_Occurred() == nullptr) {
    const Operation operation = operation_.in_progress().kept();
    std::optional<bridge::MakingString> text;
    if (kind == Operation::Kind::Format) text.emplace();
    const auto plainly = [&] {
      const PlainOperands operands(op, operation_.in_progress());
      return perform(operation_.in_progress().kept());
    };
    value = inside_transform() ? run_on_wrappers(
                                     segment_.capture(), [&] { return perform(operation); }, plainly)
                               : perform(operation);
  }
  operation_.in_progress().end();
  if (!value) return operation_.after_failure(activation), CRESSET_FAIL;
  operation_.go_on_with(activation, value);
  *result = value.release();
  return CRESSET_RESULT;
}

// Whether a Python __next__ was evaluated.
static bool advances_in_python(PyObject* iterator) {
  static PyObject* const name = PyUnicode_InternFromString("__next__");
  PyObject* next = is_heap_type(Py_TYPE(iterator)) ? _PyType_Lookup(Py_TYPE(iterator), name) : nullptr;
  return next != nullptr && PyFunction_Check(next);
}

// Whether the operands are plain values, which can only be addresses (CressetEvalHooks::tells_all).
static bool are_values(const CressetOperator& op) {
  return all_among(op.operands, op.operands + 2, [](PyObject* o) {
    return o == nullptr || o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
           PyUnicode_CheckExact(o);
  });
}

// Whether the evaluator may skip later reports of the same value by this instruction in this segment. Functions of the
// autograd graph report every object they reach.
static bool is_reported_for_good(Session& session, PyObject* value) {
  return !session.subgraphs().runs_record() && session.segment().is_open() && value != nullptr &&
         !PyGen_CheckExact(value) && !PyCoro_CheckExact(value);
}

uint64_t Session::next_segment() {
  static uint64_t last = 0;  // under the GIL
  return ++last;
}

// The hook table. C++ exceptions are converted here.
struct SessionHooks {
  // Hooks do nothing between segments, unless `always` is set.
  template <class F>
  static int guarded(void* session, F&& f, bool always = false) {
    try {
      if (always || static_cast<Session*>(session)->segment().is_open()) f(*static_cast<Session*>(session));
      return 0;
    } catch (const PythonError&) {
      return -1;
    } catch (python_error& e) {  // torch's own
      e.restore();
      return -1;
    } catch (const c10::Error&) {  // from a deferred operator: raised with eager's class and message
      torch::translate_exception_to_python(std::current_exception());
      return -1;
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
      return -1;
    }
  }

  static int read_name(void* s, CressetActivation* a, CressetNamespace where, PyObject* mapping, PyObject* name,
                       PyObject* value) {
    bool for_good = false;
    const int reported = guarded(s, [&](Session& session) {
      PyObject* globals = PyFunction_Check(a->function) ? PyFunction_GET_GLOBALS(a->function) : nullptr;
      if (where == CRESSET_IN_MODULES) return session.attributes().read_module(mapping, name, value);
      if (where == CRESSET_IN_LOCALS || globals == nullptr) return;
      if (where == CRESSET_IN_GLOBALS && keeps_for_good(a->code, name)) return session.reads().learn(value);
      session.reads().read_key(globals, name, where == CRESSET_IN_GLOBALS ? value : nullptr);
      if (where == CRESSET_IN_BUILTINS && PyDict_Check(mapping)) session.reads().read_key(mapping, name, value);
      for_good = is_reported_for_good(session, value);
    });
    return reported == 0 && for_good ? CRESSET_REPORTED : reported;
  }
  static int read_cell(void* s, CressetActivation*, PyObject* cell, int, PyObject* value) {
    return guarded(s, [&](Session& session) { session.reads().read_cell(cell, value); });
  }
  static int read_attribute(void* s, CressetActivation*, const CressetAttributeRead* read) {
    bool as_call = false, by_getattr = false, for_good = false;
    const int reported = guarded(s, [&](Session& session) {
      if (read->place == CRESSET_AT_GETSET) adopt(read->value);  // x.shape
      by_getattr = session.attributes().looks_into_opaque(*read);
      if (by_getattr) return;
      session.attributes().read_attribute(*read);
      as_call = asks_for_data(*read);
      for_good = read->place == CRESSET_AT_MODULE && session.provenance().existed(read->owner) &&
                 is_reported_for_good(session, read->value);
    });
    if (reported == 0 && for_good) return CRESSET_REPORTED;
    return reported < 0 ? reported : as_call ? CRESSET_READ_AS_CALL : by_getattr ? CRESSET_READ_BY_GETATTR : 0;
  }
  static int read_item(void* s, CressetActivation* a, PyObject* container, PyObject* key, PyObject* value) {
    const auto reported = [&](Session& session) {
      if (session.segment().is_open()) {
        if (!session.writes().did_insert(container, key, value)) session.reads().read_item(container, key, value);
        return;
      }
      // The factory of a defaultdict ended the segment: the stored key may still be symbolic.
      if (session.operation().was_in_call_at_the_end(a) && is_container(container))
        without_symbols(PyRef::borrow(container));
    };
    return guarded(s, reported, /*always=*/true);
  }
  static int read_contents(void* s, CressetActivation*, PyObject* container) {
    return guarded(s, [&](Session& session) {
      if (session.provenance().is_uninspected_by_guards(container))
        session.segment().refuse(BreakKind::UnguardedState,
                                 std::string("takes the items of a ") + Py_TYPE(container)->tp_name);
      session.reads().read_whole(container);
    });
  }
  static int read_length(void* s, CressetActivation*, PyObject* container, Py_ssize_t) {
    return guarded(s, [&](Session& session) { session.reads().read_whole(container); });
  }
  static int read_iterator(void* s, CressetActivation*, PyObject* iterable, PyObject*) {
    return guarded(s, [&](Session& session) {
      if (PyIter_Check(iterable)) session.subgraphs().no_effect_on(iterable, "it advances an iterator from outside");
      session.reads().read_whole(iterable);
    });
  }
  static int read_contains(void* s, CressetActivation*, PyObject* container, PyObject* item, int found) {
    return guarded(s, [&](Session& session) { session.reads().read_contains(container, item, found != 0); });
  }
  static int read_is(void* s, CressetActivation*, PyObject* left, PyObject* right, int) {
    if (left == Py_None || right == Py_None) return 0;
    return guarded(s, [&](Session& session) { session.reads().note_is(left, right); });
  }
  static int read_default(void* s, CressetActivation*, PyObject* function, Py_ssize_t, PyObject* keyword,
                          PyObject* value) {
    return guarded(s, [&](Session& session) {
      if (session.provenance().existed(function)) session.frames().learn_default(function, keyword, value);
    });
  }
  // Whether the write fills a cache of torch, which later calls do not repeat.
  static bool is_torchs_own(const CressetActivation& a, const CressetWrite& write) {
    return write.kind == CRESSET_WRITE_GLOBAL && keeps_for_good(a.code, write.key);
  }
  static int before_write(void* s, CressetActivation* a, const CressetWrite* write) {
    bool done = false, as_call = false;
    if (is_torchs_own(*a, *write)) return 0;
    const int reported = guarded(s, [&](Session& session) {
      const bool is_stored = write->kind == CRESSET_WRITE_ITEM && write->value != nullptr;
      as_call = stores_by_any(session, *a, *write) || (is_stored && is_opaque_call(*a, nullptr)) ||
                session.writes().before_write(*write);
      if (as_call) return;
      if (!is_stored) return;
      done = static_cast<bool>(at_symbol(write->owner, write->key, write->value));
      if (!done && PyErr_Occurred() != nullptr) throw PythonError{};
    });
    return reported < 0 ? reported : as_call ? CRESSET_WRITE_AS_CALL : done;
  }
  static int after_write(void* s, CressetActivation* a, const CressetWrite* write) {
    if (is_torchs_own(*a, *write)) return 0;
    const auto reported = [&](Session& session) {
      if (session.segment().is_open()) return session.writes().after_write(*write);
      // The key's hash or comparison ended the segment: the value, taken before, may still be symbolic.
      if (session.operation().was_in_call_at_the_end(a) && is_container(write->owner))
        without_symbols(PyRef::borrow(write->owner));
    };
    return guarded(s, reported, /*always=*/true);
  }
  static CressetAction before_call(void* s, CressetActivation* activation, const CressetCall* call, PyObject** result) {
    CressetAction action = CRESSET_RUN;
    const int done = guarded(s, [&](Session& session) {
      adopt_arguments(*call);
      action = session.before_call(activation, *call, result);
      if (action == CRESSET_RESULT) adopt(*result);
    });
    return done < 0 ? CRESSET_FAIL : action;
  }
  static int after_call(void* s, CressetActivation* activation, const CressetCall* call, PyObject** result,
                        PyObject* exception) {
    return guarded(
        s,
        [&](Session& session) {
          adopt(*result);
          session.after_call(activation, *call, result, exception);
        },
        /*always=*/true);
  }
  static int same(void* s, CressetActivation*, PyObject* left, PyObject* right) {
    const auto may_be = [](PyObject* object) {
      return is_symint(object) || is_symbool(object) || is_symbolic_string(object);
    };
    if (left == right || (!may_be(left) && !may_be(right))) return CRESSET_TRUTH_RUN;
    int answer = CRESSET_TRUTH_RUN;
    const int done = guarded(s, [&](Session& session) { answer = session.same(left, right); });
    return done < 0 ? done : answer;
  }
  static int truth(void* s, CressetActivation* activation, PyObject* value) {
    int answer = CRESSET_TRUTH_RUN;
    const int done = guarded(s, [&](Session& session) { answer = session.truth(activation, adopt(value)); });
    return done < 0 ? done : answer;
  }
  static CressetAction before_operator(void* s, CressetActivation* activation, const CressetOperator* op,
                                       PyObject** result) {
    CressetAction action = CRESSET_RUN;
    if (op->kind == CRESSET_OP_ITER) note_rows(op->operands[0]);
    const int done = guarded(s, [&](Session& session) {
      adopt_operands(*op);
      if (op->kind == CRESSET_OP_SUBSCRIPT && PyDict_CheckExact(op->operands[0]) && !is_symint(op->operands[1]))
        return session.provenance().existed(op->operands[0]) ? session.reads().learn_keys(op->operands[0]) : void();
      const bool asks_for_addresses = session.addresses().any_addresses();
      if (asks_for_addresses) session.addresses().use_addresses(*op);
      if (!asks_for_addresses || !are_values(*op)) action = session.operate_whole(activation, *op, result);
      if (action == CRESSET_RESULT) adopt(*result);
    });
    return done < 0 ? CRESSET_FAIL : action;
  }
  static int read_next(void* s, CressetActivation*, PyObject* iterator, PyObject* value) {
    return guarded(s, [&](Session& session) {
      adopt(value);
      if (session.provenance().existed(iterator) && !advances_in_python(iterator) &&
          !session.provenance().is_opaque(iterator))
        session.segment().refuse(BreakKind::SideEffect, "advances an iterator that was there before");
    });
  }
  // int(x), x[i] and similar operations accept only plain numbers from __int__ and __index__.
  static PyObject* return_to_c(void*, CressetActivation* activation, PyObject* value) {
    if (is_symbolic_string(value)) return PyObject_Str(value);  // repr(x) and similar functions accept only a str
    if (!is_symbolic_number(value)) return Py_NewRef(value);
    const auto truth = [&]() -> PyObject* {
      const int answer = PyObject_IsTrue(value);
      return answer < 0 ? nullptr : PyBool_FromLong(answer);
    };
    if (activation->continuation == CRESSET_THEN_BRANCH) return truth();
    const std::string_view name = utf8(activation->code->co_name);
    if (name == "__float__" || name == "__complex__") return PyNumber_Float(value);
    if (name == "__bool__") return truth();
    if (name == "__int__" || name == "__index__" || name == "__len__" || name == "__hash__" ||
        name == "__length_hint__")
      return PyNumber_Index(value);
    return Py_NewRef(value);
  }
  static CressetAction enter_frame(void* s, CressetActivation* activation) {
    CressetAction action = CRESSET_RUN;
    if (activation->instruction < 0) note_frame(*activation);
    const auto enter = [&](Session& session) { action = session.frames().enter(*activation); };
    return guarded(s, enter, /*always=*/true) < 0 ? CRESSET_FAIL : action;
  }
  static void unseen(void* s) {
    const SavedError pending;
    static_cast<Session*>(s)->frames().unseen();
  }
};

// Names for messages: a method's object, and the variables of the function's closure.
static void name_roots(StateGuards& guards, PyObject* function) {
  PyObject* plain = function;
  if (PyMethod_Check(function)) {
    plain = PyMethod_GET_FUNCTION(function);
    const bool of_module =
        PyFunction_Check(plain) &&
        PyUnicode_CompareWithASCIIString(((PyFunctionObject*)plain)->func_name, "_wrapped_call_impl") == 0;
    guards.name(PyMethod_GET_SELF(function), of_module ? "model" : "self");
  }
  PyObject* const closure = PyFunction_Check(plain) ? PyFunction_GET_CLOSURE(plain) : nullptr;
  if (closure == nullptr) return;
  const PyRef names = PyRef::steal(PyCode_GetFreevars((PyCodeObject*)PyFunction_GET_CODE(plain)));
  if (!names) return PyErr_Clear();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(closure) && i < PyTuple_GET_SIZE(names.get()); ++i)
    guards.name(PyTuple_GET_ITEM(closure, i), utf8(PyTuple_GET_ITEM(names.get(), i)));
}

PyRef Session::call(PyObject* function, PyObject* args, PyObject* kwargs) {
  reads_.learn_function(function);
  name_roots(segment_.guards(), function);
  return watched([&] { return PyRef::steal(cresset_eval_call(function, args, kwargs)); });
}

PyRef Session::resume(const Place& place, PyRef contents, PyObject* value, PyObject* exception) {
  frames_.resume_outermost();
  return watched([&] { return frontend::resume(place, std::move(contents), value, exception, /*natively=*/false); });
}

namespace {
thread_local Session* current_session = nullptr;
}
Session* Session::current() { return current_session; }
Session* Session::exchange_current(Session* other) { return std::exchange(current_session, other); }

PyRef Session::watched(const std::function<PyRef()>& run) {
  static auto* const symint = symint_class();
  CressetEvalHooks hooks{};
  CressetEvalHooks* const hooks_around = std::exchange(hooks_, &hooks);
  hooks.session = this;
  hooks.tells_all = !addresses_.any_addresses() ? 0 : 1;
  hooks.reported = next_segment();
  hooks.read_name = &SessionHooks::read_name;
  hooks.read_cell = &SessionHooks::read_cell;
  hooks.read_attribute = &SessionHooks::read_attribute;
  hooks.read_item = &SessionHooks::read_item;
  hooks.read_contents = &SessionHooks::read_contents;
  hooks.read_length = &SessionHooks::read_length;
  hooks.read_iterator = &SessionHooks::read_iterator;
  hooks.read_contains = &SessionHooks::read_contains;
  hooks.read_is = &SessionHooks::read_is;
  hooks.read_default = &SessionHooks::read_default;
  hooks.read_next = &SessionHooks::read_next;
  hooks.before_write = &SessionHooks::before_write;
  hooks.after_write = &SessionHooks::after_write;
  hooks.truth = &SessionHooks::truth;
  hooks.same = &SessionHooks::same;
  hooks.before_operator = &SessionHooks::before_operator;
  hooks.before_call = &SessionHooks::before_call;
  hooks.after_call = &SessionHooks::after_call;
  hooks.return_to_c = &SessionHooks::return_to_c;
  hooks.unseen = &SessionHooks::unseen;
  hooks.enter_frame = &SessionHooks::enter_frame;
  cresset_symint_type = symint;
  if (cresset_eval_begin(&hooks) < 0) throw PythonError{};
  Session* const around = std::exchange(current_session, this);
  PyRef result = run();
  current_session = around;
  hooks_ = hooks_around;
  cresset_eval_end();
  return result;
}

}  // namespace cresset::frontend
