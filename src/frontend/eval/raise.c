// Raising, and instructions that need functions private to libpython: the instructions of `except*` and of type
// parameters.
#include "frontend/eval/helpers.h"

void cresset_restore_exception(PyObject* value) {
  PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(value)), value, PyException_GetTraceback(value));
}

static int reraise_handled(void) {
  PyObject* value = PyErr_GetHandledException();
  if (value == NULL) {
    PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
    return 0;
  }
  cresset_restore_exception(value);
  return 1;
}

// An instance from a class or an instance; steals. NULL for any other object: `message` is the TypeError.
static PyObject* exception_instance(PyObject* exception, const char* message) {
  if (PyExceptionInstance_Check(exception)) return exception;
  if (!PyExceptionClass_Check(exception)) {
    Py_DECREF(exception);
    PyErr_SetString(PyExc_TypeError, message);
    return NULL;
  }
  PyObject* instance = PyObject_CallNoArgs(exception);
  if (instance != NULL && !PyExceptionInstance_Check(instance)) {
    PyErr_Format(PyExc_TypeError, "calling %R should have returned an instance of BaseException, not %R", exception,
                 Py_TYPE(instance));
    Py_CLEAR(instance);
  }
  Py_DECREF(exception);
  return instance;
}

int cresset_raise(PyObject* exception, PyObject* cause) {
  if (exception == NULL) return reraise_handled();
  PyObject* value = exception_instance(exception, "exceptions must derive from BaseException");
  if (value == NULL) {
    Py_XDECREF(cause);
    return 0;
  }
  if (cause == Py_None) {
    Py_DECREF(cause);
    PyException_SetCause(value, NULL);
  } else if (cause != NULL) {
    PyObject* instance = exception_instance(cause, "exception causes must derive from BaseException");
    if (instance == NULL) {
      Py_DECREF(value);
      return 0;
    }
    PyException_SetCause(value, instance);
  }
  PyErr_SetObject(PyExceptionInstance_Class(value), value);
  Py_DECREF(value);
  return 0;
}

static int is_exception_type(PyObject* type) { return PyExceptionClass_Check(type); }

int cresset_check_except_type(PyObject* type) {
  int valid = 1;
  if (PyTuple_Check(type)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type); i++) valid &= is_exception_type(PyTuple_GET_ITEM(type, i));
  } else {
    valid = is_exception_type(type);
  }
  if (valid) return 0;
  PyErr_SetString(PyExc_TypeError, "catching classes that do not inherit from BaseException is not allowed");
  return -1;
}

void cresset_add_traceback(PyThreadState* tstate, Frame* frame) {
  if (_PyFrame_IsIncomplete(frame)) return;
  PyFrameObject* object = PyThreadState_GetFrame(tstate);  // the current frame is `frame`
  if (object == NULL) return;
  PyTraceBack_Here(object);
  Py_DECREF(object);
}

// ---- Borrowed instructions ------------------------------------------------------------------------------------------
// A function of two arguments has the instruction itself as its body, and CPython runs the function. An exception gets
// a traceback entry for the function, which is removed again.

static PyObject* compile_borrowed(const char* body) {
  static const char kSource[] =
      "def make(body):\n"
      "    import opcode, types\n"
      "    code = (lambda a, b: a).__code__\n"
      "    words = []\n"
      "    for word in body.split():\n"
      "        name, _, number = word.partition(':')\n"
      "        words += [opcode.opmap[name], int(number or 0)]\n"
      "    code = code.replace(co_code=bytes(words), co_stacksize=6, co_exceptiontable=b'')\n"
      "    return types.FunctionType(code, {'__builtins__': __builtins__})\n";
  cresset_eval_pause();
  PyObject* made = NULL;
  PyObject* globals = PyDict_New();
  if (globals != NULL && PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) == 0) {
    PyObject* ran = PyRun_String(kSource, Py_file_input, globals, globals);
    if (ran != NULL) made = PyObject_CallFunction(PyDict_GetItemString(globals, "make"), "s", body);
    Py_XDECREF(ran);
  }
  Py_XDECREF(globals);
  cresset_eval_unpause();
  return made;
}

static PyObject* run_borrowed(PyObject** function, const char* body, PyObject* a, PyObject* b) {
  if (*function == NULL && (*function = compile_borrowed(body)) == NULL) return NULL;
  PyObject* arguments[2] = {a, b};
  cresset_eval_pause();
  PyObject* result = PyObject_Vectorcall(*function, arguments, 2, NULL);
  cresset_eval_unpause();
  if (result != NULL) return result;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (traceback != NULL && PyTraceBack_Check(traceback)) {
    PyObject* inner = (PyObject*)((PyTracebackObject*)traceback)->tb_next;
    Py_XINCREF(inner);
    Py_SETREF(traceback, inner);
  }
  PyErr_Restore(type, value, traceback);
  return NULL;
}

PyObject* cresset_prepare_reraise_star(PyObject* original, PyObject* raised) {
  static PyObject* function;
  return run_borrowed(&function, "RESUME LOAD_FAST:0 LOAD_FAST:1 " BORROWED_RERAISE_STAR " RETURN_VALUE", original,
                      raised);
}

PyObject* cresset_intrinsic(int operands, int number, PyObject* first, PyObject* second) {
  static PyObject* functions[2][32];
  char body[80];
  if (number < 0 || number >= 32) {
    PyErr_Format(PyExc_SystemError, "nothing is known of intrinsic %d", number);
    return NULL;
  }
  PyOS_snprintf(body, sizeof body, "RESUME LOAD_FAST:0 %s CALL_INTRINSIC_%d:%d RETURN_VALUE",
                operands == 2 ? "LOAD_FAST:1" : "NOP", operands, number);
  return run_borrowed(&functions[operands - 1][number], body, first, second);
}

int cresset_match_exception_group(PyObject* value, PyObject* type, PyObject** match, PyObject** rest) {
  // The instruction leaves rest and match (or the value and None) on the stack. It also makes the match the handled
  // exception. The helper undoes this, and the caller does it again at the right time for its own frame.
  static PyObject* function;
  PyObject* handled = PyErr_GetHandledException();
  PyObject* pair =
      run_borrowed(&function, "RESUME LOAD_FAST:0 LOAD_FAST:1 CHECK_EG_MATCH BUILD_TUPLE:2 RETURN_VALUE", value, type);
  PyErr_SetHandledException(handled);
  Py_XDECREF(handled);
  if (pair == NULL) return -1;
  *rest = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
  *match = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
  Py_DECREF(pair);
  return 0;
}
