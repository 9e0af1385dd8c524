// The evaluation state of a thread, shared by the loop and its helpers. C sources of this folder only.
#pragma once

#include "frontend/eval/cpython.h"
#include "frontend/eval/hooks.h"

enum { kActivationsInChunk = 64 };
// Values of CressetActivation::leave.
enum { LEAVE_ALONE = 1, LEAVE_WITH_CALLEES = 2 };  // WITH_CALLEES: CPython also evaluates the frame's callees

typedef struct ActivationChunk {
  struct ActivationChunk* previous;
  struct ActivationChunk* next;
  CressetActivation items[kActivationsInChunk];
} ActivationChunk;

// One level of cresset_eval_begin. `left` is set by CRESSET_LEAVE_ALL.
typedef struct EvalLevel {
  struct EvalLevel* outer;
  const CressetEvalHooks* hooks;
  int paused_before;
  int left;
} EvalLevel;

typedef struct {
  EvalLevel* level;  // NULL: CPython evaluates this thread's frames
  int paused;        // number of open pauses since the level began; CPython evaluates frames while it is not 0
  CressetActivation* current;
  ActivationChunk* chunk;
  CressetActivation* end;  // of the chunk
} EvalState;

extern _Thread_local EvalState cresset_eval_state;

CressetActivation* cresset_next_chunk(EvalState* state);
void cresset_previous_chunk(EvalState* state);

// CPython's evaluator, or its replacement from before cresset.
PyObject* cresset_native_frame(PyThreadState* tstate, Frame* frame, int throwing);

// The loop. This call runs no activation below `outermost`; the frames from `innermost` to `outermost` are linked.
typedef enum { RUN_START = 0, RUN_RESUMED, RUN_THROWING } RunMode;
PyObject* cresset_run_frames(PyThreadState* tstate, EvalState* state, Frame* outermost, Frame* innermost, RunMode mode);

static inline CressetActivation* push_activation(EvalState* state, Frame* frame) {
  CressetActivation* previous = state->current;
  CressetActivation* next = previous == NULL ? state->end - kActivationsInChunk : previous + 1;
  if (UNLIKELY(next == state->end)) {
    next = cresset_next_chunk(state);
    if (next == NULL) return NULL;
  }
  next->caller = previous;
  next->frame = frame;
  next->function = frame_function(frame);
  next->code = FRAME_CODE(frame);
  next->instruction = -1;
  next->stack_top = frame_stack(frame);
  next->entered_from_c = 0;
  next->is_generator = 0;
  next->continuation = CRESSET_THEN_PUSH;
  next->leave = 0;
  next->continuation_operand = 0;
  next->continuation_value = NULL;
  next->generator = NULL;
  next->user = NULL;
  state->current = next;
  return next;
}

static inline void pop_activation(EvalState* state) {
  CressetActivation* gone = state->current;
  state->current = gone->caller;
  if (UNLIKELY(gone == state->chunk->items && state->chunk->previous != NULL)) cresset_previous_chunk(state);
}
