// Frames copied out of a running program, and frames rebuilt from such copies.
#include "frontend/eval/helpers.h"
#include "frontend/eval/known.h"

// The first unit of the instruction at `instruction`, prefixes included, and its last, inline caches included. Only
// reading from the start tells instructions from caches. A call and its KW_NAMES are one operation, because only the
// loop stores the names in between.
static void instruction_extent(PyCodeObject* code, int instruction, int* first, int* last) {
  const Unit* units = cresset_written_code(code);
  int at = 0, call_begin = 0, named = 0;
  for (;;) {
    const int begin = at;
    while (_Py_OPCODE(units[at]) == EXTENDED_ARG) at++;
    const int opcode = _Py_OPCODE(units[at]);
    if (cresset_names_keywords(opcode) || (cresset_begins_call(opcode) && !named)) call_begin = begin;
    named = cresset_names_keywords(opcode);
    const int end = at + cresset_cache_entries[opcode];
    if (instruction <= end) {
      *first = opcode == CALL || cresset_begins_call(opcode) ? call_begin : begin;
      *last = end;
      return;
    }
    at = end + 1;
  }
}

// The number of operands of the instruction in progress on the stack; its result, if any, is not there yet.
// size: switch
static int operands(PyCodeObject* code, int instruction) {
  const Unit* units = cresset_written_code(code);
  int oparg = _Py_OPARG(units[instruction]), shift = 8;
  for (int i = instruction - 1; i >= 0; i--, shift += 8) {
    if (_Py_OPCODE(units[i]) != EXTENDED_ARG) break;
    oparg |= _Py_OPARG(units[i]) << shift;
  }
  switch (_Py_OPCODE(units[instruction])) {
#define X(name, count, flow) \
  case name:                 \
    return count;
#include CRESSET_OPCODES
#undef X
    default:
      return 0;
  }
}

// The exception handled by the frame. Each generator has its own; the frames between two generators share one.
static PyObject* handled_by(const CressetActivation* activation) {
  const _PyErr_StackItem* item = PyThreadState_Get()->exc_info;
  int innermost_of_level = 1;
  for (const CressetActivation* a = cresset_eval_state.current; a != activation; a = a->caller) {
    innermost_of_level = a->is_generator;
    if (a->is_generator) item = item->previous_item;
  }
  return innermost_of_level ? item->exc_value : NULL;
}

// None in an image means that nothing is handled; CPython 3.13 would treat None as the handled exception.
static PyObject* handled_in(const CressetFrameImage* image) {
  return image->handled != Py_None ? image->handled : NULL;
}

static CressetFrameImage image_of(Frame* frame, int stack_depth) {
  return (CressetFrameImage){
      .function = frame_function(frame),
      .code = FRAME_CODE(frame),
      .names = frame->f_locals,
      .slots = frame->localsplus,
      .slot_count = FRAME_CODE(frame)->co_nlocalsplus,
      .stack = frame_stack(frame),
      .stack_depth = stack_depth,
      .last = -1,
  };
}

void cresset_eval_image(const CressetActivation* activation, CressetPoint point, CressetFrameImage* image) {
  *image = image_of(activation->frame, (int)(activation->stack_top - frame_stack(activation->frame)));
  image->continuation = activation->continuation;
  image->continuation_operand = activation->continuation_operand;
  image->continuation_value = activation->continuation_value;
  image->generator = activation->generator;
  image->handled = handled_by(activation);
  if (activation->instruction < 0) return;
  // The frame is in the middle of an instruction without a report, so the depth of its stack is unknown.
  if (activation->instruction != frame_last(activation->frame)) image->stack_depth = 0;
  int first, last;
  instruction_extent(activation->code, activation->instruction, &first, &last);
  const int has_callee = activation != cresset_eval_state.current;
  if (!has_callee && point == CRESSET_AFTER) {
    image->stack_depth -= operands(activation->code, activation->instruction);
  }
  image->last = has_callee || point == CRESSET_AFTER ? last : first - 1;
}

