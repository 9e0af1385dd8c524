#include "frontend/api/control.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <vector>

#include "bridge/capture/capture.h"
#include "bridge/capture/sym_node.h"
#include "frontend/api/compiled_function.h"
#include "frontend/api/nested_modules.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/segments/call_capture.h"
#include "frontend/session/session.h"
#include "frontend/trace_rules/call_modes.h"
#include "frontend/trace_rules/hook_ids.h"
#include "frontend/trace_rules/number_operators.h"
#include "frontend/trace_rules/polyfills.h"
#include "frontend/trace_rules/substitutes.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/pending_error.h"
#include "frontend/values/symbols.h"
#include "frontend/values/wrapper_tensors.h"
#include "sym/explain.h"

namespace cresset::frontend {
namespace {

// The capture of the open segment on this thread, or nullptr.
bridge::Capture* open_capture() {
  bridge::Capture* capture = is_capturing() ? bridge::Capture::current() : nullptr;
  return capture != nullptr && !capture->closed() ? capture : nullptr;
}

PyObject* text(const std::string& utf8) { return PyUnicode_FromStringAndSize(utf8.data(), (Py_ssize_t)utf8.size()); }

PyObject* list_of(const std::vector<std::string>& texts) {
  PyRef out = checked(PyList_New(0));
  for (const std::string& t : texts)
    if (PyList_Append(out.get(), checked(text(t)).get()) < 0) throw PythonError{};
  return out.release();
}

// Converts C++ exceptions to Python exceptions.
template <class F>
PyObject* guarded(F&& f) {
  HANDLE_TH_ERRORS
  try {
    return f();
  } catch (const PythonError&) {
    return nullptr;
  }
  END_HANDLE_TH_ERRORS
}

PyObject* note_reentrant(PyObject*, PyObject*) {
  if (bridge::Capture* const capture = open_capture()) capture->counters.reentrant = true;
  Py_RETURN_NONE;
}

PyObject* is_compiling(PyObject*, PyObject*) { return PyBool_FromLong(open_capture() != nullptr); }

// Forces a graph break here. A deferred operator's error is raised here.
PyObject* graph_break(PyObject*, PyObject* reason) {
  return guarded([&]() -> PyObject* {
    bridge::Capture* capture = open_capture();
    if (capture == nullptr || capture->recording != 0) return Py_NewRef(Py_None);
    capture->set_location();
    const char* why = PyUnicode_AsUTF8(reason);
    if (why == nullptr) throw PythonError{};
    capture->flush({BreakKind::UserRequest, why});
    return Py_NewRef(Py_None);
  });
}

PyObject* begin_tangents(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    bridge::Capture* const capture = open_capture();
    Session* const session = capture != nullptr && capture->recording == 0 ? Session::current() : nullptr;
    if (session != nullptr && session->maker().begins_plainly())
      capture->flush({BreakKind::AutogradFeature, "torch.func's forward differentiation"});
    return Py_NewRef(Py_None);
  });
}

PyObject* has_failed(PyObject*, PyObject*) {
  const bridge::Capture* const capture = is_capturing() ? bridge::Capture::current() : nullptr;
  return PyBool_FromLong(capture != nullptr && capture->failed());
}

PyObject* captured_graph(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    bridge::Capture* capture = open_capture();
    return capture != nullptr ? text(graph::print(capture->graph())) : Py_NewRef(Py_None);
  });
}

// The guards of later calls, as far as they are known.
PyObject* captured_guards(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::vector<std::string> out;
    if (bridge::Capture* capture = open_capture()) {
      for (const sym::SizeGuard& guard : capture->env().guards()) out.push_back(sym::describe(capture->env(), guard));
      if (const Session* session = Session::current())
        for (std::string& guard : session->segment().guards().texts()) out.push_back(std::move(guard));
    }
    return list_of(out);
  });
}

// ---- Functions that run in CPython while only their callees are compiled

struct Shallow {
  PyObject* compiled_callee;         // returns the compiled form of a function, or None
  CressetActivation* own = nullptr;  // the frame of the function itself

