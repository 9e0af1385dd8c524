// Part of cresset_run_frames: names, globals, cells.
OP(LOAD_GLOBAL) {
  PyObject* name = PyTuple_GET_ITEM(names, oparg >> 1);
  const Unit* at = next_instr;
  uint64_t version = 0, outer_version = 0;
  if (hooks->reported != 0 && (outer_version = reported_version(frame->f_builtins)) != 0) {
    version = reported_version(frame->f_globals);
    PyObject* known = reported_value(hooks, at, name, version, outer_version);
    if (LIKELY(known != NULL)) {
      Py_INCREF(known);
      SKIP(CACHES(LOAD_GLOBAL));
      if (oparg & 1) {
        PUSH_CALLABLE(known);
      } else {
        PUSH(known);
      }
      NEXT();
    }
  }
  CressetNamespace where = CRESSET_IN_GLOBALS;
  PyObject* value = cresset_global(frame, name, &where);
  if (UNLIKELY(value == NULL && PyErr_Occurred() && hooks->read_name == NULL)) goto error;
  if (UNLIKELY(value == NULL)) {
    if (where == CRESSET_IN_NOTHING) TELL_MISSING(read_name, where, frame->f_globals, name, NULL);
    goto error;
  }
  SKIP(CACHES(LOAD_GLOBAL));
  if (oparg & 1) {
    PUSH_CALLABLE(value);
  } else {
    PUSH(value);
  }
  if (LIKELY(hooks->read_name != NULL)) {
    const uint64_t segment = hooks->reported;
    (void)AT_REST();
    const int reported =
        hooks->read_name(hooks->session, activation, where,
                         where == CRESSET_IN_GLOBALS ? frame->f_globals : frame->f_builtins, name, value);
    MOVING();
    if (UNLIKELY(reported < 0)) goto error;
    if (reported == CRESSET_REPORTED && hooks->reported == segment && version == reported_version(frame->f_globals) &&
        outer_version == reported_version(frame->f_builtins))
      remember_reported(hooks, at, name, version, outer_version, value);
  }
  NEXT();
}

OP(LOAD_NAME) {
  PyObject* name = PyTuple_GET_ITEM(names, oparg);
  if (UNLIKELY(frame->f_locals == NULL)) {
    PyErr_Format(PyExc_SystemError, "no locals when loading %R", name);
    goto error;
  }
  CressetNamespace where = CRESSET_IN_LOCALS;
  PyObject* value = cresset_mapping_get(frame->f_locals, name);
  if (value == NULL) {
    if (PyErr_Occurred()) goto error;
    value = cresset_global(frame, name, &where);
    if (value == NULL) {
      if (where == CRESSET_IN_NOTHING) TELL_MISSING(read_name, where, frame->f_globals, name, NULL);
      goto error;
    }
  }
  PUSH(value);
  TELL(read_name, where,
       where == CRESSET_IN_LOCALS ? frame->f_locals
                                  : (where == CRESSET_IN_GLOBALS ? frame->f_globals : frame->f_builtins),
       name, value);
  NEXT();
}

OP(STORE_NAME) {
  PyObject* name = PyTuple_GET_ITEM(names, oparg);
  PyObject* mapping = frame->f_locals;
  if (UNLIKELY(mapping == NULL)) {
    PyErr_Format(PyExc_SystemError, "no locals found when storing %R", name);
    goto error;
  }
  const CressetWrite write = {CRESSET_WRITE_NAME, mapping, name, TOP(), 0};
  TELL(before_write, &write);
  const int failed =
      PyDict_CheckExact(mapping) ? PyDict_SetItem(mapping, name, TOP()) : PyObject_SetItem(mapping, name, TOP());
  if (failed == 0) TELL(after_write, &write);
  DROP(1);
  if (failed) goto error;
  NEXT();
}

OP(DELETE_NAME) {
  PyObject* name = PyTuple_GET_ITEM(names, oparg);
  PyObject* mapping = frame->f_locals;
  if (UNLIKELY(mapping == NULL)) {
    PyErr_Format(PyExc_SystemError, "no locals when deleting %R", name);
    goto error;
  }
  const CressetWrite write = {CRESSET_WRITE_NAME, mapping, name, NULL, 0};
  TELL(before_write, &write);
  if (PyObject_DelItem(mapping, name) != 0) {
    cresset_undefined_name(name);
    goto error;
  }
  TELL(after_write, &write);
  NEXT();
}

OP(STORE_GLOBAL) {
  PyObject* name = PyTuple_GET_ITEM(names, oparg);
  const CressetWrite write = {CRESSET_WRITE_GLOBAL, frame->f_globals, name, TOP(), 0};
  TELL(before_write, &write);
  const int failed = PyDict_SetItem(frame->f_globals, name, TOP());
  if (failed == 0) TELL(after_write, &write);
  DROP(1);
  if (failed) goto error;
  NEXT();
}

OP(DELETE_GLOBAL) {
  PyObject* name = PyTuple_GET_ITEM(names, oparg);
  const CressetWrite write = {CRESSET_WRITE_GLOBAL, frame->f_globals, name, NULL, 0};
  TELL(before_write, &write);
  if (PyDict_DelItem(frame->f_globals, name) != 0) {
    if (PyErr_ExceptionMatches(PyExc_KeyError)) cresset_undefined_name(name);
    goto error;
  }
  TELL(after_write, &write);
  NEXT();
}

OP(MAKE_CELL) {
  PyObject* cell = PyCell_New(locals[oparg]);
  if (cell == NULL) goto error;
  REPLACE_LOCAL(oparg, cell);
  NEXT();
}

OP(COPY_FREE_VARS) {
  PyObject* closure = ((PyFunctionObject*)frame_function(frame))->func_closure;
  PyObject** slots = locals + FRAME_CODE(frame)->co_nlocalsplus - oparg;
  for (int i = 0; i < oparg; i++) slots[i] = Py_NewRef(PyTuple_GET_ITEM(closure, i));
  NEXT();
}

OP(LOAD_DEREF) {
  PyObject* cell = locals[oparg];
  PyObject* value = PyCell_GET(cell);
  if (UNLIKELY(value == NULL)) {
    cresset_unbound_cell(FRAME_CODE(frame), oparg);
    goto error;
  }
  Py_INCREF(value);
  PUSH(value);
  TELL(read_cell, cell, oparg, value);
  NEXT();
}

OP(STORE_DEREF) {
  PyObject* cell = locals[oparg];
  const CressetWrite write = {CRESSET_WRITE_CELL, cell, NULL, TOP(), 0};
  TELL(before_write, &write);
  PyObject* old = PyCell_GET(cell);
  PyObject* value = POP();
  PyCell_SET(cell, value);
  TELL(after_write, &write);
  Py_XDECREF(old);
  NEXT();
}

OP(DELETE_DEREF) {
  PyObject* cell = locals[oparg];
  PyObject* old = PyCell_GET(cell);
  if (old == NULL) {
    cresset_unbound_cell(FRAME_CODE(frame), oparg);
    goto error;
  }
  const CressetWrite write = {CRESSET_WRITE_CELL, cell, NULL, NULL, 0};
  TELL(before_write, &write);
  PyCell_SET(cell, NULL);
  TELL(after_write, &write);
  Py_DECREF(old);
  NEXT();
}
