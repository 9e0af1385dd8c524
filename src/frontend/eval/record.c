#include "frontend/eval/record.h"

#include "frontend/eval/state.h"

// ---- Recording ------------------------------------------------------------------------------------------------------

static int note(void* events, const char* format, ...) {
  va_list values;
  va_start(values, format);
  PyObject* event = Py_VaBuildValue(format, values);
  va_end(values);
  if (event == NULL) return -1;
  const int failed = PyList_Append(events, event);
  Py_DECREF(event);
  return failed;
}

static PyObject* or_none(PyObject* value) { return value != NULL ? value : Py_None; }
static const char* const kPlaces[] = {"instance", "module", "slot",  "getset",  "type",
                                      "class",    "python", "super", "foreign", "nowhere"};
static const char* const kNamespaces[] = {"globals", "builtins", "locals", "nothing", "modules"};
static const char* const kWrites[] = {"attribute", "global", "name", "cell", "item", "in_place"};
static const char* const kOperators[] = {"binary", "unary", "compare", "subscript", "contains",
                                         "format", "iter",  "next",    "unpack",    "hash"};

static int on_name(void* s, CressetActivation* a, CressetNamespace where, PyObject* mapping, PyObject* name,
                   PyObject* value) {
  (void)a, (void)mapping;
  return note(s, "(ssOO)", "name", kNamespaces[where], name, or_none(value));
}
static int on_cell(void* s, CressetActivation* a, PyObject* cell, int slot, PyObject* value) {
  (void)a, (void)cell;
  return note(s, "(siO)", "cell", slot, value);
}
static int on_attribute(void* s, CressetActivation* a, const CressetAttributeRead* read) {
  (void)a;
  return note(s, "(ssOOO)", "attribute", kPlaces[read->place], read->name, or_none(read->value),
              or_none((PyObject*)cresset_attribute_holder(read)));
}
static int on_item(void* s, CressetActivation* a, PyObject* container, PyObject* key, PyObject* value) {
  (void)a;
  return note(s, "(sOOO)", "item", (PyObject*)Py_TYPE(container), key, or_none(value));
}
static int on_contents(void* s, CressetActivation* a, PyObject* container) {
  (void)a;
  return note(s, "(sO)", "contents", (PyObject*)Py_TYPE(container));
}
static int on_length(void* s, CressetActivation* a, PyObject* container, Py_ssize_t length) {
  (void)a;
  return note(s, "(sOn)", "length", (PyObject*)Py_TYPE(container), length);
}
static int on_iterator(void* s, CressetActivation* a, PyObject* iterable, PyObject* iterator) {
  (void)a;
  return note(s, "(sOO)", "iterator", (PyObject*)Py_TYPE(iterable), (PyObject*)Py_TYPE(iterator));
}
static int on_next(void* s, CressetActivation* a, PyObject* iterator, PyObject* value) {
  (void)a, (void)iterator;
  return note(s, "(sO)", "next", or_none(value));
}
static int on_contains(void* s, CressetActivation* a, PyObject* container, PyObject* item, int result) {
  (void)a;
  return note(s, "(sOOi)", "contains", (PyObject*)Py_TYPE(container), item, result);
}
static int on_compare(void* s, CressetActivation* a, PyObject* left, PyObject* right, int operation, PyObject* result) {
  (void)a;
  return note(s, "(sOOiO)", "compare", left, right, operation, result);
}
static int on_is(void* s, CressetActivation* a, PyObject* left, PyObject* right, int result) {
  (void)a;
  return note(s, "(sOOi)", "is", left, right, result);
}
static int on_default(void* s, CressetActivation* a, PyObject* function, Py_ssize_t index, PyObject* keyword,
                      PyObject* value) {
  (void)a, (void)function;
  return note(s, "(snOO)", "default", index, or_none(keyword), value);
}
static int note_write(void* s, const char* when, const CressetWrite* write) {
  return note(s, "(sssOO)", "write", when, kWrites[write->kind], or_none(write->key), or_none(write->value));
}
static int on_before_write(void* s, CressetActivation* a, const CressetWrite* write) {
  (void)a;
  if (write->kind == CRESSET_WRITE_DISPLAY) return 0;
  return note_write(s, "before", write);
}
static int on_after_write(void* s, CressetActivation* a, const CressetWrite* write) {
  (void)a;
  return note_write(s, "after", write);
}
static int on_truth(void* s, CressetActivation* a, PyObject* value) {
  (void)a;
  return note(s, "(sO)", "truth", (PyObject*)Py_TYPE(value)) < 0 ? -1 : CRESSET_TRUTH_RUN;
}
static CressetAction on_before_call(void* s, CressetActivation* a, const CressetCall* call, PyObject** result) {
  (void)a, (void)result;
  return note(s, "(sOni)", "call", call->callable, call->nargs, call->evaluated) < 0 ? CRESSET_FAIL : CRESSET_RUN;
}
static int on_after_call(void* s, CressetActivation* a, const CressetCall* call, PyObject** result,
                         PyObject* exception) {
  (void)exception;
  (void)a;
  return note(s, "(sOO)", "called", call->callable, or_none(*result));
}
static CressetAction on_operator(void* s, CressetActivation* a, const CressetOperator* operator, PyObject ** result) {
  (void)a, (void)result;
  return note(s, "(ssi)", "operator", kOperators[operator->kind], operator->operation) < 0 ? CRESSET_FAIL : CRESSET_RUN;
}
static CressetAction on_enter(void* s, CressetActivation* a) {
  return note(s, "(sOi)", "enter", a->code->co_name, a->entered_from_c) < 0 ? CRESSET_FAIL : CRESSET_RUN;
}
static int on_leave(void* s, CressetActivation* a, PyObject* value) {
  return note(s, "(sOO)", "leave", a->code->co_name, or_none(value));
}