  static CressetAction enter_frame(void* self, CressetActivation* activation) {
    auto& shallow = *static_cast<Shallow*>(self);
    if (shallow.own != nullptr) return CRESSET_NATIVE;
    shallow.own = activation;
    return CRESSET_RUN;
  }
  static CressetAction before_call(void* self, CressetActivation* activation, const CressetCall* call,
                                   PyObject** result) {
    auto& shallow = *static_cast<Shallow*>(self);
    if (activation != shallow.own || !call->evaluated) return CRESSET_RUN;
    PyObject* callable = call->callable;
    std::vector<PyObject*> args;
    if (PyMethod_Check(callable)) {
      args.push_back(PyMethod_GET_SELF(callable));
      callable = PyMethod_GET_FUNCTION(callable);
    }
    if (!PyFunction_Check(callable)) return CRESSET_NATIVE;
    const NotEvaluated own_business;
    const PyRef compiled = PyRef::steal(PyObject_CallOneArg(shallow.compiled_callee, callable));
    const Py_ssize_t named = call->kwnames != nullptr ? PyTuple_GET_SIZE(call->kwnames) : 0;
    const size_t positional = args.size() + static_cast<size_t>(call->nargs);
    args.insert(args.end(), call->args, call->args + call->nargs + named);
    if (compiled)
      *result = PyObject_Vectorcall(compiled.get() == Py_None ? callable : compiled.get(), args.data(), positional,
                                    call->kwnames);
    return compiled && *result != nullptr ? CRESSET_RESULT : CRESSET_FAIL;
  }
};

// (function, args, kwargs, compiled_callee)
PyObject* call_shallow(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 4) return PyErr_Format(PyExc_TypeError, "call_shallow: 4 arguments");
  if (!inside_compiled_call() || is_capturing()) return PyObject_Call(args[0], args[1], args[2]);
  Shallow shallow{args[3]};
  CressetEvalHooks hooks{};
  hooks.session = &shallow;
  hooks.enter_frame = &Shallow::enter_frame;
  hooks.before_call = &Shallow::before_call;
  if (cresset_eval_begin(&hooks) < 0) return nullptr;
  PyObject* result = cresset_eval_call(args[0], args[1], args[2]);
  cresset_eval_end();
  return result;
}

// The object with symbolic numbers replaced by plain numbers.
PyObject* plain(PyObject*, PyObject* object) {
  return guarded([&] { return without_symbols(PyRef::borrow(object)).release(); });
}

PyObject* is_own(PyObject*, PyObject* object) {
  Session* const session = is_capturing() ? Session::current() : nullptr;
  return PyBool_FromLong(session != nullptr && session->is_own(object));
}

// A size as printed in graphs: "s0 + 1". None: not symbolic.
PyObject* size_text(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    if (!is_symint(object)) return Py_NewRef(Py_None);
    const auto size = pybind11::cast<c10::SymInt>(pybind11::handle(object));
    const auto* node = dynamic_cast<const bridge::SymNode*>(size.toSymNode().get());
    return node != nullptr ? text(node->env()->to_string(node->expr())) : Py_NewRef(Py_None);
  });
}

PyObject* known_true(PyObject*, PyObject* number) {
  return guarded([&] { return PyBool_FromLong(node_of(number)->statically_known_true(__FILE__, __LINE__)); });
}

PyObject* see_through_wrappers(PyObject*, PyObject* args) {
  PyObject* code;
  Py_ssize_t cell;
  if (PyArg_ParseTuple(args, "O!n", &PyCode_Type, &code, &cell) == 0) return nullptr;
  return cresset_eval_see_through_wrappers(code, cell), Py_NewRef(Py_None);
}

PyObject* looks_in_stores(PyObject*, PyObject* args) {
  PyObject *code, *names;
  if (PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &PyTuple_Type, &names) == 0) return nullptr;
  return cresset_eval_looks_in_stores(code, names), Py_NewRef(Py_None);
}

