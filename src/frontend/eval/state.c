// Begin and end of evaluation in a thread, and the hook of PEP 523.
#include "frontend/eval/room.h"
#include "frontend/eval/state.h"

#include "frontend/eval/known.h"

_Thread_local EvalState cresset_eval_state;

// Under the GIL: the number of levels in all threads, and the evaluator installed before the first.
static int installed_levels;
static _PyFrameEvalFunction previous_evaluator;

CressetActivation* cresset_next_chunk(EvalState* state) {
  ActivationChunk* chunk = state->chunk != NULL ? state->chunk->next : NULL;
  if (chunk == NULL) {
    chunk = PyMem_Calloc(1, sizeof(ActivationChunk));
    if (chunk == NULL) {
      PyErr_NoMemory();
      return NULL;
    }
    chunk->previous = state->chunk;
    if (state->chunk != NULL) state->chunk->next = chunk;
  }
  state->chunk = chunk;
  state->end = chunk->items + kActivationsInChunk;
  return chunk->items;
}

void cresset_previous_chunk(EvalState* state) {
  state->chunk = state->chunk->previous;
  state->end = state->chunk->items + kActivationsInChunk;
}

static void free_chunks(EvalState* state) {
  ActivationChunk* chunk = state->chunk;
  while (chunk != NULL && chunk->next != NULL) chunk = chunk->next;
  while (chunk != NULL) {
    ActivationChunk* previous = chunk->previous;
    PyMem_Free(chunk);
    chunk = previous;
  }
  state->chunk = NULL;
  state->end = NULL;
}

PyObject* cresset_native_frame(PyThreadState* tstate, Frame* frame, int throwing) {
  _PyFrameEvalFunction run = previous_evaluator != NULL ? previous_evaluator : _PyEval_EvalFrameDefault;
  return run(tstate, frame, throwing);
}

// A generator function's own frame only makes the generator: no code of the program runs in it.
static int only_makes_generator(Frame* frame) {
  return frame->owner == FRAME_OWNED_BY_THREAD && code_is_generator(FRAME_CODE(frame)) &&
         LAST_INSTRUCTION(frame) < frame_code(frame) + FRAME_CODE(frame)->_co_firsttraceable;
}

static PyObject* evaluate_from_c(PyThreadState* tstate, Frame* frame, int throwing) {
  EvalState* state = &cresset_eval_state;
  const EvalLevel* level = state->level;
  if (level == NULL || state->paused || level->left || only_makes_generator(frame)) {
    return cresset_native_frame(tstate, frame, throwing);
  }
  if (is_watched(tstate, FRAME_CODE(frame))) {
    if (level->hooks != NULL && level->hooks->unseen != NULL) level->hooks->unseen(level->hooks->session);
    return cresset_native_frame(tstate, frame, throwing);
  }
  CressetActivation* activation = push_activation(state, frame);
  if (activation == NULL) {
    PyErr_Clear();
    return cresset_native_frame(tstate, frame, throwing);
  }
  activation->entered_from_c = 1;
  activation->continuation = CRESSET_THEN_RETURN_TO_C;
  if (frame->owner == FRAME_OWNED_BY_GENERATOR) {
    activation->is_generator = 1;
    activation->generator = (PyObject*)_PyFrame_GetGenerator(frame);
    activation->instruction = resting_frame_last(frame);
  }
  take_frame_over(frame);
  return cresset_run_frames(tstate, state, frame, frame, throwing ? RUN_THROWING : RUN_START);
}

static void install(PyInterpreterState* interpreter) {
  if (installed_levels++ > 0) return;
  previous_evaluator = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  if (previous_evaluator == _PyEval_EvalFrameDefault) previous_evaluator = NULL;
  _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate_from_c);
}

static void uninstall(PyInterpreterState* interpreter) {
  if (--installed_levels > 0) return;
  _PyInterpreterState_SetEvalFrameFunc(interpreter,
                                       previous_evaluator != NULL ? previous_evaluator : _PyEval_EvalFrameDefault);
  previous_evaluator = NULL;
}

const char* cresset_eval_unsupported(void) {
  if ((Py_Version >> 16) != (PY_VERSION_HEX >> 16))
    return "the module was built for another CPython than the one running";
  return NULL;
}

