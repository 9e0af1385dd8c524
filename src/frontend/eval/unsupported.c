// The evaluator's interface where the running CPython has no evaluator: nothing begins, and the reason is returned.
#include "frontend/eval/binders.h"
#include "frontend/eval/changers.h"
#include "frontend/eval/debug.h"
#include "frontend/eval/polyfills.h"
#include "frontend/eval/hooks.h"
#include "frontend/eval/interpreter.h"
#include "frontend/eval/ordered_keys.h"
#include "frontend/eval/room.h"
#include "frontend/eval/stack_walk.h"
#include "frontend/eval/synthetic_stack.h"
#include "frontend/eval/watched_calls.h"

const char* cresset_eval_unsupported(void) {
  return "bytecode is evaluated on CPython 3.11 to 3.13 only; functions are traced on this version";
}

int cresset_eval_begin(const CressetEvalHooks* hooks) {
  (void)hooks;
  PyErr_SetString(PyExc_RuntimeError, cresset_eval_unsupported());
  return -1;
}

void cresset_eval_looks_in_stores(PyObject* code, PyObject* names) { (void)code, (void)names; }
PyObject* cresset_eval_stores(void) { return NULL; }
PyObject* cresset_eval_item(PyObject* dict, PyObject* name) { return PyDict_GetItemWithError(dict, name); }
PyTypeObject* cresset_super_class(PyObject* super) {
  (void)super;
  return NULL;
}

void cresset_eval_end(void) {}
void cresset_eval_pause(void) {}
void cresset_eval_unpause(void) {}
CressetRoom cresset_eval_give_room(void) { return (CressetRoom){0, 0, 0}; }
void cresset_eval_take_room(CressetRoom room) { (void)room; }

PyObject* cresset_eval_call(PyObject* callable, PyObject* args, PyObject* kwargs) {
  return PyObject_Call(callable, args, kwargs);
}

void cresset_eval_visit_new_objects(PyObject** mark, void (*visit)(void*, PyObject*), void* arg) {
  (void)mark, (void)visit, (void)arg;
}
int cresset_eval_is_frame(const CressetActivation* activation, PyObject* frame_object) {
  (void)activation, (void)frame_object;
  return 0;
}
int cresset_eval_is_watched(void) { return 0; }
vectorcallfunc cresset_eval_watch_calls(PyObject* function, vectorcallfunc call) {
  (void)function, (void)call;
  return NULL;
}
void cresset_eval_unwatch_calls(PyObject* function) { (void)function; }
void cresset_eval_rest_collector(void) {}
void cresset_eval_wake_collector(void) {}
PyObject* cresset_eval_builtins(void) { return PyEval_GetBuiltins(); }
void* cresset_eval_suspend(void) { return NULL; }
void cresset_eval_take_back(void* aside) { (void)aside; }
CressetActivation* cresset_eval_current(void) { return NULL; }
int cresset_eval_spared_call(const CressetActivation* activation, CressetSparedCall* out) {
  (void)activation, (void)out;
  return 0;
}
void cresset_eval_leave(CressetActivation* activation, CressetLeave what) { (void)activation, (void)what; }

void cresset_eval_image(const CressetActivation* activation, CressetPoint point, CressetFrameImage* image) {
  (void)activation, (void)point;
  *image = (CressetFrameImage){0};
}

int cresset_eval_generator_image(PyObject* generator, CressetFrameImage* image) {
  (void)generator;
  *image = (CressetFrameImage){0};
  return -1;
}

int cresset_eval_live_slots(PyCodeObject* code, int last, uint8_t* live) {
  (void)code, (void)last, (void)live;
  return -1;
}

PyObject* cresset_eval_rebuild_generator(const CressetFrameImage* image) {
  (void)image;
  PyErr_SetString(PyExc_RuntimeError, cresset_eval_unsupported());
  return NULL;
}

PyObject* cresset_eval_new_generator(PyCodeObject* code) {
  (void)code;
  PyErr_SetString(PyExc_RuntimeError, cresset_eval_unsupported());
  return NULL;
}

int cresset_eval_set_generator(PyObject* generator, const CressetFrameImage* image) {
  (void)generator, (void)image;
  PyErr_SetString(PyExc_RuntimeError, cresset_eval_unsupported());
  return -1;
}