static const CressetEvalHooks kRecorder = {
    .read_name = on_name,
    .read_cell = on_cell,
    .read_attribute = on_attribute,
    .read_item = on_item,
    .read_contents = on_contents,
    .read_length = on_length,
    .read_iterator = on_iterator,
    .read_next = on_next,
    .read_contains = on_contains,
    .read_compare = on_compare,
    .read_is = on_is,
    .read_default = on_default,
    .before_write = on_before_write,
    .after_write = on_after_write,
    .truth = on_truth,
    .before_call = on_before_call,
    .after_call = on_after_call,
    .before_operator = on_operator,
    .enter_frame = on_enter,
    .leave_frame = on_leave,
};

static PyObject* run_with(const CressetEvalHooks* hooks, PyObject* const* args, Py_ssize_t nargs) {
  if (cresset_eval_begin(hooks) < 0) return NULL;
  PyObject* result = PyObject_Vectorcall(args[0], args + 1, (size_t)nargs - 1, NULL);
  cresset_eval_end();
  return result;
}

PyObject* cresset_eval_record(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  (void)self;
  if (nargs < 1) {
    PyErr_SetString(PyExc_TypeError, "expected a function and its arguments");
    return NULL;
  }
  PyObject* events = PyList_New(0);
  if (events == NULL) return NULL;
  CressetEvalHooks hooks = kRecorder;
  hooks.session = events;
  PyObject* result = run_with(&hooks, args, nargs);
  if (result == NULL) {
    Py_DECREF(events);
    return NULL;
  }
  return Py_BuildValue("(NN)", result, events);
}

// ---- Breaking -------------------------------------------------------------------------------------------------------

enum { kMaxFrames = 32 };

typedef struct {
  Py_ssize_t steps, wanted;
  int natively;
  PyObject* result;  // the result of the copies, or their exception
  PyObject* where;   // names of the frames, innermost first
  int refused;
} Break;

static PyObject** copy_values(PyObject** values, int count, PyObject* keep) {
  PyObject* copy = PyBytes_FromStringAndSize((const char*)values, (Py_ssize_t)sizeof(PyObject*) * count);
  if (copy == NULL || PyList_Append(keep, copy) < 0) Py_FatalError("out of memory in a test");
  Py_DECREF(copy);
  return (PyObject**)PyBytes_AS_STRING(copy);
}

static void replace(PyObject** values, int count, PyObject* old, PyObject* new) {
  for (int i = 0; i < count; i++) {
    if (values[i] == old) values[i] = new;
  }
}

// Copies running generators, and replaces the originals by the copies in all frames. `keep` owns the copies.
static int copy_generators(CressetFrameImage* images, int count, PyObject* keep) {
  for (int i = 0; i < count; i++) {
    images[i].slots = copy_values(images[i].slots, images[i].slot_count, keep);
    images[i].stack = copy_values(images[i].stack, images[i].stack_depth, keep);
  }
  for (int i = count - 1; i > 0; i--) {
    PyObject* original = images[i].generator;
    if (original == NULL) continue;
    PyObject* copy = cresset_eval_rebuild_generator(&images[i]);
    if (copy == NULL) return -1;
    PyList_Append(keep, copy);
    Py_DECREF(copy);
    images[i].generator = copy;
    for (int k = 0; k < i; k++) {
      replace(images[k].slots, images[k].slot_count, original, copy);
      replace(images[k].stack, images[k].stack_depth, original, copy);
    }
  }
  return 0;
}