static int is_generator(PyObject* object) {
  return PyGen_CheckExact(object) || PyCoro_CheckExact(object) || PyAsyncGen_CheckExact(object);
}

int cresset_eval_generator_image(PyObject* object, CressetFrameImage* image) {
  PyGenObject* generator = (PyGenObject*)object;
  if (!is_generator(object) || generator->gi_frame_state == FRAME_EXECUTING) return -1;
  if (generator->gi_frame_state > FRAME_EXECUTING) return 1;
  Frame* frame = (Frame*)generator->gi_iframe;
  *image = image_of(frame, frame->stacktop - FRAME_CODE(frame)->co_nlocalsplus);
  image->generator = object;
  image->handled = generator->gi_exc_state.exc_value;
  image->last = resting_frame_last(frame);
  return 0;
}

// Copies slots and stack of the image into an empty frame.
static void fill_frame(Frame* frame, const CressetFrameImage* image) {
  for (int i = 0; i < image->slot_count; i++) frame->localsplus[i] = Py_XNewRef(image->slots[i]);
  PyObject** stack = frame_stack(frame);
  for (int i = 0; i < image->stack_depth; i++) stack[i] = Py_XNewRef(image->stack[i]);
  frame->stacktop = image->slot_count + image->stack_depth;
  LAST_INSTRUCTION(frame) = frame_code(frame) + image->last;
}

Frame* cresset_push_image(PyThreadState* tstate, const CressetFrameImage* image) {
  PyFunctionObject* function = (PyFunctionObject*)Py_NewRef(image->function);
  Frame* frame = push_frame(tstate, function, image->code, Py_XNewRef(image->names));
  if (frame != NULL) fill_frame(frame, image);
  return frame;
}

static int make_instruction(PyCodeObject* code) {
  const Unit* units = cresset_written_code(code);
  int at = 0;
  while (_Py_OPCODE(units[at]) != RETURN_GENERATOR) at++;
  return at;
}

// Whether a frame, continued behind `last`, waits for another generator, under yield from or await.
static int delegates(PyCodeObject* code, int last) {
  const Unit next = cresset_written_code(code)[last + 1];
  return _Py_OPCODE(next) == RESUME && (_Py_OPARG(next) & 3) >= 2;
}

PyObject* cresset_eval_new_generator(PyCodeObject* code) {
  if (!code_is_generator(code)) {
    PyErr_SetString(PyExc_TypeError, "the image is of no generator's frame");
    return NULL;
  }
  PyThreadState* tstate = PyThreadState_Get();
  PyObject* globals = PyDict_New();
  PyObject* function = globals != NULL ? PyFunction_New((PyObject*)code, globals) : NULL;
  Py_XDECREF(globals);
  if (function == NULL) return NULL;
  Frame* frame = push_frame(tstate, (PyFunctionObject*)function, code, NULL);
  if (frame == NULL) return NULL;
  for (int i = 0; i < code->co_nlocalsplus; i++) frame->localsplus[i] = NULL;
  LAST_INSTRUCTION(frame) = frame_code(frame) + make_instruction(code) - 1;  // past the instructions for filling slots
  hand_frame_over(frame);
  PyObject* made = _PyEval_EvalFrameDefault(tstate, frame, 0);
  if (!kEvaluatorDropsFrames) drop_frame(tstate, frame);
  return made;
}

// Moves the content out of a frame before it gets new content.
static PyObject* take_contents(Frame* frame) {
  PyObject* taken = PyTuple_New(frame->stacktop);
  for (int i = 0; taken != NULL && i < frame->stacktop; i++) {
    PyObject* value = frame->localsplus[i];
    PyTuple_SET_ITEM(taken, i, value != NULL ? value : Py_NewRef(Py_None));
    frame->localsplus[i] = NULL;
  }
  return taken;
}

