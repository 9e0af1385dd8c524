#include "frontend/session/session_lru_cache.h"

#include <algorithm>

#include "bridge/capture/sym_node.h"
#include "frontend/cpython/opaque_objects.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/feedback/feedback.h"
#include "frontend/feedback/thresholds.h"
#include "frontend/session/session.h"
#include "frontend/values/symbols.h"
#include "frontend/values/value_objects.h"

namespace cresset::frontend {
namespace {

bool all_items(PyObject* tuple, const std::function<bool(PyObject*)>& holds) {
  PyObject** const items = PySequence_Fast_ITEMS(tuple);
  return std::all_of(items, items + PyTuple_GET_SIZE(tuple), holds);
}

// Whether the argument may be symbolic, or another known object, when the function's code runs instead of a cache
// lookup.
bool may_vary(PyObject* arg, const std::function<bool(PyObject*)>& is_known) {
  if (is_symint(arg) || is_known(arg)) return true;
  return is_tuple_or_size(arg) && all_items(arg, [&](PyObject* item) { return may_vary(item, is_known); });
}

// The number's value in this call, without a guard. Empty if no value is known.
PyRef value_now(PyObject* number) {
  const c10::SymNode node = node_of(number);
  const auto* ours = dynamic_cast<bridge::SymNode*>(node.get());
  if (ours == nullptr || !node->is_int() || !node->has_hint()) return {};
  return checked(PyLong_FromLongLong(*ours->env()->hint(ours->expr())));
}

// A copy of tuples, lists, dictionaries and plain values with the current values of symbolic numbers. Empty if another
// object occurs, except in arguments: non-tuple arguments stay the same objects.
PyRef as_it_is_now(PyObject* object, bool argument) {
  if (is_symint(object)) return value_now(object);
  if (is_constant_value(object) && !PyTuple_Check(object) && !is_symbolic_number(object)) return PyRef::borrow(object);
  if (is_tuple_or_size(object) || (PyList_CheckExact(object) && !argument)) {
    const PyRef items = checked(PySequence_List(object));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyRef item = as_it_is_now(PyList_GET_ITEM(items.get(), i), argument);
      if (!item) return {};
      PyList_SetItem(items.get(), i, item.release());
    }
    return checked(PyObject_CallOneArg((PyObject*)Py_TYPE(object), items.get()));
  }
  if (argument) return PyRef::borrow(object);
  if (!PyDict_CheckExact(object)) return {};
  PyRef out = checked(PyDict_New());
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
    const PyRef item = as_it_is_now(value, argument);
    if (is_symbolic_number(key) || !is_constant_value(key) || !item) return {};
    if (PyDict_SetItem(out.get(), key, item.get()) < 0) throw PythonError{};
  }
  return out;
}

// The code of a cached function; empty unless it is a Python function.
PyRef code_of(PyObject* cached) {
  const PyRef wrapped = PyRef::steal(PyObject_GetAttrString(cached, "__wrapped__"));
  if (!wrapped) PyErr_Clear();
  return wrapped && PyFunction_Check(wrapped.get()) ? PyRef::borrow(PyFunction_GET_CODE(wrapped.get())) : PyRef();
}

PyObject* note_did_more(PyObject*, PyObject* function) {
  const PyRef code = code_of(function);
  Feedback* const known = Feedback::current();
  if (known == nullptr || !code) Py_RETURN_NONE;
  if (known->did_more.size() < threshold::kMostPlaces || known->did_more.count(code.get()) != 0)
    ++known->did_more.try_emplace(code.get(), code, 0).first->second.second;
  Py_RETURN_NONE;
}

void note_computes(PyObject* function) {
  Feedback* const feedback = Feedback::current();
  if (feedback == nullptr || feedback->did_more.empty()) return;
  const auto known = feedback->did_more.find(code_of(function).get());
  if (known != feedback->did_more.end()) known->second.second = 0;
}

bool does_more(PyObject* function) {
  const Feedback* const feedback = Feedback::current();
  if (feedback == nullptr || feedback->did_more.empty()) return false;
  const auto known = feedback->did_more.find(code_of(function).get());
  return known != feedback->did_more.end() && known->second.second >= threshold::kDidMore;
}

// (function, args, kwargs, result): returns False if the cache holds another result for the current values of the
// numbers. The cached result is then older than some change. The function's code is not run.
PyObject* may_give(PyObject*, PyObject* all) {
  try {
    PyObject *function, *args, *kwargs, *result;
    if (!PyArg_ParseTuple(all, "OO!O!O", &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs, &result))
      return nullptr;
    note_computes(function);
    const PyRef expected = as_it_is_now(result, /*argument=*/false);
    if (!expected) Py_RETURN_FALSE;
    const PyRef given = checked(PySequence_List(args));
    if (PyList_SetSlice(given.get(), PyTuple_GET_SIZE(args), PyTuple_GET_SIZE(args),
                        checked(PyDict_Values(kwargs)).get()) < 0)
      throw PythonError{};
    std::vector<PyRef> plain;
    std::vector<PyObject*> pointers;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given.get()); ++i) {
      plain.push_back(as_it_is_now(PyList_GET_ITEM(given.get(), i), /*argument=*/true));
      if (!plain.back()) Py_RETURN_FALSE;
      pointers.push_back(plain.back().get());
    }
    const PyRef names = checked(PySequence_Tuple(kwargs));
    PyObject* const kwnames = PyTuple_GET_SIZE(names.get()) != 0 ? names.get() : nullptr;
    const FunctionCache kept = function_cache(function, pointers.data(), PyTuple_GET_SIZE(args), kwnames);
    if (!kept.cache || PyDict_GetItemWithError(kept.cache.get(), kept.key.get()) == nullptr)
      return PyErr_Clear(), Py_NewRef(Py_True);
    const PyRef value = checked(PyObject_Vectorcall(function, pointers.data(), PyTuple_GET_SIZE(args), kwnames));
    const int same = PyObject_RichCompareBool(value.get(), expected.get(), Py_EQ);
    if (same < 0) PyErr_Clear();
    return PyBool_FromLong(same == 1 && Py_IS_TYPE(value.get(), Py_TYPE(expected.get())));
  } catch (const PythonError&) {
    return nullptr;
  }
}

