// Binds arguments to the slots of a new frame.
#include "frontend/eval/helpers.h"

// The n-th positional argument of the call; NULL behind the last.
static PyObject* positional(const CallArguments* call, Py_ssize_t n) {
  if (n < call->head_count) return call->head[n];
  n -= call->head_count;
  const Py_ssize_t partial = call->partial_args != NULL ? PyTuple_GET_SIZE(call->partial_args) : 0;
  if (n < partial) return PyTuple_GET_ITEM(call->partial_args, n);
  n -= partial;
  return n < call->nargs ? call->args[n] : NULL;
}

static Py_ssize_t positional_count(const CallArguments* call) {
  return call->head_count + call->nargs + (call->partial_args != NULL ? PyTuple_GET_SIZE(call->partial_args) : 0);
}

static int bind_positional(const PyCodeObject* code, const CallArguments* call, PyObject** slots) {
  const Py_ssize_t given = positional_count(call);
  const int parameters = code->co_argcount;
  const Py_ssize_t direct = given < parameters ? given : parameters;
  for (Py_ssize_t i = 0; i < direct; i++) slots[i] = Py_NewRef(positional(call, i));
  if (!(code->co_flags & CO_VARARGS)) return given <= parameters;
  PyObject* rest = PyTuple_New(given - direct);
  if (rest == NULL) return 0;
  for (Py_ssize_t i = direct; i < given; i++) PyTuple_SET_ITEM(rest, i - direct, Py_NewRef(positional(call, i)));
  slots[parameters + code->co_kwonlyargcount] = rest;
  return 1;
}

// The slot of a parameter that accepts a keyword; -1 if there is none.
static Py_ssize_t parameter_slot(const PyCodeObject* code, PyObject* name) {
  const Py_ssize_t end = code->co_argcount + code->co_kwonlyargcount;
  PyObject* names = code->co_localsplusnames;
  for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
    if (PyTuple_GET_ITEM(names, i) == name) return i;
  }
  for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
    if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) return i;
  }
  return -1;
}

// overridden: the keywords of a partial, which keywords of the call may replace; or NULL.
static int bind_keyword(const PyCodeObject* code, PyObject** slots, PyObject* name, PyObject* value,
                        PyObject* overridden) {
  if (!PyUnicode_Check(name)) return 0;
  const Py_ssize_t slot = parameter_slot(code, name);
  if (slot >= 0) {
    if (slots[slot] != NULL) {
      if (overridden == NULL || PyDict_Contains(overridden, name) != 1) return 0;
      Py_DECREF(slots[slot]);
    }
    slots[slot] = Py_NewRef(value);
    return 1;
  }
  if (!(code->co_flags & CO_VARKEYWORDS)) return 0;
  const int place = code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0);
  return PyDict_SetItem(slots[place], name, value) == 0;
}

static int bind_keywords(const PyCodeObject* code, const CallArguments* call, PyObject** slots) {
  if (code->co_flags & CO_VARKEYWORDS) {
    PyObject* rest = PyDict_New();
    if (rest == NULL) return 0;
    slots[code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0)] = rest;
  }
  // A keyword of the partial collides with a positional argument, but gives way to a keyword of the call.
  PyObject *name, *value;
  Py_ssize_t position = 0;
  while (call->partial_dict != NULL && PyDict_Next(call->partial_dict, &position, &name, &value)) {
    if (!bind_keyword(code, slots, name, value, NULL)) return 0;
  }
  const Py_ssize_t count = call->kwnames != NULL ? PyTuple_GET_SIZE(call->kwnames) : 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    name = PyTuple_GET_ITEM(call->kwnames, i);
    if (!bind_keyword(code, slots, name, call->args[call->nargs + i], call->partial_dict)) return 0;
  }
  return 1;
}

static int bind_defaults(PyFunctionObject* function, const PyCodeObject* code, PyObject** slots) {
  const Py_ssize_t defaults = function->func_defaults != NULL ? PyTuple_GET_SIZE(function->func_defaults) : 0;
  const Py_ssize_t first = code->co_argcount - defaults;
  for (Py_ssize_t i = 0; i < code->co_argcount; i++) {
    if (slots[i] != NULL) continue;
    if (i < first) return 0;
    slots[i] = Py_NewRef(PyTuple_GET_ITEM(function->func_defaults, i - first));
  }
  for (Py_ssize_t i = code->co_argcount; i < code->co_argcount + code->co_kwonlyargcount; i++) {
    if (slots[i] != NULL) continue;
    PyObject* name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
    PyObject* value =
        function->func_kwdefaults != NULL ? PyDict_GetItemWithError(function->func_kwdefaults, name) : NULL;
    if (value == NULL) return 0;
    slots[i] = Py_NewRef(value);
  }
  return 1;
}

Frame* cresset_bind(PyThreadState* tstate, PyObject* callable, const CallArguments* call) {
  PyFunctionObject* function = (PyFunctionObject*)callable;
  PyCodeObject* code = (PyCodeObject*)function->func_code;
  if (code_is_generator(code)) return NULL;
  PyObject* names = (code->co_flags & CO_OPTIMIZED) ? NULL : Py_NewRef(function->func_globals);
  Py_INCREF(function);
  Frame* frame = push_frame(tstate, function, code, names);
  if (frame == NULL) return NULL;
  for (int i = 0; i < code->co_nlocalsplus; i++) frame->localsplus[i] = NULL;
  PyObject** slots = frame->localsplus;
  if (bind_positional(code, call, slots) && bind_keywords(code, call, slots) && bind_defaults(function, code, slots)) {
    return frame;
  }
  drop_frame(tstate, frame);
  return NULL;
}

int cresset_tell_defaults(const CressetEvalHooks* hooks, CressetActivation* activation, PyObject* callable,
                          const CallArguments* call) {
  PyFunctionObject* function = (PyFunctionObject*)callable;
  const PyCodeObject* code = (PyCodeObject*)function->func_code;
  if (function->func_defaults == NULL && function->func_kwdefaults == NULL) return 0;
  uint8_t given[256];
  const int count = code->co_argcount + code->co_kwonlyargcount;
  if (count > 256) return 0;
  memset(given, 0, (size_t)count);
  // Marks the parameters that the call itself fills.
  for (Py_ssize_t i = 0; i < positional_count(call) && i < code->co_argcount; i++) given[i] = 1;
  PyObject *name, *value;
  Py_ssize_t position = 0;
  while (call->partial_dict != NULL && PyDict_Next(call->partial_dict, &position, &name, &value)) {
    const Py_ssize_t slot = parameter_slot(code, name);
    if (slot >= 0) given[slot] = 1;
  }
  for (Py_ssize_t i = 0; call->kwnames != NULL && i < PyTuple_GET_SIZE(call->kwnames); i++) {
    const Py_ssize_t slot = parameter_slot(code, PyTuple_GET_ITEM(call->kwnames, i));
    if (slot >= 0) given[slot] = 1;
  }
  const Py_ssize_t defaults = function->func_defaults != NULL ? PyTuple_GET_SIZE(function->func_defaults) : 0;
  const Py_ssize_t first = code->co_argcount - defaults;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (given[i] != 0) continue;
    int reported;
    if (i < code->co_argcount) {
      value = PyTuple_GET_ITEM(function->func_defaults, i - first);
      reported = hooks->read_default(hooks->session, activation, callable, i - first, NULL, value);
    } else {
      name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
      value = PyDict_GetItemWithError(function->func_kwdefaults, name);
      reported = hooks->read_default(hooks->session, activation, callable, -1, name, value);
    }
    if (reported < 0) return -1;
  }
  return 0;
}
