// Part of cresset_run_frames: constants, locals, the stack, unconditional jumps.
OP(NOP) { NEXT(); }

OP(RESUME) {
  if ((oparg & 3) < 2) CHECK_ATTENTION();  // not in the middle of an await or yield from
  NEXT();
}

OP(LOAD_FAST) {
  PyObject* value = locals[oparg];
  if (UNLIKELY(value == NULL)) goto unbound_local;
  Py_INCREF(value);
  PUSH(value);
  NEXT();
}

OP(LOAD_CONST) {
  PyObject* value = PyTuple_GET_ITEM(consts, oparg);
  Py_INCREF(value);
  PUSH(value);
  NEXT();
}

OP(STORE_FAST) {
  PyObject* value = POP();
  REPLACE_LOCAL(oparg, value);
  NEXT();
}

OP(DELETE_FAST) {
  if (UNLIKELY(locals[oparg] == NULL)) goto unbound_local;
  REPLACE_LOCAL(oparg, NULL);
  NEXT();
}

OP(POP_TOP) {
  DROP(1);
  NEXT();
}

OP(PUSH_NULL) {
  PUSH(NULL);
  NEXT();
}

OP(COPY) {
  PyObject* value = PEEK(oparg);
  Py_XINCREF(value);
  PUSH(value);
  NEXT();
}

OP(SWAP) {
  PyObject* value = TOP();
  TOP() = PEEK(oparg);
  PEEK(oparg) = value;
  NEXT();
}

OP(EXTENDED_ARG) {
  // Does not test `divert`: a frame is left between instructions, and the prefix is a part of the next instruction.
  Unit* const prefix = next_instr - 1;
  do {
    const int high = oparg << 8;
    FETCH();
    oparg |= high;
  } while (cresset_base_opcode[opcode] == EXTENDED_ARG);
  if (kwnames != NULL) opcode = UNWATCHED(opcode);
  if (UNLIKELY(IS_WATCHED_INSTRUCTION(opcode))) {
    next_instr = prefix + 1;
    goto op_watched;
  }
  goto* targets[opcode];
}

OP(JUMP_FORWARD) {
  SKIP(oparg);
  NEXT();
}

OP(JUMP_BACKWARD) {
  SKIP(CACHES(JUMP_BACKWARD) - oparg);
  CHECK_ATTENTION();
  NEXT();
}

OP(JUMP_BACKWARD_NO_INTERRUPT) {
  SKIP(-oparg);
  NEXT();
}

unbound_local : cresset_unbound_local(FRAME_CODE(frame), oparg);
goto error;
