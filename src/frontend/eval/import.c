// Imports, and rare statements of modules and class bodies.
#include "frontend/eval/helpers.h"
#include "frontend/eval/known.h"

PyObject* cresset_import_name(PyThreadState* tstate, Frame* frame, PyObject* name, PyObject* from, PyObject* level) {
  PyObject* import = cresset_mapping_get(frame->f_builtins, cresset_names.__import__);
  if (import == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "__import__ not found");
    return NULL;
  }
  PyObject* names = frame->f_locals != NULL ? frame->f_locals : Py_None;
  PyObject* module = NULL;
  if (import == IMPORT_FUNCTION(tstate)) {
    const long depth = PyLong_AsLong(level);
    if (depth != -1 || !PyErr_Occurred()) {
      module = PyImport_ImportModuleLevelObject(name, frame->f_globals, names, from, (int)depth);
    }
  } else {
    PyObject* arguments[] = {name, frame->f_globals, names, from, level};
    module = PyObject_Vectorcall(import, arguments, 5, NULL);
  }
  Py_DECREF(import);
  return module;
}

static int is_initializing(PyObject* spec) {
  PyObject* value = PyObject_GetAttr(spec, cresset_names._initializing);
  const int is = value != NULL ? PyObject_IsTrue(value) : 0;
  Py_XDECREF(value);
  PyErr_Clear();
  return is > 0;
}

static void cannot_import(PyObject* module, PyObject* name, PyObject* package) {
  PyObject* shown = package != NULL ? Py_NewRef(package) : PyUnicode_FromString("<unknown module name>");
  PyObject* path = PyModule_GetFilenameObject(module);
  PyErr_Clear();
  PyObject* message = NULL;
  if (path == NULL) {
    message = PyUnicode_FromFormat("cannot import name %R from %R (unknown location)", name, shown);
  } else {
    PyObject* spec = PyObject_GetAttr(module, cresset_names.__spec__);
    PyErr_Clear();
    const char* format =
        spec != NULL && is_initializing(spec)
            ? "cannot import name %R from partially initialized module %R (most likely due to a circular import) (%S)"
            : "cannot import name %R from %R (%S)";
    message = PyUnicode_FromFormat(format, name, shown, path);
    Py_XDECREF(spec);
  }
  if (message != NULL) set_import_error(message, package, path, name);
  Py_XDECREF(message);
  Py_XDECREF(path);
  Py_XDECREF(shown);
}

PyObject* cresset_import_from(PyObject* module, PyObject* name) {
  PyObject* value = NULL;
  if (LOOK_UP_ATTRIBUTE(module, name, &value) != 0) return value;
  // In a circular import, sys.modules may have the submodule before the package has the attribute.
  PyObject* package = PyObject_GetAttr(module, cresset_names.__name__);
  if (package == NULL || !PyUnicode_Check(package)) {
    Py_CLEAR(package);
    PyErr_Clear();
  } else {
    PyObject* full = PyUnicode_FromFormat("%U.%U", package, name);
    if (full != NULL) value = PyImport_GetModule(full);
    Py_XDECREF(full);
  }
  if (value == NULL && !PyErr_Occurred()) cannot_import(module, name, package);
  Py_XDECREF(package);
  return value;
}

// The names taken by `from module import *`: __all__, or the keys of the module's __dict__.
static PyObject* star_names(PyObject* module, int* private_too) {
  PyObject* all = NULL;
  *private_too = 1;
  if (LOOK_UP_ATTRIBUTE(module, cresset_names.__all__, &all) != 0) return all;
  *private_too = 0;
  PyObject* dict = NULL;
  if (LOOK_UP_ATTRIBUTE(module, cresset_names.__dict__, &dict) < 0) return NULL;
  if (dict == NULL) {
    PyErr_SetString(PyExc_ImportError, "from-import-* object has no __dict__ and no __all__");
    return NULL;
  }
  PyObject* keys = PyMapping_Keys(dict);
  Py_DECREF(dict);
  return keys;
}

static void star_name_not_string(PyObject* module, PyObject* name, int in_all) {
  PyObject* package = PyObject_GetAttr(module, cresset_names.__name__);
  if (package == NULL) return;
  if (!PyUnicode_Check(package)) {
    PyErr_Format(PyExc_TypeError, "module __name__ must be a string, not %.100s", Py_TYPE(package)->tp_name);
  } else {
    PyErr_Format(PyExc_TypeError, "%s in %U.%s must be str, not %.100s", in_all ? "Item" : "Key", package,
                 in_all ? "__all__" : "__dict__", Py_TYPE(name)->tp_name);
  }
  Py_DECREF(package);
}

static int import_one(PyObject* names, PyObject* module, PyObject* name, int private_too) {
  if (!PyUnicode_Check(name)) {
    star_name_not_string(module, name, private_too);
    return -1;
  }
  if (!private_too && PyUnicode_GetLength(name) > 0 && PyUnicode_ReadChar(name, 0) == '_') return 0;
  PyObject* value = PyObject_GetAttr(module, name);
  if (value == NULL) return -1;
  const int failed =
      PyDict_CheckExact(names) ? PyDict_SetItem(names, name, value) : PyObject_SetItem(names, name, value);
  Py_DECREF(value);
  return failed;
}

int cresset_import_star(PyObject* names, PyObject* module) {
  if (names == NULL) {
    PyErr_SetString(PyExc_SystemError, "no locals found during 'import *'");
    return -1;
  }
  int private_too;
  PyObject* all = star_names(module, &private_too);
  if (all == NULL) return -1;
  int failed = 0;
  for (Py_ssize_t i = 0; !failed; i++) {
    PyObject* name = PySequence_GetItem(all, i);
    if (name == NULL) {
      if (PyErr_ExceptionMatches(PyExc_IndexError)) {
        PyErr_Clear();
      } else {
        failed = -1;
      }
      break;
    }
    failed = import_one(names, module, name, private_too);
    Py_DECREF(name);
  }
  Py_DECREF(all);
  return failed;
}

int cresset_setup_annotations(Frame* frame) {
  PyObject* names = frame->f_locals;
  if (names == NULL) {
    PyErr_SetString(PyExc_SystemError, "no locals found when setting up annotations");
    return -1;
  }
  PyObject* there = cresset_mapping_get(names, cresset_names.__annotations__);
  if (there != NULL || PyErr_Occurred()) {
    Py_XDECREF(there);
    return there != NULL ? 0 : -1;
  }
  PyObject* annotations = PyDict_New();
  if (annotations == NULL) return -1;
  const int failed = PyObject_SetItem(names, cresset_names.__annotations__, annotations);
  Py_DECREF(annotations);
  return failed;
}

int cresset_print_expression(PyObject* value) {
  PyObject* hook = _PySys_GetAttr(PyThreadState_Get(), cresset_names.displayhook);
  if (hook == NULL) {
    PyErr_SetString(PyExc_RuntimeError, "lost sys.displayhook");
    return -1;
  }
  PyObject* shown = PyObject_CallOneArg(hook, value);
  Py_XDECREF(shown);
  return shown != NULL ? 0 : -1;
}
