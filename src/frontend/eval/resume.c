// Frames copied out of a running program, and frames rebuilt from such copies.
#include "frontend/eval/helpers.h"
#include "frontend/eval/known.h"

// The first unit of the instruction at `instruction`, prefixes included, and its last, inline caches included. Only
// reading from the start tells instructions from caches.
static void instruction_extent(PyCodeObject* code, int instruction, int* first, int* last, int* calls) {
  const Unit* units = _PyCode_CODE(code);
  int begin = 0, at = 0, call_begin = 0;
  for (;;) {
    begin = at;
    while (cresset_base_opcode[_Py_OPCODE(units[at])] == EXTENDED_ARG) at++;
    const int opcode = cresset_base_opcode[_Py_OPCODE(units[at])];
    // KW_NAMES, PRECALL and CALL are one operation: the names are nowhere but in the loop.
    if (opcode == KW_NAMES || (opcode == PRECALL && *calls != KW_NAMES)) call_begin = begin;
    *calls = opcode;
    const int end = at + cresset_cache_entries[opcode];
    if (instruction <= end) {
      *first = opcode == CALL || opcode == PRECALL ? call_begin : begin;
      *last = end;
      return;
    }
    at = end + 1;
  }
}

// How many operands the instruction in progress has on the stack; its result, if any, is not there yet.
static int operands(PyCodeObject* code, int instruction) {
  const Unit* units = _PyCode_CODE(code);
  const int opcode = cresset_base_opcode[_Py_OPCODE(units[instruction])];
  int oparg = _Py_OPARG(units[instruction]), shift = 8;
  for (int i = instruction - 1; i >= 0; i--, shift += 8) {
    if (cresset_base_opcode[_Py_OPCODE(units[i])] != EXTENDED_ARG) break;
    oparg |= _Py_OPARG(units[i]) << shift;
  }
  switch (opcode) {
    case CALL:
      return oparg + 2;
    case CALL_FUNCTION_EX:
      return 3 + (oparg & 1);
    case LOAD_ATTR:
    case LOAD_METHOD:
    case GET_ITER:
    case UNARY_NOT:
    case UNARY_INVERT:
    case UNARY_NEGATIVE:
    case UNARY_POSITIVE:
    case DELETE_ATTR:
    case STORE_GLOBAL:
    case STORE_NAME:
    case STORE_DEREF:
    case BEFORE_WITH:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_TRUE:
    case UNPACK_SEQUENCE:
    case UNPACK_EX:
    case RETURN_VALUE:
    case YIELD_VALUE:
      return 1;
    case BINARY_OP:
    case BINARY_SUBSCR:
    case COMPARE_OP:
    case CONTAINS_OP:
    case IS_OP:
    case STORE_ATTR:
    case DELETE_SUBSCR:
    case IMPORT_NAME:
      return 2;
    case STORE_SUBSCR:
      return 3;
    case FORMAT_VALUE:
      return (oparg & 4) ? 2 : 1;
    default:
      return 0;
  }
}

void cresset_eval_image(const CressetActivation* activation, CressetPoint point, CressetFrameImage* image) {
  Frame* frame = activation->frame;
  *image = (CressetFrameImage){
      .function = activation->function,
      .code = activation->code,
      .names = frame->f_locals,
      .slots = frame->localsplus,
      .slot_count = activation->code->co_nlocalsplus,
      .stack = frame_stack(frame),
      .stack_depth = activation->stack_depth,
      .continuation = activation->continuation,
      .continuation_operand = activation->continuation_operand,
      .continuation_value = activation->continuation_value,
      .generator = activation->generator,
  };
  const int has_callee = activation != cresset_eval_state.current;
  if (!has_callee) image->handled = _PyErr_GetTopmostException(PyThreadState_Get())->exc_value;
  int first, last, calls = 0;
  if (activation->instruction < 0) {
    image->last = -1;
    return;
  }
  instruction_extent(activation->code, activation->instruction, &first, &last, &calls);
  if (!has_callee && point == CRESSET_AFTER) {
    image->stack_depth -= operands(activation->code, activation->instruction);
  }
  image->last = has_callee || point == CRESSET_AFTER ? last : first - 1;
}

