// Part of cresset_run_frames: opcodes of CPython 3.12 alone.
#include "frontend/eval/ops_since_312.h"
//
#include "frontend/eval/ops_until_312.h"

// then_operand: the truth; opcode and oparg: the jump.
branch : switch (cresset_base_opcode[opcode]) {
  case POP_JUMP_IF_TRUE:
    if (then_operand) SKIP(oparg);
    NEXT();
  case POP_JUMP_IF_FALSE:
    if (!then_operand) SKIP(oparg);
    NEXT();
  default:  // UNARY_NOT
    PUSH(Py_NewRef(then_operand ? Py_False : Py_True));
    NEXT();
}

OP(END_FOR) {
  DROP(2);
  NEXT();
}
