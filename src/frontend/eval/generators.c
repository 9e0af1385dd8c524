// Generators and awaiting.
#include "frontend/eval/helpers.h"
#include "frontend/eval/known.h"

int cresset_leave_generator(PyThreadState* tstate, Frame* frame, int failed) {
  PyGenObject* generator = _PyFrame_GetGenerator(frame);
  tstate->exc_info = generator->gi_exc_state.previous_item;
  generator->gi_exc_state.previous_item = NULL;
  frame->previous = NULL;
  if (!failed && IS_SUSPENDED(generator->gi_frame_state)) return 1;
  if (!kGeneratorsConvertStops && failed && PyErr_ExceptionMatches(PyExc_StopIteration)) {
    _PyErr_FormatFromCause(PyExc_RuntimeError, PyCoro_CheckExact(generator) ? "coroutine raised StopIteration"
                                                                            : "generator raised StopIteration");
  }
  generator->gi_frame_state = FRAME_CLEARED;
  Py_CLEAR(generator->gi_exc_state.exc_value);
  clear_generator_frame(tstate, frame);
  return 0;
}

int cresset_may_throw_into(PyObject* object) {
  const PyGenObject* generator = (PyGenObject*)object;
  if (generator->gi_frame_state != FRAME_SUSPENDED) return 0;
  Frame* frame = (Frame*)generator->gi_iframe;
  const Unit next = frame_code(frame)[resting_frame_last(frame) + 1];
  return cresset_base_opcode[_Py_OPCODE(next)] != RESUME || (_Py_OPARG(next) & 3) < 2;  // else `yield from`, `await`
}

int cresset_set_thrown(PyObject* const* args, Py_ssize_t nargs) {
  PyObject* type = nargs > 0 ? args[0] : PyExc_GeneratorExit;
  PyObject* value = nargs > 1 ? args[1] : NULL;
  PyObject* traceback = nargs > 2 && args[2] != Py_None ? Py_NewRef(args[2]) : NULL;
  if (traceback != NULL && !PyTraceBack_Check(traceback)) {
    Py_DECREF(traceback);
    PyErr_SetString(PyExc_TypeError, "throw() third argument must be a traceback object");
    return -1;
  }
  Py_INCREF(type);
  Py_XINCREF(value);
  if (PyExceptionClass_Check(type)) {
    PyErr_NormalizeException(&type, &value, &traceback);
  } else if (PyExceptionInstance_Check(type) && (value == NULL || value == Py_None)) {
    Py_XSETREF(value, type);
    type = Py_NewRef(PyExceptionInstance_Class(value));
    if (traceback == NULL) traceback = PyException_GetTraceback(value);
  } else {
    if (PyExceptionInstance_Check(type)) {
      PyErr_SetString(PyExc_TypeError, "instance exception may not have a separate value");
    } else {
      PyErr_Format(PyExc_TypeError, "exceptions must be classes or instances deriving from BaseException, not %s",
                   Py_TYPE(type)->tp_name);
    }
    Py_DECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return -1;
  }
  PyErr_Restore(type, value, traceback);
  return 0;
}