// A frame on the data stack with the image's contents; activation included.
static Frame* rebuild_frame(PyThreadState* tstate, EvalState* state, const CressetFrameImage* image) {
  PyFunctionObject* function = (PyFunctionObject*)Py_NewRef(image->function);
  Frame* frame = push_frame(tstate, function, image->code, Py_XNewRef(image->names));
  if (frame == NULL) return NULL;
  for (int i = 0; i < image->slot_count; i++) frame->localsplus[i] = Py_XNewRef(image->slots[i]);
  PyObject** stack = frame_stack(frame);
  for (int i = 0; i < image->stack_depth; i++) stack[i] = Py_XNewRef(image->stack[i]);
  frame->stacktop = image->slot_count + image->stack_depth;
  frame->prev_instr = frame_code(frame) + image->last;
  CressetActivation* activation = push_activation(state, frame);
  if (activation == NULL) {
    drop_frame(tstate, frame);
    return NULL;
  }
  activation->instruction = image->last;
  activation->stack_depth = image->stack_depth;
  activation->continuation = image->continuation;
  activation->continuation_operand = image->continuation_operand;
  activation->continuation_value = Py_XNewRef(image->continuation_value);
  return frame;
}

static void raise_again(PyObject* exception) {
  PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(exception)), Py_NewRef(exception),
                PyException_GetTraceback(exception));
}

static void drop_rebuilt(PyThreadState* tstate, EvalState* state, int count) {
  while (count-- > 0) {
    CressetActivation* activation = state->current;
    Py_CLEAR(activation->continuation_value);
    Frame* frame = activation->frame;
    pop_activation(state);
    drop_frame(tstate, frame);
  }
}

PyObject* cresset_eval_resume(const CressetFrameImage* images, int count, PyObject* value, PyObject* exception,
                              int natively) {
  PyThreadState* tstate = PyThreadState_Get();
  EvalState* state = &cresset_eval_state;
  if (cresset_known_init() < 0 || (state->chunk == NULL && cresset_next_chunk(state) == NULL)) return NULL;
  Frame* outermost = NULL;
  Frame* innermost = NULL;
  for (int i = 0; i < count; i++) {
    if (images[i].generator != NULL) {
      PyErr_SetString(PyExc_NotImplementedError, "frames of generators are not rebuilt");
      drop_rebuilt(tstate, state, i);
      return NULL;
    }
    Frame* frame = rebuild_frame(tstate, state, &images[i]);
    if (frame == NULL) {
      drop_rebuilt(tstate, state, i);
      return NULL;
    }
    // Asked for by `natively`: the loop leaves each frame as soon as it comes to it.
    state->current->leave = (uint8_t)(natively != 0);
    if (i == 0) {
      outermost = frame;
      state->current->entered_from_c = 1;
      state->current->continuation = CRESSET_THEN_RETURN_TO_C;
      Py_CLEAR(state->current->continuation_value);
    } else {
      frame->previous = innermost;
      // All but the innermost are in a call: the recursion they count for.
      tstate->recursion_remaining--;
    }
    innermost = frame;
  }
  if (value != NULL) innermost->localsplus[innermost->stacktop++] = Py_NewRef(value);
  if (exception != NULL) raise_again(exception);
  // Handlers take back what they handle; what was handled before stays with the caller.
  _PyErr_StackItem* handled = tstate->exc_info;
  PyObject* before = handled->exc_value;
  handled->exc_value = Py_XNewRef(images[count - 1].handled);
  PyObject* result =
      cresset_run_frames(tstate, state, outermost, innermost, exception != NULL ? RUN_THROWING : RUN_RESUMED);
  Py_XSETREF(handled->exc_value, before);
  drop_frame(tstate, outermost);  // as a caller in C does
  return result;
}