PyObject* show_as(PyObject*, PyObject* args) {
  PyTypeObject *symbolic, *plain;
  if (PyArg_ParseTuple(args, "O!O!", &PyType_Type, &symbolic, &PyType_Type, &plain) == 0) return nullptr;
  return guarded([&] { return show_number_as(symbolic, plain), Py_NewRef(Py_None); });
}

PyObject* make_number_operator(PyObject*, PyObject* args) {
  PyTypeObject* type;
  const char* name;
  PyObject* otherwise;
  if (PyArg_ParseTuple(args, "O!sO", &PyType_Type, &type, &name, &otherwise) == 0) return nullptr;
  return number_operator(type, name, otherwise);
}

PyObject* computed(PyObject*, PyObject* args) {
  const char* name;
  PyObject *a, *b = nullptr;
  if (PyArg_ParseTuple(args, "sO|O", &name, &a, &b) == 0) return nullptr;
  PyRef number = computed_number(name, a, b);
  return number ? number.release() : Py_NewRef(Py_None);
}

// Inside a segment the assignment is a call, which may cause a graph break.
PyObject* assign(PyObject*, PyObject* args) {
  PyObject *owner, *name, *value;
  if (PyArg_ParseTuple(args, "OUO", &owner, &name, &value) == 0) return nullptr;
  return PyObject_SetAttr(owner, name, value) < 0 ? nullptr : Py_NewRef(Py_None);
}

PyObject* exchange_fallback(PyObject*, PyObject* other) {
  const size_t of = PyLong_AsSize_t(other);
  return PyErr_Occurred() != nullptr ? nullptr : PyLong_FromSize_t(exchange_eager_fallback(of));
}

PyObject* hook_number(PyObject*, PyObject*) { return PyLong_FromLongLong(HooksOfCall::next_number()); }

PyObject* note_hook(PyObject*, PyObject* args) {
  PyObject *handle, *references;
  if (PyArg_ParseTuple(args, "OO!", &handle, &PyTuple_Type, &references) == 0) return nullptr;
  return guarded([&] {
    Session* const session = is_capturing() ? Session::current() : nullptr;
    PyObject* const dictionary = PyWeakref_GetObject(PyTuple_GetItem(references, 0));
    HooksOfCall::note(handle, references, session != nullptr && session->is_own(dictionary));
    return Py_NewRef(Py_None);
  });
}

// (builtin, function for calls with symbolic numbers)
PyObject* mark(PyObject*, PyObject* args) {
  PyObject *function, *why;
  const char* kind = nullptr;
  int outside_torch = 0;
  if (PyArg_ParseTuple(args, "O!O|sp", &PyFunction_Type, &function, &why, &kind, &outside_torch) == 0) return nullptr;
  return guarded([&] {
    mark_function(function, why, kind, outside_torch != 0);
    return Py_NewRef(Py_None);
  });
}

PyObject* set_call_for_symbols(PyObject*, PyObject* args) {
  PyObject *original, *function;
  if (PyArg_ParseTuple(args, "OO!", &original, &PyFunction_Type, &function) == 0) return nullptr;
  frontend::call_for_symbols(original, function);
  return Py_NewRef(Py_None);
}

