// The loop: CPython's opcodes on CPython's own frames. ops_*.h hold the opcodes, a file for each family, and a file for
// the opcodes of one version alone (cpython.h). All files are parts of the one function below: dispatch jumps from
// opcode to opcode without a common point.
//
// Invariants. `frame` is the current frame and on top of the thread's frame stack; `sp` points above the top value;
// LAST_INSTRUCTION(frame) is the instruction in progress, next_instr - 1 except after RERAISE. frame->stacktop is -1
// while values move, which hides them from the collector. `activation` mirrors `frame`. A call of a Python function
// makes no C call: the frames of one run form a chain from `frame` to `outermost`.
#include "frontend/eval/polyfills.h"
#include "frontend/eval/helpers.h"
#include "frontend/eval/known.h"
#include "frontend/eval/loop_macros.h"
#include "frontend/eval/reported_reads.h"

static binaryfunc const kBinary[] = {
    [NB_ADD] = PyNumber_Add,
    [NB_AND] = PyNumber_And,
    [NB_FLOOR_DIVIDE] = PyNumber_FloorDivide,
    [NB_LSHIFT] = PyNumber_Lshift,
    [NB_MATRIX_MULTIPLY] = PyNumber_MatrixMultiply,
    [NB_MULTIPLY] = PyNumber_Multiply,
    [NB_REMAINDER] = PyNumber_Remainder,
    [NB_OR] = PyNumber_Or,
    [NB_POWER] = NULL,
    [NB_RSHIFT] = PyNumber_Rshift,
    [NB_SUBTRACT] = PyNumber_Subtract,
    [NB_TRUE_DIVIDE] = PyNumber_TrueDivide,
    [NB_XOR] = PyNumber_Xor,
    [NB_INPLACE_ADD] = PyNumber_InPlaceAdd,
    [NB_INPLACE_AND] = PyNumber_InPlaceAnd,
    [NB_INPLACE_FLOOR_DIVIDE] = PyNumber_InPlaceFloorDivide,
    [NB_INPLACE_LSHIFT] = PyNumber_InPlaceLshift,
    [NB_INPLACE_MATRIX_MULTIPLY] = PyNumber_InPlaceMatrixMultiply,
    [NB_INPLACE_MULTIPLY] = PyNumber_InPlaceMultiply,
    [NB_INPLACE_REMAINDER] = PyNumber_InPlaceRemainder,
    [NB_INPLACE_OR] = PyNumber_InPlaceOr,
    [NB_INPLACE_POWER] = NULL,
    [NB_INPLACE_RSHIFT] = PyNumber_InPlaceRshift,
    [NB_INPLACE_SUBTRACT] = PyNumber_InPlaceSubtract,
    [NB_INPLACE_TRUE_DIVIDE] = PyNumber_InPlaceTrueDivide,
    [NB_INPLACE_XOR] = PyNumber_InPlaceXor,
};

static PyObject* binary_operation(int operation, PyObject* left, PyObject* right) {
  if (operation == NB_POWER) return PyNumber_Power(left, right, Py_None);
  if (operation == NB_INPLACE_POWER) return PyNumber_InPlacePower(left, right, Py_None);
  return kBinary[operation](left, right);
}

// Operators and truth of values of these types need no report.
static inline int is_plain(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyUnicode_Type ||
         value == Py_None;
}

// The items of an exact tuple or list of the given length; else NULL.
static inline PyObject** items_of_length(PyObject* sequence, Py_ssize_t length) {
  if (!PyTuple_CheckExact(sequence) && !PyList_CheckExact(sequence)) return NULL;
  return PySequence_Fast_GET_SIZE(sequence) == length ? PySequence_Fast_ITEMS(sequence) : NULL;
}

// The generator's frame can run in the loop under next(g), g.send(x), g.throw(e), g.close().
typedef enum { STEPS_NOTHING = 0, STEPS_ON, STEPS_THROWING, STEPS_CLOSING } Steps;

