// Part of cresset_run_frames: opcodes of CPython 3.11 and 3.12, but not of later versions.

OP(LOAD_CLOSURE) {
  PyObject* value = locals[oparg];
  if (UNLIKELY(value == NULL)) goto unbound_local;
  Py_INCREF(value);
  PUSH(value);
  NEXT();
}

OP(MAKE_FUNCTION) {
  PyObject* code = POP();
  PyFunctionObject* function = (PyFunctionObject*)PyFunction_New(code, frame->f_globals);
  Py_DECREF(code);
  if (function == NULL) goto error;
  if (oparg & 8) function->func_closure = POP();
  if (oparg & 4) function->func_annotations = POP();
  if (oparg & 2) function->func_kwdefaults = POP();
  if (oparg & 1) function->func_defaults = POP();
  PUSH((PyObject*)function);
  NEXT();
}

OP(KW_NAMES) {
  kwnames = PyTuple_GET_ITEM(consts, oparg);
  FETCH();  // does not test `divert`: CPython keeps kwnames between these instructions too
  goto* targets[UNWATCHED(opcode)];
}

OP(FORMAT_VALUE) {
  if (oparg & 4) LOOK_AT_STRING(TOP());
  PyObject* spec = (oparg & 4) ? TOP() : NULL;
  PyObject* value = PEEK(spec != NULL ? 2 : 1);
  const int conversion = (oparg & 3) == 1 ? 's' : (oparg & 3) == 2 ? 'r' : (oparg & 3) == 3 ? 'a' : 0;
  if (!IS_UNREPORTED(value)) BEFORE_FORMAT(conversion, value, spec, spec != NULL ? 2 : 1, format_done);
  result = cresset_format(value, spec, conversion);
format_done:
  DROP(spec != NULL ? 2 : 1);
  if (result == NULL) goto error;
  PUSH(result);
  NEXT();
}