int cresset_eval_is_being_closed(PyObject* generator) {
  (void)generator;
  return 0;
}
PyObject** cresset_eval_generator_slot(PyObject* generator, int index) {
  (void)generator, (void)index;
  return NULL;
}
int cresset_eval_dict_entry(PyObject* dict, Py_ssize_t index, PyObject*** key, PyObject*** value) {
  (void)dict, (void)index, (void)key, (void)value;
  return -1;
}
int cresset_eval_dict_changed(PyObject* dict) {
  (void)dict;
  return 0;
}

PyObject* cresset_eval_perform_in(const CressetFrameImage* images, int count, PyObject* (*perform)(void* context),
                                  CressetSlotChanged changed, void* context) {
  (void)images, (void)count, (void)changed;
  return perform(context);
}
PyObject* cresset_eval_resume(const CressetFrameImage* images, int count, PyObject* value, PyObject* exception,
                              int natively, PyObject** contents) {
  (void)images, (void)count, (void)value, (void)exception, (void)natively, (void)contents;
  PyErr_SetString(PyExc_RuntimeError, cresset_eval_unsupported());
  return NULL;
}

// Uses frame objects, which the running frames keep alive; frame objects need the GIL.
static int describe_frame(PyFrameObject* frame, CressetStackFrame* out) {
  if (frame == NULL) return 0;
  out->frame = frame;
  out->code = PyFrame_GetCode(frame);
  Py_DECREF(out->code);
  out->instruction = PyFrame_GetLasti(frame);
  return 1;
}

int cresset_stack_top(CressetStackFrame* out) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  const int found = describe_frame(PyEval_GetFrame(), out);
  PyGILState_Release(gil);
  return found;
}

int cresset_stack_next(CressetStackFrame* at) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyFrameObject* back = PyFrame_GetBack((PyFrameObject*)at->frame);
  Py_XDECREF(back);
  const int found = describe_frame(back, at);
  PyGILState_Release(gil);
  return found;
}

// Registrations for an evaluator that never runs.
PyTypeObject* cresset_string_type;
PyTypeObject* cresset_symint_type;
int cresset_asks_for_lists;
void cresset_eval_use(const CressetPolyfills* polyfills) { (void)polyfills; }
void cresset_eval_see_through(PyTypeObject* type, PyObject* (*inside)(PyObject*)) { (void)type, (void)inside; }
void cresset_eval_see_through_wrappers(PyObject* code, Py_ssize_t cell) { (void)code, (void)cell; }
void cresset_eval_binds_names(PyTypeObject* type, PyTypeObject* caches) { (void)type, (void)caches; }
void cresset_eval_bind(PyObject* owner, PyObject* name) { (void)owner, (void)name; }

// Questions about frames and objects of an evaluation.
PyObject* cresset_eval_inside(PyObject* object) {
  (void)object;
  return NULL;
}
PyObject* cresset_eval_wrapped(PyObject* callable) {
  (void)callable;
  return NULL;
}
PyTypeObject* cresset_attribute_holder(const CressetAttributeRead* read) {
  (void)read;
  return NULL;
}
int cresset_find_changer(PyObject* owner, PyObject* name, int deletes, int by_object, CressetChanger* changer) {
  (void)owner, (void)name, (void)deletes, (void)by_object, (void)changer;
  return 0;
}
int cresset_is_set_by_c(PyObject* owner, PyObject* name) {
  (void)owner, (void)name;
  return 0;
}
int cresset_may_catch(PyCodeObject* code, int instruction) {
  (void)code, (void)instruction;
  return 1;
}
int cresset_eval_may_change_cell(PyCodeObject* code, int last, int slot) {
  (void)code, (void)last, (void)slot;
  return 1;
}
int cresset_eval_drops_value(PyCodeObject* code, int last) {
  (void)code, (void)last;
  return 0;
}
PyObject* cresset_eval_ordered_keys(PyObject* ordered) { return PySequence_List(ordered); }

static PyObject* eval_unsupported(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  return PyUnicode_FromString(cresset_eval_unsupported());
}

static PyMethodDef functions[] = {
    {"_eval_unsupported", eval_unsupported, METH_NOARGS, "Why this interpreter cannot be evaluated, or None."},
    {NULL, NULL, 0, NULL},
};

int cresset_eval_add_functions(PyObject* module) { return PyModule_AddFunctions(module, functions); }
