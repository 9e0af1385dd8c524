// Hooks for tests, which replace all objects in frames, as the rules of hooks.h allow.
#include "frontend/eval/record.h"
#include "frontend/eval/state.h"

static int put_one(PyObject* replacement, PyObject** slot) {
  if (*slot == NULL) return 0;
  PyObject* now = PyObject_CallOneArg(replacement, *slot);
  if (now == NULL) return -1;
  PyObject* old = *slot;
  *slot = now;
  Py_DECREF(old);
  return 0;
}

static int put_all(void* replacement) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  int failed = 0;
  for (CressetActivation* a = cresset_eval_state.current; a != NULL && !failed; a = a->caller) {
    CressetFrameImage image;
    cresset_eval_image(a, CRESSET_BEFORE, &image);
    for (int i = 0; i < image.slot_count && !failed; i++) failed = put_one(replacement, &image.slots[i]);
    for (int i = 0; i < image.stack_depth && !failed; i++) failed = put_one(replacement, &image.stack[i]);
  }
  if (failed) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return -1;
  }
  PyErr_Restore(type, value, traceback);
  return 0;
}

#define HOOK(name, ...) \
  static int name(void* s, CressetActivation* a, __VA_ARGS__) { return put_all(s); }
HOOK(on_name, CressetNamespace where, PyObject* mapping, PyObject* name, PyObject* value)
HOOK(on_cell, PyObject* cell, int slot, PyObject* value)
HOOK(on_attribute, const CressetAttributeRead* read)
HOOK(on_contents, PyObject* container)
HOOK(on_length, PyObject* container, Py_ssize_t length)
HOOK(on_pair, PyObject* first, PyObject* second)
HOOK(on_item, PyObject* container, PyObject* key, PyObject* value)
HOOK(on_contains, PyObject* container, PyObject* item, int result)
HOOK(on_compare, PyObject* left, PyObject* right, int operation, PyObject* result)
HOOK(on_is, PyObject* left, PyObject* right, int result)
HOOK(on_default, PyObject* function, Py_ssize_t index, PyObject* keyword, PyObject* value)
HOOK(on_write, const CressetWrite* write)
HOOK(on_called, const CressetCall* call, PyObject** result, PyObject* exception)
#undef HOOK
static int on_truth(void* s, CressetActivation* a, PyObject* value) { return put_all(s) < 0 ? -1 : CRESSET_TRUTH_RUN; }
static CressetAction on_call(void* s, CressetActivation* a, const CressetCall* call, PyObject** result) {
  return put_all(s) < 0 ? CRESSET_FAIL : CRESSET_RUN;
}
static CressetAction on_operator(void* s, CressetActivation* a, const CressetOperator* operator, PyObject ** result) {
  return put_all(s) < 0 ? CRESSET_FAIL : CRESSET_RUN;
}
static CressetAction on_enter(void* s, CressetActivation* a) { return put_all(s) < 0 ? CRESSET_FAIL : CRESSET_RUN; }

PyObject* cresset_eval_replace(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  (void)self;
  if (nargs < 2) {
    PyErr_SetString(PyExc_TypeError, "expected what gives replacements, a function and its arguments");
    return NULL;
  }
  const CressetEvalHooks hooks = {
      .session = args[0],
      .read_name = on_name,
      .read_cell = on_cell,
      .read_attribute = on_attribute,
      .read_item = on_item,
      .read_contents = on_contents,
      .read_length = on_length,
      .read_iterator = on_pair,
      .read_next = on_pair,
      .read_contains = on_contains,
      .read_compare = on_compare,
      .read_is = on_is,
      .read_default = on_default,
      .before_write = on_write,
      .after_write = on_write,
      .truth = on_truth,
      .before_call = on_call,
      .after_call = on_called,
      .before_operator = on_operator,
      .enter_frame = on_enter,
  };
  if (cresset_eval_begin(&hooks) < 0) return NULL;
  PyObject* result = PyObject_Vectorcall(args[1], args + 2, (size_t)nargs - 2, NULL);
  cresset_eval_end();
  return result;
}