// The value of a size or int; None for a data-dependent size.
PyObject* size_now(PyObject*, PyObject* size) {
  try {
    if (!is_symint(size)) return Py_NewRef(size);
    PyRef value = value_now(size);
    return value ? value.release() : Py_NewRef(Py_None);
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyMethodDef functions[] = {
    {"size_now", size_now, METH_O,
     "What a size is in this call, which no later one is held to. None: only data can tell."},
    {"cached_did_more", note_did_more, METH_O,
     "Its code did more than compute: soon its cache is asked between two graph segments."},
    {"cached_may_give", may_give, METH_VARARGS, "Whether a cached function may give what its code has given."},
    {nullptr, nullptr, 0, nullptr},
};

struct CachedCall {
  PyObject* function = nullptr;  // borrowed; null: not a call of a cached function
  std::vector<PyObject*> args;   // positional arguments, then keyword arguments
  Py_ssize_t nargs = 0;
};

CachedCall cached_call(const CressetCall& call) {
  static PyObject* const type = module_attribute("functools", "_lru_cache_wrapper");
  PyObject* const function = PyMethod_Check(call.callable) ? PyMethod_GET_FUNCTION(call.callable) : call.callable;
  if ((PyObject*)Py_TYPE(function) != type) return {};
  const Py_ssize_t named = cresset_count_named(&call);
  CachedCall out{function, {call.args, call.args + call.nargs + named}, call.nargs};
  if (function == call.callable) return out;
  out.args.insert(out.args.begin(), PyMethod_GET_SELF(call.callable));
  out.nargs += 1;
  return out;
}

}  // namespace

void add_cached_function_functions(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

// A missing cache value is computed as without cresset, because other users of the cache may read it later.
CressetAction Session::call_cached(const CressetActivation& activation, const CressetCall& call, PyObject** result) {
  const CachedCall cached = cached_call(call);
  if (cached.function == nullptr || !provenance_.existed(cached.function)) return CRESSET_RUN;
  const auto& [function, args, count] = cached;
  const auto is_known = [&](PyObject* arg) {
    if (PyType_Check(arg)) return true;  // calls share the classes of the first call (captured_classes.h)
    return is_constant_value(arg) || (provenance_.existed(arg) && !is_tensor(arg) && !is_symbolic_number(arg));
  };
  const bool plain =
      std::all_of(args.begin(), args.end(), [&](PyObject* arg) { return is_known(arg) || all_in_form(arg, is_known); });
  if (!plain) {
    static PyObject* const form = module_attribute(python_names::kCached, "by_its_code");
    const bool varies = std::all_of(args.begin(), args.end(), [&](PyObject* arg) { return may_vary(arg, is_known); });
    if (!varies || does_more(function) || activation.code == (PyCodeObject*)PyFunction_GET_CODE(form))
      return CRESSET_NATIVE;
    reads_.learn_function(form);
    return *result = provenance_.keep(checked(PyMethod_New(form, call.callable))), CRESSET_INSTEAD;
  }
  if (symbols_placed_) {  // a cache miss would run code that reads these symbols
    const FunctionCache known = function_cache(function, args.data(), count, call.kwnames);
    if (!known.cache || PyDict_GetItemWithError(known.cache.get(), known.key.get()) == nullptr)
      return PyErr_Clear(), CRESSET_NATIVE;
  }
  PyRef value;
  {
    const bridge::Capture::StepAside outside;
    value = PyRef::steal(PyObject_Vectorcall(function, args.data(), static_cast<size_t>(count), call.kwnames));
  }
  if (!value) return segment_.refuse(BreakKind::Raised, "a cached function raised"), CRESSET_FAIL;
  const FunctionCache kept = function_cache(function, args.data(), count, call.kwnames);
  PyObject* entry = kept.cache ? PyDict_GetItemWithError(kept.cache.get(), kept.key.get()) : nullptr;
  if (entry == nullptr)
    PyErr_Clear(), segment_.refuse(BreakKind::UnguardedState, "calls a cached function that keeps nothing");
  if (entry != nullptr) {
    reads_.learn(kept.cache.get());
    reads_.read_key(kept.cache.get(), kept.key.get(), entry);
  }
  reads_.learn(value.get());
  *result = value.release();
  return CRESSET_RESULT;
}

}  // namespace cresset::frontend
