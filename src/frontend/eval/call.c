// Decomposition of callables, and binding of arguments to parameters. CPython executes calls that do not fit, and
// reports the error.
#include "frontend/eval/helpers.h"
#include "frontend/eval/known.h"

void cresset_release_callee(Callee* callee) {
  Py_CLEAR(callee->partial_args);
  Py_CLEAR(callee->partial_dict);
  Py_CLEAR(callee->instance);
}

static int prepend(Callee* callee, PyObject* argument) {
  if (callee->head_count == kMaxHead || callee->partial_args != NULL) return 0;
  for (int i = callee->head_count; i > 0; i--) callee->head[i] = callee->head[i - 1];
  callee->head[0] = argument;
  callee->head_count++;
  return 1;
}

static int resolve_class(PyTypeObject* type, Callee* callee) {
  if (type == &PyType_Type || type->tp_new == NULL || type->tp_new == cresset_known.make ||
      type->tp_init != cresset_known.init || type->tp_vectorcall != NULL || callee->head_count > 0 ||
      callee->partial_args != NULL) {
    return 0;
  }
  PyObject* init = _PyType_Lookup(type, cresset_names.__init__);
  if (init == NULL || !PyFunction_Check(init)) return 0;
  callee->make = type;
  callee->function = init;
  return 1;
}

static int resolve_partial(PyObject* partial, Callee* callee, PyObject** callable) {
  if (callee->partial_args != NULL || callee->head_count > 0) return 0;
  PyObject* function = PyObject_GetAttr(partial, cresset_names.func);
  callee->partial_args = PyObject_GetAttr(partial, cresset_names.args);
  callee->partial_dict = PyObject_GetAttr(partial, cresset_names.keywords);
  Py_XDECREF(function);  // the partial holds it
  if (function == NULL || callee->partial_args == NULL || callee->partial_dict == NULL) return -1;
  *callable = function;
  // Only a plain function or method inside: a partial seldom holds any other callable.
  if (PyMethod_Check(function) && PyFunction_Check(PyMethod_GET_FUNCTION(function))) {
    callee->head[callee->head_count++] = PyMethod_GET_SELF(function);
    *callable = PyMethod_GET_FUNCTION(function);
  }
  return PyFunction_Check(*callable) && PyDict_CheckExact(callee->partial_dict);
}

static PyTypeObject* transparent_type;
static PyObject* (*transparent_inside)(PyObject*);

void cresset_eval_see_through(PyTypeObject* type, PyObject* (*inside)(PyObject*)) {
  transparent_type = type;
  transparent_inside = inside;
}

PyObject* cresset_eval_inside(PyObject* object) {
  return Py_IS_TYPE(object, transparent_type) ? transparent_inside(object) : NULL;
}

static PyObject* wrapper_code;  // owned
static Py_ssize_t wrapper_cell;

void cresset_eval_see_through_wrappers(PyObject* code, Py_ssize_t cell) {
  Py_XSETREF(wrapper_code, Py_NewRef(code));
  wrapper_cell = cell;
}

static int ends_with(PyObject* text, const char* end) {
  Py_ssize_t size;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  if (utf8 == NULL) return PyErr_Clear(), 0;
  const Py_ssize_t length = (Py_ssize_t)strlen(end);
  return size >= length && strcmp(utf8 + size - length, end) == 0;
}

// The index of the cell with the function inside a wrapper of torch.compile; -1 for any other function. The wrapper's
// code object is unique in the process, and remembered.
static Py_ssize_t cell_of_torch_wrapper(PyCodeObject* code) {
  static PyCodeObject* known;  // owned
  static Py_ssize_t cell = -1;
  if (code == known) return cell;
  if (known != NULL || code->co_nfreevars == 0 || !ends_with(code->co_name, "compile_wrapper") ||
      !ends_with(code->co_filename, "torch/_dynamo/eval_frame.py")) {
    return -1;
  }
  PyObject* names = PyCode_GetFreevars(code);
  if (names == NULL) return PyErr_Clear(), -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    if (strcmp(PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i)), "fn") == 0) cell = i;
  }
  Py_DECREF(names);
  if (cell >= 0) known = (PyCodeObject*)Py_NewRef((PyObject*)code);
  return cell;
}

