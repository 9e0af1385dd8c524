#include "frontend/eval/debug.h"

#include "frontend/eval/known.h"
#include "frontend/eval/record.h"
#include "frontend/eval/state.h"

static PyObject* eval_begin(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  if (cresset_eval_begin(NULL) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject* eval_end(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  cresset_eval_end();
  Py_RETURN_NONE;
}

static PyObject* eval_unsupported(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  const char* why = cresset_eval_unsupported();
  if (why == NULL) Py_RETURN_NONE;
  return PyUnicode_FromString(why);
}

static PyMethodDef functions[] = {
    {"_eval_begin", eval_begin, METH_NOARGS, "From here on, evaluate every new frame of this thread."},
    {"_eval_end", eval_end, METH_NOARGS, "Ends what _eval_begin began."},
    {"_eval_unsupported", eval_unsupported, METH_NOARGS, "Why this interpreter cannot be evaluated, or None."},
    {"_eval_record", (PyCFunction)(void (*)(void))cresset_eval_record, METH_FASTCALL,
     "_eval_record(function, *args) -> (result, events): evaluates a call and tells what its hooks were told."},
    {"_eval_break_at", (PyCFunction)(void (*)(void))cresset_eval_break_at, METH_FASTCALL,
     "_eval_break_at(count, natively, function, *args): evaluates a call, copies its frames at the count-th operation "
     "told and gives (result, result of resuming the copies)."},
    {"_eval_leave_at", (PyCFunction)(void (*)(void))cresset_eval_leave_at, METH_FASTCALL,
     "_eval_leave_at(count, all, function, *args) -> (steps seen, result): leaves the frame, or all of them, at the "
     "count-th instruction."},
    {"_eval_replace", (PyCFunction)(void (*)(void))cresset_eval_replace, METH_FASTCALL,
     "_eval_replace(replacement, function, *args): evaluates a call; whenever it tells something, replacement(value) "
     "takes the place of each value that its frames hold."},
    {NULL, NULL, 0, NULL},
};

// Reads CPython's slots and names at import, so that the first capture does not pay for it.
int cresset_eval_add_functions(PyObject* module) {
  if (cresset_eval_unsupported() == NULL && cresset_known_init() < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}
