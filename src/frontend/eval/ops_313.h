// Part of cresset_run_frames: opcodes of CPython 3.13 alone.
#include "frontend/eval/ops_since_312.h"

OP(TO_BOOL) {
  SKIP(CACHES(TO_BOOL));
  goto ask_truth;
}

// then_operand: the truth; opcode and oparg: the jump. The jump tests a bool, unless a graph break came before it.
branch : switch (cresset_base_opcode[opcode]) {
  case POP_JUMP_IF_TRUE:
    SKIP(CACHES(POP_JUMP) + (then_operand ? oparg : 0));
    NEXT();
  case POP_JUMP_IF_FALSE:
    SKIP(CACHES(POP_JUMP) + (then_operand ? 0 : oparg));
    NEXT();
  case UNARY_NOT:
    PUSH(Py_NewRef(then_operand ? Py_False : Py_True));
    NEXT();
  default:  // TO_BOOL, and COMPARE_OP with a bool result
    PUSH(Py_NewRef(then_operand ? Py_True : Py_False));
    NEXT();
}

// ---- Two in one -----------------------------------------------------------------------------------------------------
OP(LOAD_FAST_LOAD_FAST) {
  PUSH(Py_NewRef(locals[oparg >> 4]));
  PUSH(Py_NewRef(locals[oparg & 15]));
  NEXT();
}

OP(STORE_FAST_LOAD_FAST) {
  PyObject* value = POP();
  REPLACE_LOCAL(oparg >> 4, value);
  PUSH(Py_NewRef(locals[oparg & 15]));
  NEXT();
}

OP(STORE_FAST_STORE_FAST) {
  PyObject* first = POP();
  REPLACE_LOCAL(oparg >> 4, first);
  PyObject* second = POP();
  REPLACE_LOCAL(oparg & 15, second);
  NEXT();
}

// ---- Functions, calls -----------------------------------------------------------------------------------------------
OP(MAKE_FUNCTION) {
  PyObject* function = PyFunction_New(TOP(), frame->f_globals);
  if (function == NULL) goto error;
  REPLACE_TOP(function);
  NEXT();
}

OP(SET_FUNCTION_ATTRIBUTE) {
  PyFunctionObject* function = (PyFunctionObject*)POP();
  PyObject* value = TOP();
  TOP() = (PyObject*)function;
  if (oparg == 8) function->func_closure = value;
  if (oparg == 4) function->func_annotations = value;
  if (oparg == 2) function->func_kwdefaults = value;
  if (oparg == 1) function->func_defaults = value;
  NEXT();
}

// The names of the keyword arguments lie above the arguments.
OP(CALL_KW) {
  SKIP(CACHES(CALL_KW));
  kwnames = TOP();
  call_base = sp - oparg - 3;
  call_nargs = oparg + (call_base[1] != NULL);
  call_args = sp - 1 - call_nargs;
  call_nargs -= PyTuple_GET_SIZE(kwnames);
  callable = *call_base;
  call_tuple = NULL;
  goto call;
}

// ---- Strings --------------------------------------------------------------------------------------------------------
OP(CONVERT_VALUE) {
  PyObject* value = TOP();
  const int conversion = oparg == 1 ? 's' : oparg == 2 ? 'r' : 'a';
  if (!IS_UNREPORTED(value)) BEFORE_FORMAT(conversion, value, NULL, 1, unary_done);
  result = conversion == 's' ? PyObject_Str(value) : conversion == 'r' ? PyObject_Repr(value) : PyObject_ASCII(value);
  goto unary_done;
}

OP(FORMAT_SIMPLE) {
  PyObject* value = TOP();
  if (PyUnicode_CheckExact(value)) NEXT();
  if (!IS_UNREPORTED(value)) BEFORE_FORMAT(0, value, NULL, 1, unary_done);
  result = PyObject_Format(value, NULL);
  goto unary_done;
}

OP(FORMAT_WITH_SPEC) {
  LOOK_AT_STRING(TOP());
  PyObject* value = SECOND();
  if (!IS_UNREPORTED(value)) BEFORE_FORMAT(0, value, TOP(), 2, format_done);
  result = PyObject_Format(value, TOP());
format_done:
  DROP(2);
  if (result == NULL) goto error;
  PUSH(result);
  NEXT();
}

OP(END_FOR) {
  DROP(1);
  NEXT();
}

// The first instruction of code compiled by CPython's second tier: the evaluator executes the original instruction.
OP(ENTER_EXECUTOR) {
  const _PyExecutorObject* executor = FRAME_CODE(frame)->co_executors->executors[oparg];
  opcode = executor->vm_data.opcode;
  oparg = executor->vm_data.oparg;
  goto* targets[opcode];
}