PyObject* cresset_eval_wrapped(PyObject* callable) {
  if (!PyFunction_Check(callable)) return NULL;
  PyObject* code = PyFunction_GET_CODE(callable);
  const Py_ssize_t cell =
      code == wrapper_code && code != NULL ? wrapper_cell : cell_of_torch_wrapper((PyCodeObject*)code);
  PyObject* closure = PyFunction_GET_CLOSURE(callable);
  return cell >= 0 && closure != NULL ? PyCell_GET(PyTuple_GET_ITEM(closure, cell)) : NULL;
}

// One step; 1: *callable is the next object to resolve; 0: C code calls it.
static int resolve_step(PyObject** callable, Callee* callee) {
  PyObject* object = *callable;
  PyObject* wrapped = cresset_eval_wrapped(object);
  if (wrapped != NULL) return *callable = wrapped, 1;
  if (PyMethod_Check(object)) {
    *callable = PyMethod_GET_FUNCTION(object);
    return prepend(callee, PyMethod_GET_SELF(object));
  }
  if (Py_IS_TYPE(object, transparent_type)) return *callable = transparent_inside(object), 1;
  if (Py_IS_TYPE(object, cresset_known.partial)) return resolve_partial(object, callee, callable);
  if (Py_TYPE(object)->tp_call != cresset_known.call) return 0;
  PyObject* method = _PyType_Lookup(Py_TYPE(object), cresset_names.__call__);
  if (method == NULL || !PyFunction_Check(method)) return 0;
  *callable = method;
  return prepend(callee, object);
}

int cresset_resolve(PyObject* callable, Callee* callee) {
  callee->function = NULL;
  callee->head_count = 0;
  callee->partial_args = callee->partial_dict = callee->instance = NULL;
  callee->make = NULL;
  int resolved = 1;
  for (int steps = 0; resolved == 1 && (!PyFunction_Check(callable) || cresset_eval_wrapped(callable) != NULL);
       steps++) {
    if (PyType_Check(callable) && Py_TYPE(callable)->tp_call == cresset_known.type_call) {
      resolved = resolve_class((PyTypeObject*)callable, callee);
      callable = callee->function;
      break;
    }
    resolved = steps < kMaxHead ? resolve_step(&callable, callee) : 0;
  }
  if (resolved == 1 && !is_plain_function(callable)) resolved = 0;
  if (resolved == 1 && code_is_generator((PyCodeObject*)function_code(callable)) && callee->make == NULL) resolved = 0;
  if (resolved == 1) {
    callee->function = callable;
  } else {
    cresset_release_callee(callee);
  }
  return resolved;
}

static PyObject* keywords_as_dict(PyObject* const* values, PyObject* names) {
  PyObject* dict = PyDict_New();
  for (Py_ssize_t i = 0; dict != NULL && i < PyTuple_GET_SIZE(names); i++) {
    if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), values[i]) < 0) Py_CLEAR(dict);
  }
  return dict;
}