static void finish_generator(PyGenObject* generator) {
  generator->gi_frame_state = FRAME_CLEARED;
  Py_CLEAR(generator->gi_exc_state.exc_value);
  clear_generator_frame(PyThreadState_Get(), (Frame*)generator->gi_iframe);
}

static void set_names(PyGenObject* generator, PyFunctionObject* function) {
  Py_SETREF(generator->gi_name, Py_NewRef(function->func_name));
  Py_SETREF(generator->gi_qualname, Py_NewRef(function->func_qualname));
}

int cresset_eval_set_generator(PyObject* object, const CressetFrameImage* image) {
  PyGenObject* generator = (PyGenObject*)object;
  if (generator->gi_frame_state > FRAME_EXECUTING && image == NULL) return 0;
  if (generator->gi_frame_state >= FRAME_EXECUTING) {
    PyErr_SetString(PyExc_ValueError, "a generator that runs, or is finished, cannot be given other contents");
    return -1;
  }
  if (image == NULL) {
    finish_generator(generator);
    return 0;
  }
  Frame* own = (Frame*)generator->gi_iframe;
  PyObject* before = take_contents(own);
  if (before == NULL) return -1;
  PyFunctionObject* function = (PyFunctionObject*)image->function;
  PyObject* own_function = frame_function(own);
  if (own_function != (PyObject*)function) {
    set_frame_function(own, (PyFunctionObject*)Py_NewRef(function));
    Py_DECREF(own_function);
    own->f_globals = function->func_globals;
    own->f_builtins = function->func_builtins;
    set_names(generator, function);
  }
  fill_frame(own, image);
  hand_frame_over(own);
  const int started = image->last > make_instruction(image->code);
  generator->gi_frame_state = started ? SUSPENDED_BY(delegates(image->code, image->last)) : FRAME_CREATED;
  Py_XSETREF(generator->gi_exc_state.exc_value, Py_XNewRef(handled_in(image)));
  Py_DECREF(before);
  return 0;
}

int cresset_eval_is_being_closed(PyObject* generator) {
  const PyGenObject* own = (PyGenObject*)generator;
  const Frame* frame = (const Frame*)own->gi_iframe;
  return own->gi_frame_state == FRAME_EXECUTING && frame->previous == NULL && frame->stacktop >= 0;
}

PyObject** cresset_eval_generator_slot(PyObject* generator, int index) {
  const PyGenObject* own = (PyGenObject*)generator;
  Frame* frame = (Frame*)own->gi_iframe;
  if (own->gi_frame_state > FRAME_EXECUTING || index >= frame->stacktop) return NULL;
  return &frame->localsplus[index];
}

PyObject* cresset_eval_rebuild_generator(const CressetFrameImage* image) {
  PyObject* made = cresset_eval_new_generator(image->code);
  if (made != NULL && cresset_eval_set_generator(made, image) < 0) Py_CLEAR(made);
  return made;
}

static int enter_activation(EvalState* state, Frame* frame, const CressetFrameImage* image) {
  CressetActivation* activation = push_activation(state, frame);
  if (activation == NULL) return -1;
  activation->instruction = image->last;
  activation->stack_top = frame_stack(frame) + image->stack_depth;
  activation->continuation = image->continuation;
  activation->continuation_operand = image->continuation_operand;
  activation->continuation_value = Py_XNewRef(image->continuation_value);
  activation->is_generator = image->generator != NULL;
  activation->generator = image->generator;
  return 0;
}

// A frame on the data stack with the image's contents, with an activation; or the frame of the image's generator.
static Frame* rebuild_frame(PyThreadState* tstate, EvalState* state, const CressetFrameImage* image) {
  if (image->generator != NULL) {
    PyGenObject* generator = (PyGenObject*)image->generator;
    Frame* frame = (Frame*)generator->gi_iframe;
    if (enter_activation(state, frame, image) < 0) return NULL;
    take_frame_over(frame);
    generator->gi_exc_state.previous_item = tstate->exc_info;
    tstate->exc_info = &generator->gi_exc_state;
    generator->gi_frame_state = FRAME_EXECUTING;
    return frame;
  }
  Frame* frame = cresset_push_image(tstate, image);
  if (frame == NULL) return NULL;
  if (enter_activation(state, frame, image) == 0) return frame;
  drop_frame(tstate, frame);
  return NULL;
}

