// The Python type of compiled functions.
#include <structmember.h>

#include <string_view>

#include "frontend/api/compiled_function.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/python_names.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

namespace {

struct Object {
  PyObject_HEAD vectorcallfunc vectorcall;
  CompiledFunction* state;
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject type;

// torch.compiler.set_stance(force_backend=...): another compiled function takes the call.
PyObject* forced_form(PyObject* self) {
  try {
    if (bridge::Capture::current() != nullptr || torch_controls().backend == nullptr) return Py_NewRef(Py_None);
    static PyObject* const form_for = module_attribute(python_names::kBackends, "form_for");
    const PyRef backend = PyRef::borrow(torch_controls().backend);
    return PyObject_CallFunctionObjArgs(form_for, self, backend.get(), nullptr);
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyObject* object_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const PyRef form = PyRef::steal(forced_form(self));
  if (!form) return nullptr;
  if (form.get() != Py_None) return PyObject_Vectorcall(form.get(), args, nargsf, kwnames);
  return ((Object*)self)->state->call(args, nargsf, kwnames);
}

void object_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* o = (Object*)self;
  if (o->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  delete std::exchange(o->state, nullptr);
  PyObject_GC_Del(self);
}

int object_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* o = (Object*)self;
  Py_VISIT(o->dict);
  return o->state != nullptr ? o->state->visit(visit, arg) : 0;
}

int object_clear(PyObject* self) {
  auto* o = (Object*)self;
  Py_CLEAR(o->dict);
  if (o->state != nullptr) o->state->clear_cache_entries();
  return 0;
}

PyObject* object_get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

PyObject* object_repr(PyObject* self) {
  return PyUnicode_FromFormat("<cresset compiled %R>", ((Object*)self)->state->function());
}

PyObject* get_wrapped(PyObject* self, void*) { return Py_NewRef(((Object*)self)->state->function()); }

// Other attributes come from the function: __name__, __doc__, __signature__, ...
PyObject* object_getattro(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  // torch's marks are hidden, because torch would follow them to the original function and bypass cresset.
  const char* text = PyUnicode_AsUTF8(name);
  if (text != nullptr && std::string_view(text).substr(0, 13) == "_torchdynamo_") return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(((Object*)self)->state->function(), name);
}

PyObject* get_doc(PyObject* self, void*) {
  return PyObject_GetAttrString(((Object*)self)->state->function(), "__doc__");
}

PyObject* get_module(PyObject* self, void*) {
  return PyObject_GetAttrString(((Object*)self)->state->function(), "__module__");
}

// Python code copies and pickles the object, by name if the program can find the object by its name.
PyObject* reduce(PyObject* self, PyObject*) {
  PyObject* module = PyImport_ImportModule(python_names::kApi);
  PyObject* made = module != nullptr ? PyObject_CallMethod(module, "_reduce_function", "O", self) : nullptr;
  Py_XDECREF(module);
  return made;
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyGetSetDef getset[] = {{"__doc__", get_doc, nullptr, "the function's own words", nullptr},
                        {"__module__", get_module, nullptr, nullptr, nullptr},
                        {"__wrapped__", get_wrapped, nullptr, "the function that was compiled", nullptr},
                        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_type() {
  PyTypeObject t = {PyVarObject_HEAD_INIT(nullptr, 0)};
  t.tp_name = "cresset._C.CompiledFunction";
  t.tp_basicsize = sizeof(Object);
  t.tp_dealloc = object_dealloc;
  t.tp_vectorcall_offset = offsetof(Object, vectorcall);
  t.tp_repr = object_repr;
  t.tp_call = PyVectorcall_Call;
  t.tp_getattro = object_getattro;
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  t.tp_doc = "A function compiled by cresset.compile. Call it as the function itself.";
  t.tp_traverse = object_traverse;
  t.tp_clear = object_clear;
  t.tp_weaklistoffset = offsetof(Object, weakrefs);
  t.tp_getset = getset;
  t.tp_methods = methods;
  t.tp_descr_get = object_get;
  t.tp_dictoffset = offsetof(Object, dict);
  return t;
}
PyTypeObject type = make_type();

}  // namespace

void add_compiled_function_type(PyObject* module) {
  if (PyType_Ready(&type) < 0) throw PythonError{};
  Py_INCREF(&type);
  // Inside another capture a compiled function acts as its original function.
  cresset_eval_see_through(&type, [](PyObject* object) { return ((Object*)object)->state->function(); });
  PyModule_AddObject(module, "CompiledFunction", (PyObject*)&type);
}

PyObject* new_compiled_function(PyObject* function, CompileOptions options, CallSettings settings) {
  Object* o = PyObject_GC_New(Object, &type);
  if (o == nullptr) return nullptr;
  o->vectorcall = object_call;
  o->state = new CompiledFunction(function, std::move(options), std::move(settings));
  o->dict = nullptr;
  o->weakrefs = nullptr;
  PyObject_GC_Track((PyObject*)o);
  return (PyObject*)o;
}

CompiledFunction* as_compiled_function(PyObject* object) {
  return Py_TYPE(object) == &type ? ((Object*)object)->state : nullptr;
}

}  // namespace cresset::frontend
