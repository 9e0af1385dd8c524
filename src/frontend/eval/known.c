#include "frontend/eval/known.h"

KnownSlots cresset_known;
KnownNames cresset_names;
vectorcallfunc cresset_call_evaluates;

static int intern_names(void) {
#define X(name) \
  if ((cresset_names.name = PyUnicode_InternFromString(#name)) == NULL) return -1;
  CRESSET_KNOWN_NAMES(X)
#undef X
  return 0;
}

static const char kProbe[] =
    "class Probe:\n"
    "  def __call__(self): pass\n"
    "  def __getattr__(self, name): raise AttributeError(name)\n"
    "  def __setattr__(self, name, value): pass\n"
    "  def __getitem__(self, key): pass\n"
    "  def __setitem__(self, key, value): pass\n"
    "  def __iter__(self): pass\n"
    "  def __next__(self): pass\n"
    "  def __bool__(self): pass\n"
    "  def __len__(self): pass\n"
    "  def __contains__(self, item): pass\n"
    "  def __get__(self, owner, kind): pass\n"
    "  def __init__(self): pass\n"
    "  def __new__(cls): pass\n"
    "from functools import partial\n";

static void read_slots(PyTypeObject* probe) {
  cresset_call_evaluates = ((PyFunctionObject*)PyDict_GetItem(type_names(probe), cresset_names.__init__))->vectorcall;
  cresset_known.call = probe->tp_call;
  cresset_known.getattr = probe->tp_getattro;
  cresset_known.setattr = probe->tp_setattro;
  cresset_known.getitem = probe->tp_as_mapping->mp_subscript;
  cresset_known.setitem = probe->tp_as_mapping->mp_ass_subscript;
  cresset_known.iter = probe->tp_iter;
  cresset_known.next = probe->tp_iternext;
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
  cresset_known.next_function = Py_XNewRef(PyDict_GetItem(PyEval_GetBuiltins(), cresset_names.next));
  cresset_known.generator_send = PyDict_GetItem(type_names(&PyGen_Type), cresset_names.send);
  cresset_known.coroutine_send = PyDict_GetItem(type_names(&PyCoro_Type), cresset_names.send);
  cresset_known.generator_throw = PyDict_GetItem(type_names(&PyGen_Type), cresset_names.throw);
  cresset_known.generator_close = PyDict_GetItem(type_names(&PyGen_Type), cresset_names.close);
  cresset_known.object_init = PyDict_GetItem(type_names(&PyBaseObject_Type), cresset_names.__init__);
}

int cresset_known_init(void) {
  if (cresset_known.call != NULL) return 0;
  if (intern_names() < 0) return -1;
  PyObject* globals = PyDict_New();
  if (globals == NULL) return -1;
  PyObject* ran = NULL;
  if (PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) == 0) {
    ran = PyRun_String(kProbe, Py_file_input, globals, globals);
  }
  PyObject* probe = ran != NULL ? PyDict_GetItemString(globals, "Probe") : NULL;
  if (probe != NULL) {
    // Kept for good: the type object of an extension may not go away under a pointer that is compared with it.
    cresset_known.partial = (PyTypeObject*)Py_NewRef(PyDict_GetItemString(globals, "partial"));
    read_slots((PyTypeObject*)probe);
  }
  Py_XDECREF(ran);
  Py_DECREF(globals);
  return probe != NULL ? 0 : -1;
}
