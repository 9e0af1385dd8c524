// Class and mapping patterns.
#include "frontend/eval/helpers.h"
#include "frontend/eval/known.h"

// One attribute of a class pattern, new reference; NULL without exception when the subject lacks it.
static PyObject* match_attribute(PyObject* subject, PyObject* type, PyObject* name, PyObject* seen) {
  const int repeated = PySet_Contains(seen, name);
  if (repeated != 0 || PySet_Add(seen, name) < 0) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple sub-patterns for attribute %R", ((PyTypeObject*)type)->tp_name,
                   name);
    }
    return NULL;
  }
  PyObject* value = PyObject_GetAttr(subject, name);
  if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return value;
}

// __match_args__, or NULL with *whole set when the one positional pattern is the subject itself. -1: exception.
static int positional_names(PyObject* type, Py_ssize_t positional, PyObject** names, int* whole) {
  *whole = 0;
  *names = PyObject_GetAttr(type, cresset_names.__match_args__);
  const char* name = ((PyTypeObject*)type)->tp_name;
  if (*names != NULL && !PyTuple_CheckExact(*names)) {
    PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)", name, Py_TYPE(*names)->tp_name);
    Py_CLEAR(*names);
    return -1;
  }
  if (*names == NULL) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    *names = PyTuple_New(0);
    *whole = PyType_HasFeature((PyTypeObject*)type, _Py_TPFLAGS_MATCH_SELF);
  }
  const Py_ssize_t allowed = *whole ? 1 : PyTuple_GET_SIZE(*names);
  if (positional <= allowed) return 0;
  PyErr_Format(PyExc_TypeError, "%s() accepts %d positional sub-pattern%s (%d given)", name, (int)allowed,
               allowed == 1 ? "" : "s", (int)positional);
  Py_CLEAR(*names);
  return -1;
}

static int append_attribute(PyObject* found, PyObject* subject, PyObject* type, PyObject* name, PyObject* seen) {
  PyObject* value = match_attribute(subject, type, name, seen);
  if (value == NULL) return -1;
  const int failed = PyList_Append(found, value);
  Py_DECREF(value);
  return failed;
}

static int match_positional(PyObject* found, PyObject* subject, PyObject* type, Py_ssize_t positional, PyObject* seen) {
  if (positional == 0) return 0;
  PyObject* names;
  int whole;
  if (positional_names(type, positional, &names, &whole) < 0) return -1;
  int failed = whole ? PyList_Append(found, subject) : 0;
  for (Py_ssize_t i = 0; !whole && !failed && i < positional; i++) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    if (!PyUnicode_CheckExact(name)) {
      PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)", Py_TYPE(name)->tp_name);
      failed = -1;
    } else {
      failed = append_attribute(found, subject, type, name, seen);
    }
  }
  Py_DECREF(names);
  return failed;
}

// A symbolic number is the number that it stands for; its class, which is torch's, is met by name.
static int is_instance(PyObject* subject, PyObject* type) {
  if (type == (PyObject*)&PyLong_Type && strcmp(Py_TYPE(subject)->tp_name, "SymInt") == 0) return 1;
  return PyObject_IsInstance(subject, type);
}

PyObject* cresset_match_class(PyObject* subject, PyObject* type, Py_ssize_t positional, PyObject* names) {
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "called match pattern must be a class");
    return NULL;
  }
  if (is_instance(subject, type) <= 0) return NULL;
  PyObject* seen = PySet_New(NULL);
  PyObject* found = PyList_New(0);
  PyObject* result = NULL;
  if (seen != NULL && found != NULL) {
    int failed = match_positional(found, subject, type, positional, seen);
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(names); i++) {
      failed = append_attribute(found, subject, type, PyTuple_GET_ITEM(names, i), seen);
    }
    if (!failed) result = PyList_AsTuple(found);
  }
  Py_XDECREF(seen);
  Py_XDECREF(found);
  return result;
}

// The values of `keys` into `values`; 1, or 0 when one is missing, or -1.
static int get_values(PyObject* get, PyObject* keys, PyObject* missing, PyObject* seen, PyObject* values) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); i++) {
    PyObject* key = PyTuple_GET_ITEM(keys, i);
    const int repeated = PySet_Contains(seen, key);
    if (repeated != 0 || PySet_Add(seen, key) < 0) {
      if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "mapping pattern checks duplicate key (%R)", key);
      return -1;
    }
    PyObject* value = PyObject_CallFunctionObjArgs(get, key, missing, NULL);
    if (value == NULL) return -1;
    if (value == missing) {
      Py_DECREF(value);
      return 0;
    }
    PyTuple_SET_ITEM(values, i, value);
  }
  return 1;
}

PyObject* cresset_match_keys(PyObject* mapping, PyObject* keys) {
  PyObject* values = PyTuple_New(PyTuple_GET_SIZE(keys));
  if (values == NULL || PyTuple_GET_SIZE(keys) == 0) return values;
  PyObject* get = PyObject_GetAttr(mapping, cresset_names.get);
  PyObject* seen = PySet_New(NULL);
  PyObject* missing = _PyObject_CallNoArgs((PyObject*)&PyBaseObject_Type);
  int matched = -1;
  if (get != NULL && seen != NULL && missing != NULL) matched = get_values(get, keys, missing, seen, values);
  Py_XDECREF(get);
  Py_XDECREF(seen);
  Py_XDECREF(missing);
  if (matched == 1) return values;
  Py_DECREF(values);
  return matched == 0 ? Py_NewRef(Py_None) : NULL;
}
