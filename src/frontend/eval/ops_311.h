// Part of cresset_run_frames: opcodes of CPython 3.11 alone.
#include "frontend/eval/ops_until_312.h"

JUMP_WHEN(POP_JUMP_FORWARD_IF_TRUE, Py_False, Py_True, oparg)
JUMP_WHEN(POP_JUMP_FORWARD_IF_FALSE, Py_True, Py_False, oparg)
JUMP_WHEN(POP_JUMP_BACKWARD_IF_TRUE, Py_False, Py_True, -oparg)
JUMP_WHEN(POP_JUMP_BACKWARD_IF_FALSE, Py_True, Py_False, -oparg)
JUMP_ON_NONE(POP_JUMP_FORWARD_IF_NONE, 1, oparg)
JUMP_ON_NONE(POP_JUMP_FORWARD_IF_NOT_NONE, 0, oparg)
JUMP_ON_NONE(POP_JUMP_BACKWARD_IF_NONE, 1, -oparg)
JUMP_ON_NONE(POP_JUMP_BACKWARD_IF_NOT_NONE, 0, -oparg)

OP(JUMP_IF_TRUE_OR_POP) { goto ask_truth; }
OP(JUMP_IF_FALSE_OR_POP) { goto ask_truth; }

// then_operand: the truth; opcode and oparg: the jump. For ..._OR_POP the tested value is still on the stack.
branch : switch (cresset_base_opcode[opcode]) {
  case POP_JUMP_FORWARD_IF_TRUE:
    if (then_operand) SKIP(oparg);
    NEXT();
  case POP_JUMP_FORWARD_IF_FALSE:
    if (!then_operand) SKIP(oparg);
    NEXT();
  case POP_JUMP_BACKWARD_IF_TRUE:
    if (then_operand) SKIP(-oparg);
    CHECK_ATTENTION();
    NEXT();
  case POP_JUMP_BACKWARD_IF_FALSE:
    if (!then_operand) SKIP(-oparg);
    CHECK_ATTENTION();
    NEXT();
  case UNARY_NOT:
    PUSH(Py_NewRef(then_operand ? Py_False : Py_True));
    NEXT();
  default:
    if (then_operand == (cresset_base_opcode[opcode] == JUMP_IF_TRUE_OR_POP)) {
      SKIP(oparg);
    } else {
      DROP(1);
    }
    NEXT();
}

OP(LOAD_METHOD) {
  name_index = oparg;
  SKIP(CACHES(LOAD_METHOD));
  goto load_method;
}

OP(PRECALL) {
  SKIP(CACHES(PRECALL));
  if (kwnames == NULL) NEXT();
  FETCH();
  goto* targets[opcode];
}

UNARY(UNARY_POSITIVE, '+', PyNumber_Positive)

OP(LOAD_CLASSDEREF) {
  PyObject* name = PyTuple_GET_ITEM(FRAME_CODE(frame)->co_localsplusnames, oparg);
  PyObject* cell = locals[oparg];
  PyObject* value = cresset_mapping_get(frame->f_locals, name);
  if (value != NULL) {
    PUSH(value);
    TELL(read_name, CRESSET_IN_LOCALS, frame->f_locals, name, value);
    NEXT();
  }
  if (PyErr_Occurred()) goto error;
  value = PyCell_GET(cell);
  if (value == NULL) {
    cresset_unbound_cell(FRAME_CODE(frame), oparg);
    goto error;
  }
  Py_INCREF(value);
  PUSH(value);
  TELL(read_cell, cell, oparg, value);
  NEXT();
}

OP(LIST_TO_TUPLE) {
  PyObject* tuple = PyList_AsTuple(TOP());
  if (tuple == NULL) goto error;
  REPLACE_TOP(tuple);
  NEXT();
}

OP(PRINT_EXPR) {
  const int failed = cresset_print_expression(TOP());
  DROP(1);
  if (failed) goto error;
  NEXT();
}

OP(IMPORT_STAR) {
  // Only at module level or in a class body: the names are a mapping.
  const int failed = cresset_import_star(frame->f_locals, TOP());
  DROP(1);
  if (failed) goto error;
  NEXT();
}

OP(PREP_RERAISE_STAR) {
  PyObject* raised = cresset_prepare_reraise_star(SECOND(), TOP());
  if (raised == NULL) goto error;
  DROP(1);
  REPLACE_TOP(raised);
  NEXT();
}

OP(ASYNC_GEN_WRAP) {
  PyObject* wrapped = cresset_wrap_async_value(POP());
  if (wrapped == NULL) goto error;
  PUSH(wrapped);
  NEXT();
}
