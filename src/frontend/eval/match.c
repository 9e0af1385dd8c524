// Class and mapping patterns.
#include "frontend/eval/helpers.h"
#include "frontend/eval/known.h"

typedef struct {
  const CressetEvalHooks* hooks;
  CressetActivation* activation;
  PyObject *subject, *type;
  PyObject* seen;   // names of earlier look-ups
  PyObject* found;  // list of values
} ClassPattern;

// owner.name, reported as a read. NULL without exception when there is none.
static PyObject* get_reported(const ClassPattern* pattern, PyObject* owner, PyObject* name) {
  PyObject* value = NULL;
  if (pattern->hooks->read_attribute == NULL) {
    value = PyObject_GetAttr(owner, name);
  } else {
    CressetAttributeRead read;
    AttributeResult result;
    cresset_load_attribute(owner, name, 0, &read, &result);
    read.asked = 1;
    PyObject *error, *args, *traceback;
    PyErr_Fetch(&error, &args, &traceback);
    cresset_eval_pause();
    const int reported = pattern->hooks->read_attribute(pattern->hooks->session, pattern->activation, &read);
    cresset_eval_unpause();
    if (reported < 0) {
      Py_XDECREF(error);
      Py_XDECREF(args);
      Py_XDECREF(traceback);
      Py_XDECREF(result.value);
      Py_XDECREF(result.python);
      return NULL;
    }
    PyErr_Restore(error, args, traceback);
    value = result.value;
    if (result.python != NULL) value = PyObject_GetAttr(owner, name);
    Py_XDECREF(result.python);
  }
  if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return value;
}

// An attribute for a class pattern, new reference; NULL without exception when the subject lacks it.
static PyObject* match_attribute(const ClassPattern* pattern, PyObject* name) {
  PyObject* const seen = pattern->seen;
  const int repeated = PySet_Contains(seen, name);
  if (repeated != 0 || PySet_Add(seen, name) < 0) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple sub-patterns for attribute %R",
                   ((PyTypeObject*)pattern->type)->tp_name, name);
    }
    return NULL;
  }
  return get_reported(pattern, pattern->subject, name);
}

// __match_args__, or NULL with *whole set when the only positional pattern is the subject itself. -1: exception.
static int positional_names(const ClassPattern* pattern, Py_ssize_t positional, PyObject** names, int* whole) {
  PyObject* const type = pattern->type;
  *whole = 0;
  *names = get_reported(pattern, type, cresset_names.__match_args__);
  const char* name = ((PyTypeObject*)type)->tp_name;
  if (*names != NULL && !PyTuple_CheckExact(*names)) {
    PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)", name, Py_TYPE(*names)->tp_name);
    Py_CLEAR(*names);
    return -1;
  }
  if (*names == NULL) {
    if (PyErr_Occurred()) return -1;
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

static int append_attribute(const ClassPattern* pattern, PyObject* name) {
  PyObject* value = match_attribute(pattern, name);
  if (value == NULL) return -1;
  const int failed = PyList_Append(pattern->found, value);
  Py_DECREF(value);
  return failed;
}

static int match_positional(const ClassPattern* pattern, Py_ssize_t positional) {
  if (positional == 0) return 0;
  PyObject* names;
  int whole;
  if (positional_names(pattern, positional, &names, &whole) < 0) return -1;
  int failed = whole ? PyList_Append(pattern->found, pattern->subject) : 0;
  for (Py_ssize_t i = 0; !whole && !failed && i < positional; i++) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    if (!PyUnicode_CheckExact(name)) {
      PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)", Py_TYPE(name)->tp_name);
      failed = -1;
    } else {
      failed = append_attribute(pattern, name);
    }
  }
  Py_DECREF(names);
  return failed;
}

// A symbolic number counts as an int. Its class belongs to torch and is recognized by name.
static int is_instance(PyObject* subject, PyObject* type) {
  if (type == (PyObject*)&PyLong_Type && strcmp(Py_TYPE(subject)->tp_name, "SymInt") == 0) return 1;
  return PyObject_IsInstance(subject, type);
}

PyObject* cresset_match_class(const CressetEvalHooks* hooks, CressetActivation* activation, PyObject* subject,
                              PyObject* type, Py_ssize_t positional, PyObject* names) {
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "called match pattern must be a class");
    return NULL;
  }
  if (is_instance(subject, type) <= 0) return NULL;
  const ClassPattern pattern = {hooks, activation, subject, type, PySet_New(NULL), PyList_New(0)};
  PyObject* result = NULL;
  if (pattern.seen != NULL && pattern.found != NULL) {
    int failed = match_positional(&pattern, positional);
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(names); i++) {
      failed = append_attribute(&pattern, PyTuple_GET_ITEM(names, i));
    }
    if (!failed) result = PyList_AsTuple(pattern.found);
  }
  Py_XDECREF(pattern.seen);
  Py_XDECREF(pattern.found);
  return result;
}

// Puts the values of `keys` into `values`; 1, or 0 when a key is missing, or -1.
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
