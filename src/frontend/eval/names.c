// Look-up of names, and the messages for missing names.
#include "frontend/eval/helpers.h"
#include "frontend/eval/reported_reads.h"

static void format_name(PyObject* type, const char* format, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text != NULL) PyErr_Format(type, format, text);
}

// Suggestions ("did you mean") need the name on the exception.
static void keep_name(PyObject* name) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != NULL && Py_IS_TYPE(value, (PyTypeObject*)PyExc_NameError)) {
    PyNameErrorObject* error = (PyNameErrorObject*)value;
    if (error->name == NULL) error->name = Py_NewRef(name);
  }
  PyErr_Restore(type, value, traceback);
}

void cresset_undefined_name(PyObject* name) {
  format_name(PyExc_NameError, "name '%.200s' is not defined", name);
  keep_name(name);
}

void cresset_unbound_local(PyCodeObject* code, int slot) {
  format_name(PyExc_UnboundLocalError, "cannot access local variable '%s' where it is not associated with a value",
              PyTuple_GET_ITEM(code->co_localsplusnames, slot));
}

void cresset_unbound_cell(PyCodeObject* code, int slot) {
  if (PyErr_Occurred()) return;
  if (slot < code->co_nlocalsplus - code->co_nfreevars) {
    cresset_unbound_local(code, slot);
    return;
  }
  PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, slot);
  format_name(PyExc_NameError,
              "cannot access free variable '%s' where it is not associated with a value in enclosing scope", name);
  keep_name(name);
}

PyObject* cresset_mapping_get(PyObject* mapping, PyObject* name) {
  if (PyDict_CheckExact(mapping)) {
    PyObject* value = PyDict_GetItemWithError(mapping, name);
    return Py_XNewRef(value);
  }
  PyObject* value = PyObject_GetItem(mapping, name);
  if (value == NULL && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
  return value;
}

ReportedName cresset_reported[kReportedNames];

// Touches each page at once. A capture would meet two page faults for each: one at a look-up, another at a store.
void cresset_reported_init(void) {
  enum { kPage = 4096 };
  volatile char* const bytes = (volatile char*)cresset_reported;
  for (size_t i = 0; i < sizeof cresset_reported; i += kPage) bytes[i] = 0;
}

PyObject* cresset_global(Frame* frame, PyObject* name, CressetNamespace* where) {
  PyObject* value;
  const Py_hash_t hash = ((PyASCIIObject*)name)->hash;
  *where = CRESSET_IN_GLOBALS;
  if (LIKELY(PyDict_CheckExact(frame->f_globals) && hash != -1)) {
    value = Py_XNewRef(_PyDict_GetItem_KnownHash(frame->f_globals, name, hash));
  } else {
    value = cresset_mapping_get(frame->f_globals, name);
  }
  if (value != NULL || PyErr_Occurred()) return value;
  *where = CRESSET_IN_BUILTINS;
  if (LIKELY(PyDict_CheckExact(frame->f_builtins) && hash != -1)) {
    value = Py_XNewRef(_PyDict_GetItem_KnownHash(frame->f_builtins, name, hash));
  } else {
    value = cresset_mapping_get(frame->f_builtins, name);
  }
  if (value != NULL || PyErr_Occurred()) return value;
  *where = CRESSET_IN_NOTHING;
  cresset_undefined_name(name);
  return NULL;
}