static void drop_rebuilt(PyThreadState* tstate, EvalState* state, int count) {
  while (count-- > 0) {
    CressetActivation* activation = state->current;
    Py_CLEAR(activation->continuation_value);
    Frame* frame = activation->frame;
    const int in_generator = activation->is_generator;
    pop_activation(state);
    if (in_generator) {
      cresset_leave_generator(tstate, frame, 1);
    } else {
      drop_frame(tstate, frame);
    }
  }
}

static int check_images(const CressetFrameImage* images, int count) {
  for (int i = 0; i < count; i++) {
    PyObject* generator = images[i].generator;
    if (generator == NULL) continue;
    if (i == 0 || !is_generator(generator) || ((PyGenObject*)generator)->gi_frame_state >= FRAME_EXECUTING) {
      PyErr_SetString(PyExc_ValueError, "a generator's frame goes on in a suspended generator, for a caller's frame");
      return -1;
    }
  }
  return count > 0 ? 0 : -1;
}

// Rebuilds and links all frames, and restores each level's handled exception. The innermost frame, or NULL.
static Frame* rebuild_all(PyThreadState* tstate, EvalState* state, const CressetFrameImage* images, int count,
                          int natively) {
  Frame* innermost = NULL;
  for (int i = 0; i < count; i++) {
    Frame* frame = rebuild_frame(tstate, state, &images[i]);
    if (frame == NULL) {
      drop_rebuilt(tstate, state, i);
      return NULL;
    }
    // With `natively`, the loop leaves each frame as soon as it reaches the frame.
    state->current->leave = (uint8_t)(natively != 0);
    if (i == 0) {
      state->current->entered_from_c = 1;
      state->current->continuation = CRESSET_THEN_RETURN_TO_C;
      Py_CLEAR(state->current->continuation_value);
    } else {
      frame->previous = innermost;
      RECURSION_OF_PYTHON(tstate)--;  // the frame around it is in a call
    }
    const int last_of_level = i + 1 == count || images[i + 1].generator != NULL;
    if (last_of_level && (i == 0 || images[i].generator == NULL || images[i].handled != NULL)) {
      Py_XSETREF(tstate->exc_info->exc_value, Py_XNewRef(handled_in(&images[i])));
    }
    innermost = frame;
  }
  return innermost;
}

PyObject* cresset_eval_resume(const CressetFrameImage* images, int count, PyObject* value, PyObject* exception,
                              int natively, PyObject** contents) {
  PyThreadState* tstate = PyThreadState_Get();
  EvalState* state = &cresset_eval_state;
  if (cresset_known_init() < 0 || (state->chunk == NULL && cresset_next_chunk(state) == NULL)) return NULL;
  if (check_images(images, count) < 0) return NULL;
  _PyErr_StackItem level;
  cresset_push_handled(tstate, &level);
  Frame* innermost = rebuild_all(tstate, state, images, count, natively);
  PyObject* result = NULL;
  if (innermost != NULL) {
    Frame* outermost = innermost;
    for (int i = 1; i < count; i++) outermost = outermost->previous;
    if (value != NULL) innermost->localsplus[innermost->stacktop++] = Py_NewRef(value);
    if (exception != NULL) {
      PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(exception)), Py_NewRef(exception),
                    PyException_GetTraceback(exception));
    }
    if (contents != NULL) Py_CLEAR(*contents);
    const RunMode mode = exception != NULL ? RUN_THROWING : RUN_RESUMED;
    result = cresset_run_frames(tstate, state, outermost, innermost, mode);
    if (!kEvaluatorDropsFrames) drop_frame(tstate, outermost);  // as a caller in C does
  }
  cresset_pop_handled(tstate, &level);
  return result;
}