static inline Steps steps_generator(PyObject* callable, PyObject* const* args, Py_ssize_t nargs) {
  if (callable == cresset_known.generator_throw || callable == cresset_known.generator_close) {
    const int closes = callable == cresset_known.generator_close;
    if (nargs < 1 || !PyGen_CheckExact(args[0])) return STEPS_NOTHING;
    if (closes ? nargs != 1 : nargs == 1 || nargs > kMostThrown + 1) return STEPS_NOTHING;
    if (!cresset_may_throw_into(args[0])) return STEPS_NOTHING;
    return closes ? STEPS_CLOSING : STEPS_THROWING;
  }
  if (callable == cresset_known.next_function) {
    if (nargs != 1) return 0;
  } else if ((callable != cresset_known.generator_send && callable != cresset_known.coroutine_send) || nargs != 2) {
    return 0;
  }
  if (!PyGen_CheckExact(args[0]) && !(PyCoro_CheckExact(args[0]) && callable == cresset_known.coroutine_send)) return 0;
  const int8_t frame_state = ((PyGenObject*)args[0])->gi_frame_state;
  return IS_SUSPENDED(frame_state) || (frame_state == FRAME_CREATED && (nargs == 1 || args[1] == Py_None))
             ? STEPS_ON
             : STEPS_NOTHING;
}

static const CressetEvalHooks kNoHooks;

// size: switch
PyObject* cresset_run_frames(PyThreadState* tstate, EvalState* state, Frame* outermost, Frame* innermost,
                             RunMode mode) {
#include "frontend/eval/loop_labels.h"
  const CressetEvalHooks* hooks = state->level != NULL && state->level->hooks != NULL ? state->level->hooks : &kNoHooks;
  CressetActivation* activation = state->current;
  Frame* frame = innermost;
  PyObject **sp, **locals;
  PyObject *names, *consts;
  Unit *first_instr, *next_instr;
  PyObject* kwnames = NULL;  // of the next CALL; borrowed
  int opcode, oparg;
  unsigned divert = 0;

  // A call in preparation: see ops_call.h.
  PyObject* callable = NULL;
  PyObject** call_args = NULL;
  PyObject** call_base = NULL;                     // the stack is cut back to this level
  PyObject *call_tuple = NULL, *call_dict = NULL;  // CALL_FUNCTION_EX
  PyObject** flat_args = NULL;
  Py_ssize_t call_nargs = 0;
  PyObject* implicit_args[4];
  int name_index = 0;
  Py_ssize_t items_wanted = -1;
  PyObject* items_count = NULL;
  PyObject* made_key = NULL;  // a subscript's key made by the evaluator; owned
  PyObject* result = NULL;
  int then = CRESSET_THEN_PUSH, then_operand = 0;
  PyObject* then_value = NULL;

  // Set after CPython's own loop finished a frame and dropped it.
  int is_gone = 0;
  Frame* gone_caller = NULL;
  PyObject *gone_function = NULL, *gone_code = NULL;  // kept for the hook leave_frame

  LoopEntry entry;
  if (enter_loop(tstate, &entry, outermost, innermost) < 0) goto unwound;
  if (mode == RUN_START) goto start_frame;
  if (mode == RUN_RESUMED) goto enter_quietly;

throw_into_frame:
  if (UNLIKELY(enter_python(tstate))) {
    mode = RUN_START;
    goto unwound;
  }
  LOAD_FRAME();
  TELL_ENTER();
  mode = RUN_START;
  goto error;

enter_quietly:
  if (UNLIKELY(enter_python(tstate))) goto unwound;
  goto resume_frame;

start_frame:
  if (UNLIKELY(enter_python(tstate))) goto unwound;
  LOAD_FRAME();
  TELL_ENTER();
  LEAVE_IF_WATCHED();
  NEXT();

resume_frame:
  LOAD_FRAME();
  NEXT();

#include "frontend/eval/ops_stack.h"
//
#include "frontend/eval/ops_names.h"
//
#include "frontend/eval/ops_operators.h"
//
#include "frontend/eval/ops_attributes.h"
//
#include "frontend/eval/ops_build.h"
//
#include "frontend/eval/ops_branch.h"
//
#include "frontend/eval/ops_iterate.h"
//
#include "frontend/eval/ops_call.h"
//
#include "frontend/eval/ops_exceptions.h"
//
#include "frontend/eval/ops_generators.h"
//
#include CRESSET_OPS_OF_VERSION
//
#include "frontend/eval/loop_exits.h"
}
