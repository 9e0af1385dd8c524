// Unpacking, star arguments, formatting.
#include "frontend/eval/helpers.h"

static int too_few(int expected, Py_ssize_t got, int at_least) {
  if (at_least) {
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %d, got %zd)", expected, got);
  } else {
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %zd)", expected, got);
  }
  return -1;
}

static PyObject* unpack_iterator(PyObject* iterable) {
  PyObject* iterator = PyObject_GetIter(iterable);
  if (iterator == NULL && PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(iterable)->tp_iter == NULL &&
      !PySequence_Check(iterable)) {
    PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(iterable)->tp_name);
  }
  return iterator;
}

static int end_of_fixed(PyObject* iterator, int expected) {
  PyObject* extra = PyIter_Next(iterator);
  if (extra == NULL) return PyErr_Occurred() ? -1 : 0;
  Py_DECREF(extra);
  PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", expected);
  return -1;
}

// Writes the rest as a list below `end`, with its last `after` items behind it. *written counts the values.
static int unpack_rest(PyObject* iterator, int before, int after, PyObject** end, PyObject** lowest, PyObject** taken,
                       int* written) {
  PyObject* list = PySequence_List(iterator);
  if (list == NULL) return -1;
  *taken = *lowest;
  *--end = list;
  ++*written;
  const Py_ssize_t length = PyList_GET_SIZE(list);
  if (length < after) return too_few(before + after, before + length, 1);
  for (int i = 0; i < after; i++) {
    *--end = PyList_GET_ITEM(list, length - after + i);
    ++*written;
  }
  Py_SET_SIZE(list, length - after);  // the references have moved to the stack
  return 0;
}

int cresset_unpack(PyObject* iterable, int before, int after, PyObject** end, PyObject** taken) {
  PyObject* iterator = unpack_iterator(iterable);
  if (iterator == NULL) return -1;
  PyObject** place = end;
  PyObject** const lowest = end - (before + (after >= 0 ? after + 1 : 0));
  int written = 0, failed = 0;
  *taken = NULL;
  while (written < before && !failed) {
    PyObject* item = PyIter_Next(iterator);
    if (item == NULL) {
      failed = PyErr_Occurred() ? -1 : too_few(before + (after > 0 ? after : 0), written, after >= 0);
    } else {
      if (--place == lowest) *taken = *lowest;
      *place = item;
      written++;
    }
  }
  if (!failed && after < 0) failed = end_of_fixed(iterator, before);
  if (!failed && after >= 0) failed = unpack_rest(iterator, before, after, place, lowest, taken, &written);
  Py_DECREF(iterator);
  if (!failed) {
    if (*taken == NULL) *taken = *lowest;  // nothing was unpacked: the iterable is still there
    return 0;
  }
  for (int i = 1; i <= written; i++) Py_DECREF(end[-i]);
  if (*taken != NULL) *lowest = *taken;
  return -1;
}

int cresset_list_extend(PyObject* list, PyObject* iterable) {
  PyObject* none = _PyList_Extend((PyListObject*)list, iterable);
  if (none != NULL) {
    Py_DECREF(none);
    return 0;
  }
  if (PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(iterable)->tp_iter == NULL && !PySequence_Check(iterable)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s", Py_TYPE(iterable)->tp_name);
  }
  return -1;
}

int cresset_dict_update(PyObject* dict, PyObject* mapping) {
  if (PyDict_Update(dict, mapping) == 0) return 0;
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(mapping)->tp_name);
  }
  return -1;
}

static void say_bad_keyword(PyObject* function) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* args = value != NULL ? key_error_arguments(value) : NULL;
  if (args == NULL || !PyTuple_Check(args) || PyTuple_GET_SIZE(args) != 1) {
    PyErr_Restore(type, value, traceback);
    return;
  }
  PyObject* name = _PyObject_FunctionStr(function);
  PyObject* key = PyTuple_GET_ITEM(args, 0);
  if (name != NULL) PyErr_Format(PyExc_TypeError, "%U got multiple values for keyword argument '%S'", name, key);
  Py_XDECREF(name);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

int cresset_merge_keywords(PyObject* function, PyObject* dict, PyObject* mapping) {
  if (_PyDict_MergeEx(dict, mapping, 2) == 0) return 0;
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    PyObject* name = _PyObject_FunctionStr(function);
    if (name != NULL) {
      PyErr_Format(PyExc_TypeError, "%U argument after ** must be a mapping, not %.200s", name,
                   Py_TYPE(mapping)->tp_name);
      Py_DECREF(name);
    }
  } else if (PyErr_ExceptionMatches(PyExc_KeyError)) {
    say_bad_keyword(function);
  }
  return -1;
}

PyObject* cresset_star_arguments(PyObject* function, PyObject* iterable) {
  if (Py_TYPE(iterable)->tp_iter == NULL && !PySequence_Check(iterable)) {
    PyObject* name = _PyObject_FunctionStr(function);
    if (name == NULL) return NULL;
    PyErr_Format(PyExc_TypeError, "%U argument after * must be an iterable, not %.200s", name,
                 Py_TYPE(iterable)->tp_name);
    Py_DECREF(name);
    return NULL;
  }
  return PySequence_Tuple(iterable);
}

PyObject* cresset_format(PyObject* value, PyObject* spec, int conversion) {
  PyObject* text = conversion == 's'   ? PyObject_Str(value)
                   : conversion == 'r' ? PyObject_Repr(value)
                   : conversion == 'a' ? PyObject_ASCII(value)
                                       : Py_NewRef(value);
  if (text == NULL || (PyUnicode_CheckExact(text) && spec == NULL)) return text;
  PyObject* formatted = PyObject_Format(text, spec);
  Py_DECREF(text);
  return formatted;
}

// Joins the parts of an f-string. A symbolic string among the parts (hooks.h) makes the result symbolic.
PyObject* cresset_join(PyObject* const* parts, Py_ssize_t count) {
  int open = 0;
  for (Py_ssize_t i = 0; i < count; i++) open |= Py_TYPE(parts[i]) == cresset_string_type;
  PyObject* joined = PyUnicode_New(0, 0);
  if (!open) {
    PyObject* text = _PyUnicode_JoinArray(joined, parts, count);
    Py_DECREF(joined);
    return text;
  }
  for (Py_ssize_t i = 0; i < count && joined != NULL; i++) {
    PyObject* sum = i == 0 ? Py_NewRef(parts[0]) : PyNumber_Add(joined, parts[i]);
    Py_DECREF(joined);
    joined = sum;
  }
  return joined;
}