int cresset_make_instance(Callee* callee, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyTypeObject* type = callee->make;
  // object.__new__ checks the arguments only where __init__ is object's.
  const int plain = type->tp_new == PyBaseObject_Type.tp_new;
  PyObject* tuple = PyTuple_New(plain ? 0 : nargs);
  if (tuple == NULL) return -1;
  for (Py_ssize_t i = 0; !plain && i < nargs; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
  PyObject* keywords = NULL;
  if (!plain && kwnames != NULL && (keywords = keywords_as_dict(args + nargs, kwnames)) == NULL) {
    Py_DECREF(tuple);
    return -1;
  }
  callee->instance = type->tp_new(type, tuple, keywords);
  Py_DECREF(tuple);
  Py_XDECREF(keywords);
  if (callee->instance == NULL) return -1;
  if (!PyObject_TypeCheck(callee->instance, type)) return 0;
  PyObject* init = _PyType_Lookup(Py_TYPE(callee->instance), cresset_names.__init__);
  if (init != callee->function || code_is_generator((PyCodeObject*)function_code(init))) {
    // __new__ returned an instance of a subclass, or the class changed meanwhile.
    PyObject* done = cresset_call_init(callee, args, nargs, kwnames);
    Py_XSETREF(callee->instance, done);
    return done != NULL ? 0 : -1;
  }
  callee->head[callee->head_count++] = callee->instance;
  return 1;
}

PyObject* cresset_call_init(const Callee* callee, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* tuple = PyTuple_New(nargs);
  PyObject* keywords = kwnames != NULL ? keywords_as_dict(args + nargs, kwnames) : NULL;
  int failed = tuple == NULL || (kwnames != NULL && keywords == NULL);
  if (!failed) {
    for (Py_ssize_t i = 0; i < nargs; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    failed = Py_TYPE(callee->instance)->tp_init(callee->instance, tuple, keywords);
  }
  Py_XDECREF(tuple);
  Py_XDECREF(keywords);
  return failed ? NULL : Py_NewRef(callee->instance);
}

void cresset_free_flat(PyObject** flat, Py_ssize_t nargs, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(flat[1 + nargs + i]);
  Py_DECREF(flat[0]);
  PyMem_Free(flat);
}

int cresset_flatten_call(PyObject* args, PyObject* kwargs, PyObject*** flat, PyObject** kwnames) {
  const Py_ssize_t nargs = PyTuple_GET_SIZE(args), count = PyDict_GET_SIZE(kwargs);
  *flat = NULL;
  *kwnames = NULL;
  PyObject* names = PyTuple_New(count);
  PyObject** values = PyMem_Malloc(sizeof(PyObject*) * (size_t)(nargs + count + 1));
  if (names == NULL || values == NULL) {
    Py_XDECREF(names);
    PyMem_Free(values);
    PyErr_NoMemory();
    return -1;
  }
  values[0] = Py_NewRef(args);
  for (Py_ssize_t i = 0; i < nargs; i++) values[1 + i] = PyTuple_GET_ITEM(args, i);
  Py_ssize_t position = 0, i = 0;
  PyObject *key, *value;
  while (PyDict_Next(kwargs, &position, &key, &value)) {
    if (!PyUnicode_Check(key)) {
      cresset_free_flat(values, nargs, i);
      Py_DECREF(names);
      return 0;
    }
    PyTuple_SET_ITEM(names, i, Py_NewRef(key));
    values[1 + nargs + i++] = Py_NewRef(value);
  }
  *flat = values;
  *kwnames = names;
  return 0;
}

static int is_flattened(PyObject* args, PyObject* kwargs, PyObject** flat, PyObject* kwnames) {
  if (flat[0] != args || PyDict_GET_SIZE(kwargs) != PyTuple_GET_SIZE(kwnames)) return 0;
  PyObject** values = flat + 1 + PyTuple_GET_SIZE(args);
  Py_ssize_t position = 0, i = 0;
  PyObject *key, *value;
  while (PyDict_Next(kwargs, &position, &key, &value)) {
    if (PyTuple_GET_ITEM(kwnames, i) != key || values[i] != value) return 0;
    i++;
  }
  return 1;
}

int cresset_flatten_again(PyObject* args, PyObject* kwargs, PyObject*** flat, PyObject** kwnames) {
  if (is_flattened(args, kwargs, *flat, *kwnames)) return 0;
  PyObject **again, *names;
  if (cresset_flatten_call(args, kwargs, &again, &names) < 0) return -1;
  cresset_free_flat(*flat, PyTuple_GET_SIZE((*flat)[0]), PyTuple_GET_SIZE(*kwnames));
  Py_DECREF(*kwnames);
  *flat = again;
  *kwnames = names;
  return 0;
}