void cresset_chain_thrown(PyObject* generator) {
  const PyObject* handled = ((PyGenObject*)generator)->gi_exc_state.exc_value;
  if (handled == NULL || handled == Py_None) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_SetObject(type, value);  // adds the handled exception as context
  Py_DECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

PyObject* cresset_closed(PyObject* generator, PyObject* result, int yielded) {
  if (result != NULL && yielded) {
    Py_DECREF(result);
    PyErr_Format(PyExc_RuntimeError, "%s ignored GeneratorExit",
                 PyCoro_CheckExact(generator) ? "coroutine" : "generator");
    return NULL;
  }
  if (result == NULL) {
    if (!PyErr_ExceptionMatches(PyExc_StopIteration) && !PyErr_ExceptionMatches(PyExc_GeneratorExit)) return NULL;
    PyErr_Clear();
  }
  if (kCloseGivesValue && result != NULL) return result;
  Py_XDECREF(result);
  return Py_NewRef(Py_None);
}

// A generator of a function marked by types.coroutine is awaitable itself.
static int is_coroutine(PyObject* object) {
  if (PyCoro_CheckExact(object)) return 1;
  return PyGen_CheckExact(object) && (generator_code(object)->co_flags & CO_ITERABLE_COROUTINE) != 0;
}

static PyObject* await_method(PyObject* object) {
  unaryfunc await = Py_TYPE(object)->tp_as_async != NULL ? Py_TYPE(object)->tp_as_async->am_await : NULL;
  if (await == NULL) {
    PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression", Py_TYPE(object)->tp_name);
    return NULL;
  }
  PyObject* iterator = await(object);
  if (iterator == NULL) return NULL;
  if (is_coroutine(iterator)) {
    PyErr_SetString(PyExc_TypeError, "__await__() returned a coroutine");
  } else if (!PyIter_Check(iterator)) {
    PyErr_Format(PyExc_TypeError, "__await__() returned non-iterator of type '%.100s'", Py_TYPE(iterator)->tp_name);
  } else {
    return iterator;
  }
  Py_DECREF(iterator);
  return NULL;
}

static PyObject* awaitable_iterator(PyObject* object) {
  return is_coroutine(object) ? Py_NewRef(object) : await_method(object);
}

PyObject* cresset_awaitable(PyObject* object, int after_with) {
  PyObject* iterator = awaitable_iterator(object);
  if (iterator == NULL) {
    PyTypeObject* type = Py_TYPE(object);
    if (after_with != 0 && (type->tp_as_async == NULL || type->tp_as_async->am_await == NULL)) {
      PyErr_Format(PyExc_TypeError, "'async with' received an object from %s that does not implement __await__: %.100s",
                   after_with == 1 ? "__aenter__" : "__aexit__", type->tp_name);
    }
    return NULL;
  }
  if (!PyCoro_CheckExact(iterator)) return iterator;
  PyObject* awaited = PyObject_GetAttr(iterator, cresset_names.cr_await);
  if (awaited == Py_None) {
    Py_DECREF(awaited);
    return iterator;
  }
  if (awaited != NULL) {
    Py_DECREF(awaited);
    PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
  }
  Py_DECREF(iterator);
  return NULL;
}

PyObject* cresset_async_iterator(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_as_async == NULL || type->tp_as_async->am_aiter == NULL) {
    PyErr_Format(PyExc_TypeError, "'async for' requires an object with __aiter__ method, got %.100s", type->tp_name);
    return NULL;
  }
  PyObject* iterator = type->tp_as_async->am_aiter(object);
  if (iterator == NULL) return NULL;
  PyTypeObject* made = Py_TYPE(iterator);
  if (made->tp_as_async != NULL && made->tp_as_async->am_anext != NULL) return iterator;
  PyErr_Format(PyExc_TypeError,
               "'async for' received an object from __aiter__ that does not implement __anext__: %.100s",
               made->tp_name);
  Py_DECREF(iterator);
  return NULL;
}

PyObject* cresset_async_next(PyObject* iterator) {
  PyTypeObject* type = Py_TYPE(iterator);
  if (PyAsyncGen_CheckExact(iterator)) return type->tp_as_async->am_anext(iterator);
  if (type->tp_as_async == NULL || type->tp_as_async->am_anext == NULL) {
    PyErr_Format(PyExc_TypeError, "'async for' requires an iterator with __anext__ method, got %.100s", type->tp_name);
    return NULL;
  }
  PyObject* next = type->tp_as_async->am_anext(iterator);
  if (next == NULL) return NULL;
  PyObject* awaitable = awaitable_iterator(next);
  if (awaitable == NULL) {
    _PyErr_FormatFromCause(PyExc_TypeError, "'async for' received an invalid object from __anext__: %.100s",
                           Py_TYPE(next)->tp_name);
  }
  Py_DECREF(next);
  return awaitable;
}

PyObject* cresset_special(PyObject* object, PyObject* name, const char* protocol, const char* missed) {
  PyObject* method = _PyObject_LookupSpecial(object, name);
  if (method != NULL || PyErr_Occurred()) return method;
  if (missed != NULL) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the %s protocol (missed %s method)",
                 Py_TYPE(object)->tp_name, protocol, missed);
  } else {
    PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the %s protocol", Py_TYPE(object)->tp_name,
                 protocol);
  }
  return NULL;
}