int cresset_eval_begin(const CressetEvalHooks* hooks) {
  const char* why = cresset_eval_unsupported();
  if (why != NULL) {
    PyErr_SetString(PyExc_RuntimeError, why);
    return -1;
  }
  if (cresset_known_init() < 0) return -1;
  EvalState* state = &cresset_eval_state;
  EvalLevel* level = PyMem_Calloc(1, sizeof(EvalLevel));
  if (level == NULL || (state->chunk == NULL && cresset_next_chunk(state) == NULL)) {
    PyMem_Free(level);
    PyErr_NoMemory();
    return -1;
  }
  level->hooks = hooks;
  level->outer = state->level;
  level->paused_before = state->paused;
  state->level = level;
  state->paused = 0;
  install(PyInterpreterState_Get());
  return 0;
}

void cresset_eval_end(void) {
  EvalState* state = &cresset_eval_state;
  EvalLevel* level = state->level;
  if (level == NULL) return;
  uninstall(PyInterpreterState_Get());
  state->level = level->outer;
  state->paused = level->paused_before;
  PyMem_Free(level);
  // An end inside the program may leave frames in evaluation: their activations stay.
  if (state->level == NULL && state->current == NULL) free_chunks(state);
}

void cresset_eval_pause(void) { cresset_eval_state.paused++; }

void cresset_eval_unpause(void) { cresset_eval_state.paused--; }

void* cresset_eval_suspend(void) {
  EvalState* aside = cresset_eval_state.level != NULL ? PyMem_Malloc(sizeof(EvalState)) : NULL;
  if (aside == NULL) return NULL;
  *aside = cresset_eval_state;
  cresset_eval_state = (EvalState){0};
  return aside;
}

void cresset_eval_take_back(void* aside) {
  if (aside == NULL) return;
  free_chunks(&cresset_eval_state);
  cresset_eval_state = *(EvalState*)aside;
  PyMem_Free(aside);
}

// Once at a time: cresset's code must not recurse without bound through its callees.
static _Thread_local int room_given;

CressetRoom cresset_eval_give_room(void) {
  enum { kLevels = 100 };
  CressetRoom room = {!room_given, 0, 0};
  if (!room.given) return room;
  room_given = 1;
  PyThreadState* tstate = PyThreadState_Get();
  if (RECURSION_OF_PYTHON(tstate) < kLevels) room.to_python = kLevels - RECURSION_OF_PYTHON(tstate);
  RECURSION_OF_PYTHON(tstate) += room.to_python;
  if (RECURSION_OF_C(tstate) < kLevels) room.to_c = kLevels - RECURSION_OF_C(tstate);
  RECURSION_OF_C(tstate) += room.to_c;
  return room;
}

void cresset_eval_take_room(CressetRoom room) {
  if (!room.given) return;
  room_given = 0;
  PyThreadState* tstate = PyThreadState_Get();
  RECURSION_OF_PYTHON(tstate) -= room.to_python;
  RECURSION_OF_C(tstate) -= room.to_c;
}

int cresset_eval_is_frame(const CressetActivation* activation, PyObject* frame_object) {
  return PyFrame_Check(frame_object) && ((PyFrameObject*)frame_object)->f_frame == (Frame*)activation->frame;
}

int cresset_eval_is_watched(void) { return is_thread_watched(PyThreadState_Get()); }

CressetActivation* cresset_eval_current(void) { return cresset_eval_state.current; }

// The function inside a wrapper, also where a method wraps it. A new reference.
static PyObject* unwrapped(PyObject* callable) {
  PyObject* function = PyMethod_Check(callable) ? PyMethod_GET_FUNCTION(callable) : callable;
  PyObject* inner = function;
  for (PyObject* next = inner; next != NULL; next = cresset_eval_wrapped(inner)) inner = next;
  if (inner == function) return Py_NewRef(callable);
  return PyMethod_Check(callable) ? PyMethod_New(inner, PyMethod_GET_SELF(callable)) : Py_NewRef(inner);
}

PyObject* cresset_eval_call(PyObject* callable, PyObject* args, PyObject* kwargs) {
  PyThreadState* tstate = PyThreadState_Get();
  _PyErr_StackItem level;
  PyObject* called = unwrapped(callable);
  if (called == NULL) return NULL;
  cresset_push_handled(tstate, &level);
  PyObject* result = PyObject_Call(called, args, kwargs);
  cresset_pop_handled(tstate, &level);
  Py_DECREF(called);
  return result;
}

void cresset_eval_leave(CressetActivation* activation, CressetLeave what) {
  activation->leave = LEAVE_ALONE;
  if (what == CRESSET_LEAVE_FRAME) return;
  if (cresset_eval_state.level != NULL) cresset_eval_state.level->left = 1;
  for (CressetActivation* a = activation; a != NULL; a = a->caller) a->leave = LEAVE_ALONE;
}
