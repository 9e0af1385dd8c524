#include "frontend/eval/known.h"

#include "frontend/eval/interpreter.h"
#include "frontend/eval/reported_reads.h"
#include "frontend/eval/watched_calls.h"

PyTypeObject* cresset_string_type;
PyTypeObject* cresset_symint_type;
KnownSlots cresset_known;
KnownNames cresset_names;
int cresset_asks_for_lists;
vectorcallfunc cresset_call_evaluates, cresset_call_watched;

vectorcallfunc cresset_eval_watch_calls(PyObject* function, vectorcallfunc call) {
  PyFunctionObject* watched = (PyFunctionObject*)function;
  if (cresset_known_init() < 0 || watched->vectorcall != cresset_call_evaluates) return NULL;
  cresset_call_watched = call;
#if PY_VERSION_HEX >= 0x030C0000
  PyFunction_SetVectorcall(watched, call);
#else
  watched->vectorcall = call;
  watched->func_version = 0;
#endif
  return cresset_call_evaluates;
}

void cresset_eval_unwatch_calls(PyObject* function) {
  PyFunctionObject* watched = (PyFunctionObject*)function;
  if (watched->vectorcall != cresset_call_watched) return;  // replaced by a tool meanwhile
#if PY_VERSION_HEX >= 0x030C0000
  PyFunction_SetVectorcall(watched, cresset_call_evaluates);
#else
  watched->vectorcall = cresset_call_evaluates;
#endif
}

static int intern_names(void) {
#define X(name) \
  if ((cresset_names.name = PyUnicode_InternFromString(#name)) == NULL) return -1;
  CRESSET_KNOWN_NAMES(X)
#undef X
  return 0;
}

// A class with all these methods in Python; any Python function serves.
static PyObject* make_probe(PyObject* function) {
  static const char* const kMethods[] = {"__call__", "__getattr__", "__setattr__", "__getitem__", "__setitem__",
                                         "__iter__", "__next__",    "__bool__",    "__len__",     "__contains__",
                                         "__get__",  "__init__",    "__new__",     "__hash__"};
  PyObject* methods = PyDict_New();
  if (methods == NULL) return NULL;
  for (size_t i = 0; i < sizeof kMethods / sizeof *kMethods; i++) {
    if (PyDict_SetItemString(methods, kMethods[i], function) < 0) return Py_DECREF(methods), NULL;
  }
  return PyObject_CallFunction((PyObject*)&PyType_Type, "s()N", "Probe", methods);
}

static void read_slots(PyTypeObject* probe) {
  cresset_call_evaluates = ((PyFunctionObject*)PyDict_GetItem(type_names(probe), cresset_names.__init__))->vectorcall;
  cresset_known.call = probe->tp_call;
  cresset_known.getattr = probe->tp_getattro;
  cresset_known.setattr = probe->tp_setattro;
  cresset_known.getitem = probe->tp_as_mapping->mp_subscript;
  cresset_known.setitem = probe->tp_as_mapping->mp_ass_subscript;
  cresset_known.iter = probe->tp_iter;
  cresset_known.next = probe->tp_iternext;
  cresset_known.hash = probe->tp_hash;
  cresset_known.truth = probe->tp_as_number->nb_bool;
  cresset_known.length = probe->tp_as_mapping->mp_length;
  cresset_known.contains = probe->tp_as_sequence->sq_contains;
  cresset_known.descr_get = probe->tp_descr_get;
  cresset_known.init = probe->tp_init;
  cresset_known.make = probe->tp_new;
  cresset_known.type_getattr = PyType_Type.tp_getattro;
  cresset_known.module_getattr = PyModule_Type.tp_getattro;
  cresset_known.super_getattr = PySuper_Type.tp_getattro;
  cresset_known.type_call = PyType_Type.tp_call;
  cresset_known.object_getattribute = PyDict_GetItem(type_names(&PyBaseObject_Type), cresset_names.__getattribute__);
  cresset_known.module_getattribute = PyDict_GetItem(type_names(&PyModule_Type), cresset_names.__getattribute__);
  cresset_known.next_function = Py_XNewRef(PyDict_GetItem(cresset_eval_builtins(), cresset_names.next));
  cresset_known.generator_send = PyDict_GetItem(type_names(&PyGen_Type), cresset_names.send);
  cresset_known.coroutine_send = PyDict_GetItem(type_names(&PyCoro_Type), cresset_names.send);
  cresset_known.generator_throw = PyDict_GetItem(type_names(&PyGen_Type), cresset_names.throw);
  cresset_known.generator_close = PyDict_GetItem(type_names(&PyGen_Type), cresset_names.close);
  cresset_known.object_init = PyDict_GetItem(type_names(&PyBaseObject_Type), cresset_names.__init__);
}

// CPython changes the slot function of a class without __getattr__ after the first look-up of an attribute.
static int read_getattribute(void) {
  PyObject* len = PyDict_GetItemString(cresset_eval_builtins(), "len");
  if (len == NULL) return -1;
  PyObject* probe = PyObject_CallFunction((PyObject*)&PyType_Type, "s(){sO}", "Probe", "__getattribute__", len);
  PyObject* instance = probe != NULL ? PyObject_CallNoArgs(probe) : NULL;
  PyObject* value = instance != NULL ? PyObject_GetAttrString(instance, "any") : NULL;
  if (value != NULL) cresset_known.getattribute = ((PyTypeObject*)probe)->tp_getattro;
  Py_XDECREF(probe);
  Py_XDECREF(instance);
  Py_XDECREF(value);
  return value != NULL ? 0 : -1;
}

int cresset_known_init(void) {
  if (cresset_known.call != NULL) return 0;
  cresset_reported_init();
  if (intern_names() < 0) return -1;
  PyObject* functools = PyImport_ImportModule("functools");
  PyObject* function = functools != NULL ? PyObject_GetAttrString(functools, "update_wrapper") : NULL;
  PyObject* partial = function != NULL ? PyObject_GetAttrString(functools, "partial") : NULL;
  PyObject* probe = partial != NULL ? make_probe(function) : NULL;
  if (probe != NULL) {
    // Kept for good: the type object of an extension must not be freed while its address is compared.
    cresset_known.partial = (PyTypeObject*)Py_NewRef(partial);
    read_slots((PyTypeObject*)probe);
    if (read_getattribute() < 0) Py_CLEAR(probe);
  }
  Py_XDECREF(partial);
  Py_XDECREF(function);
  Py_XDECREF(functools);
  Py_XDECREF(probe);
  return probe != NULL ? 0 : -1;
}

int cresset_look_at_string(PyObject** place) {
  PyObject* text = PyObject_Str(*place);
  if (text == NULL) return -1;
  PyObject* before = *place;
  *place = text;
  Py_DECREF(before);
  return 0;
}

int cresset_is_set_by_c(PyObject* owner, PyObject* name) {
  PyObject* found = PyUnicode_Check(name) ? _PyType_Lookup(Py_TYPE(owner), name) : NULL;
  return found != NULL && Py_IS_TYPE(found, &PyGetSetDescr_Type);
}