// Resumes copies of the frames of `activation`, up to the one that was entered from C.
static void finish_copies(Break* wanted, CressetActivation* activation) {
  CressetFrameImage all[kMaxFrames];
  int count = 0;
  CressetActivation* a = activation;
  wanted->where = PyList_New(0);
  for (; a != NULL && count < kMaxFrames; a = a->caller) {
    PyList_Append(wanted->where, a->code->co_name);
    cresset_eval_image(a, CRESSET_BEFORE, &all[kMaxFrames - ++count]);
    if (a->entered_from_c) break;
  }
  // Only a chain that ends at the test's call is complete. A generator left behind by the call is closed when the
  // call's frame has gone.
  if (a == NULL || a->caller != NULL || a->is_generator || count == kMaxFrames) {
    wanted->refused = 1;
    return;
  }
  CressetFrameImage* images = &all[kMaxFrames - count];
  PyObject* copies = PyList_New(0);
  if (copy_generators(images, count, copies) == 0) {
    // The exceptions handled by the originals do not concern the copies.
    PyThreadState* tstate = PyThreadState_Get();
    _PyErr_StackItem nothing = {NULL, NULL};
    _PyErr_StackItem* handled = tstate->exc_info;
    tstate->exc_info = &nothing;
    wanted->result = cresset_eval_resume(images, count, NULL, NULL, wanted->natively, NULL);
    tstate->exc_info = handled;
  }
  Py_DECREF(copies);
  if (wanted->result == NULL) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    wanted->result = value;
    Py_XDECREF(type);
    Py_XDECREF(traceback);
  }
  // Taken as a string now: the original run continues and may mutate the result.
  PyObject* text = PyObject_Repr(wanted->result);
  Py_XSETREF(wanted->result, text);
}

static int on_step(void* s, CressetActivation* activation) {
  Break* wanted = s;
  if (wanted->steps++ == wanted->wanted) finish_copies(wanted, activation);
  return 0;
}

PyObject* cresset_eval_break_at(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  (void)self;
  Break wanted = {0};
  if (nargs < 3) {
    PyErr_SetString(PyExc_TypeError, "expected a step, natively, a function and its arguments");
    return NULL;
  }
  wanted.wanted = PyLong_AsSsize_t(args[0]);
  wanted.natively = PyObject_IsTrue(args[1]);
  if (PyErr_Occurred()) return NULL;
  const CressetEvalHooks hooks = {.session = &wanted, .step = on_step};
  PyObject* original = run_with(&hooks, args + 2, nargs - 2);
  // The copies ran first and share mutable objects, so the later result of the original proves nothing.
  if (original == NULL) PyErr_Clear();
  Py_XDECREF(original);
  PyObject* where = wanted.where != NULL ? wanted.where : Py_NewRef(Py_None);
  if (wanted.refused || wanted.result == NULL) {
    Py_XDECREF(wanted.result);
    return Py_BuildValue("(sON)", wanted.refused ? "refused" : "ended", Py_None, where);
  }
  return Py_BuildValue("(sNN)", "finished", wanted.result, where);
}

// ---- Leaving --------------------------------------------------------------------------------------------------------

static int on_leaving_step(void* s, CressetActivation* activation) {
  Break* wanted = s;
  if (wanted->steps++ == wanted->wanted) {
    cresset_eval_leave(activation, wanted->natively ? CRESSET_LEAVE_ALL : CRESSET_LEAVE_FRAME);
  }
  return 0;
}

PyObject* cresset_eval_leave_at(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  (void)self;
  Break wanted = {0};
  if (nargs < 3) {
    PyErr_SetString(PyExc_TypeError, "expected a step, whether all frames are left, a function and its arguments");
    return NULL;
  }
  wanted.wanted = PyLong_AsSsize_t(args[0]);
  wanted.natively = PyObject_IsTrue(args[1]);
  if (PyErr_Occurred()) return NULL;
  const CressetEvalHooks hooks = {.session = &wanted, .step = on_leaving_step};
  PyObject* result = run_with(&hooks, args + 2, nargs - 2);
  return result != NULL ? Py_BuildValue("(nN)", wanted.steps, result) : NULL;
}