PyMethodDef functions[] = {
    {"note_reentrant", note_reentrant, METH_NOARGS, "A reentrant checkpoint takes part in the gradients."},
    {"is_compiling", is_compiling, METH_NOARGS, "Whether the program around this call is being captured."},
    {"graph_break", graph_break, METH_O, "Ends what is being captured here, for the reason that is given."},
    {"_begin_tangents", begin_tangents, METH_NOARGS,
     "Breaks the graph where later code may need plain sizes, and the call cannot be captured again."},
    {"_has_failed", has_failed, METH_NOARGS,
     "Whether the graph segment has ended, and one of its operators has raised."},
    {"captured_graph", captured_graph, METH_NOARGS, "The graph so far, as text; None when nothing is captured."},
    {"captured_guards", captured_guards, METH_NOARGS, "The guards so far, as texts."},
    {"call_shallow", (PyCFunction)(void (*)(void))call_shallow, METH_FASTCALL,
     "Calls a function so that inside a compiled call the functions that it calls are compiled, not itself."},
    {"plain", plain, METH_O, "The object with plain numbers for symbolic ones."},
    {"_is_own", is_own, METH_O, "Whether the call that is captured made the object."},
    {"_make_wrapper", make_wrapper_of_call, METH_VARARGS, "A tensor of a class with __torch_dispatch__."},
    {"size_text", size_text, METH_O, "The expression of a symbolic size; None for others."},
    {"_hide_frames", hide_frames, METH_O, "Frames of this code are passed over where Python looks at the stack."},
    {"_use_polyfills", use_polyfills, METH_VARARGS, "What is evaluated in the place of builtins."},
    {"_use_loops", use_loops, METH_O, "Registers polyfills for itertools in the head of a loop."},
    {"_substitute", substitute, METH_VARARGS,
     "(original, function[, self]): what is called in the place of a function, of the method of that object alone."},
    {"_asks_compiling", asks_compiling, METH_O, "The function that is true while a program is captured."},
    {"_exchange_compiling", exchange_compiling, METH_O,
     "Whether torch.compiler.is_compiling() is true in this thread, as a number; the given one takes its place."},
    {"_bookkeeping", bookkeeping, METH_VARARGS,
     "(owner, name, is_counter) of what is no state of the program's: neither reads nor next() count."},
    {"_use_numbers", use_numbers, METH_VARARGS, "The classes of symbolic ints, floats and bools of captures."},
    {"_adopt", adopt_object, METH_O, "The object, whose numbers are of these classes from now on."},
    {"_mark", mark, METH_VARARGS,
     "(function, why, kind, outside_torch): it is called natively (None), or kept out for that reason."},
    {"_mark_of", mark_of, METH_O, "(None,) or (why,) of a function that is marked; None of others."},
    {"_use_decomposition", use_decomposition, METH_VARARGS,
     "What is evaluated in the place of a C function that is given symbols."},
    {"_decomposition_in", decomposition_in, METH_VARARGS,
     "Which module has the form of a C function, until that is wanted."},
    {"_mark_when_met", mark_when_met, METH_VARARGS,
     "What marks functions of the module of that name, called before the first of them is."},
    {"_effect_of", effect_of, METH_VARARGS, "What becomes of a call of a C function."},
    {"_see_through_wrappers", see_through_wrappers, METH_VARARGS,
     "Functions of this code are called as what the cell of that index in their closure holds."},
    {"_looks_in_stores", looks_in_stores, METH_VARARGS,
     "A __getattr__ of this code looks in the instance's dictionaries of these names, and nowhere else."},
    {"_show_as", show_as, METH_VARARGS, "Gives a class of symbolic numbers the `__class__` of the plain ones."},
    {"_number_operator", make_number_operator, METH_VARARGS,
     "A method of symbolic ints for this class, with the function that does what it does not."},
    {"_computed", computed, METH_VARARGS,
     "The symbol of what an operation on bits, a shift, a remainder gives of symbols; None where there is none."},
    {"_known_true", known_true, METH_O, "Whether a symbolic bool is proved to be true. Adds no guard."},
    {"_assign", assign, METH_VARARGS, "owner.name = value"},
    {"_exchange_fallback", exchange_fallback, METH_O,
     "Whose native run this thread is in the middle of, as a number; 0: nobody's. The given one takes its place."},
    {"_hook_number", hook_number, METH_NOARGS, "Of the next hook that the captured call registers."},
    {"_note_hook", note_hook, METH_VARARGS,
     "(handle, weak references to its dictionaries) of a hook that the call registers."},
    {"_call_for_symbols", set_call_for_symbols, METH_VARARGS,
     "(builtin, function): what is called in its place, where numbers may be symbolic."},
    {"allow", allow, METH_O, "A C function that may be called while capturing."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_control_functions(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace cresset::frontend
