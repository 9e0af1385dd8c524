// Part of cresset_run_frames: displays, unpacking, functions, imports, patterns.
OP(BUILD_TUPLE) {
  PyObject* tuple = PyTuple_New(oparg);
  if (tuple == NULL) goto error;
  for (int i = oparg; --i >= 0;) PyTuple_SET_ITEM(tuple, i, POP());
  PUSH(tuple);
  NEXT();
}

OP(BUILD_LIST) {
  PyObject* list = PyList_New(oparg);
  if (list == NULL) goto error;
  for (int i = oparg; --i >= 0;) PyList_SET_ITEM(list, i, POP());
  PUSH(list);
  NEXT();
}

OP(BUILD_SET) {
  for (int i = oparg; i > 0; i--) LOOK_AT_STRING(PEEK(i));
  PyObject* set = PySet_New(NULL);
  if (set == NULL) goto error;
  int failed = 0;
  for (int i = oparg; i > 0 && failed == 0; i--) failed = PySet_Add(set, PEEK(i));
  DROP(oparg);
  if (failed) {
    Py_DECREF(set);
    goto error;
  }
  PUSH(set);
  NEXT();
}

OP(BUILD_MAP) {
  for (int i = oparg; i > 0; i--) LOOK_AT_STRING(PEEK(2 * i));
  PyObject* dict = _PyDict_NewPresized(oparg);
  if (dict == NULL) goto error;
  for (int i = oparg; i > 0; i--) {
    if (PyDict_SetItem(dict, PEEK(2 * i), PEEK(2 * i - 1)) < 0) {
      Py_DECREF(dict);
      goto error;
    }
  }
  DROP(2 * oparg);
  PUSH(dict);
  NEXT();
}

OP(BUILD_CONST_KEY_MAP) {
  PyObject* keys = TOP();
  if (!PyTuple_CheckExact(keys) || PyTuple_GET_SIZE(keys) != oparg) {
    PyErr_SetString(PyExc_SystemError, "bad BUILD_CONST_KEY_MAP keys argument");
    goto error;
  }
  PyObject* dict = _PyDict_NewPresized(oparg);
  if (dict == NULL) goto error;
  for (int i = 0; i < oparg; i++) {
    if (PyDict_SetItem(dict, PyTuple_GET_ITEM(keys, i), PEEK(oparg + 1 - i)) < 0) {
      Py_DECREF(dict);
      goto error;
    }
  }
  DROP(oparg + 1);
  PUSH(dict);
  NEXT();
}

OP(BUILD_STRING) {
  PyObject* text = cresset_join(sp - oparg, oparg);
  if (text == NULL) goto error;
  DROP(oparg);
  PUSH(text);
  NEXT();
}

OP(BUILD_SLICE) {
  PyObject* step = oparg == 3 ? POP() : NULL;
  PyObject* stop = POP();
  PyObject* start = TOP();
  PyObject* slice = PySlice_New(start, stop, step);
  Py_DECREF(start);
  Py_DECREF(stop);
  Py_XDECREF(step);
  TOP() = slice;
  if (slice == NULL) {
    sp--;
    goto error;
  }
  NEXT();
}

#define TELL_DISPLAY(container)                                                     \
  do {                                                                              \
    const CressetWrite write = {CRESSET_WRITE_DISPLAY, (container), NULL, NULL, 0}; \
    TELL(before_write, &write);                                                     \
  } while (0)

OP(LIST_APPEND) {
  TELL_DISPLAY(PEEK(oparg + 1));
  const int failed = PyList_Append(PEEK(oparg + 1), TOP());
  DROP(1);
  if (failed) goto error;
  NEXT();
}

OP(SET_ADD) {
  LOOK_AT_STRING(TOP());
  TELL_DISPLAY(PEEK(oparg + 1));
  const int failed = PySet_Add(PEEK(oparg + 1), TOP());
  DROP(1);
  if (failed) goto error;
  NEXT();
}

OP(MAP_ADD) {
  LOOK_AT_STRING(SECOND());
  TELL_DISPLAY(PEEK(oparg + 2));
  const int failed = PyDict_SetItem(PEEK(oparg + 2), SECOND(), TOP());
  DROP(2);
  if (failed) goto error;
  NEXT();
}

OP(LIST_EXTEND) {
  TELL_DISPLAY(PEEK(oparg + 1));
  TAKE_ITEMS(LIST_EXTEND, list_of, -1);
  BEFORE_OPERATOR(CRESSET_OP_ITER, 0, TOP(), NULL, refused_answer);
  TELL_CONTENTS(TOP());
  const int failed = cresset_list_extend(PEEK(oparg + 1), TOP());
  DROP(1);
  if (failed) goto error;
  NEXT();
}

OP(SET_UPDATE) {
  TELL_DISPLAY(PEEK(oparg + 1));
  TAKE_ITEMS(SET_UPDATE, list_of, -1);
  BEFORE_OPERATOR(CRESSET_OP_ITER, 0, TOP(), NULL, refused_answer);
  TELL_CONTENTS(TOP());
  const int failed = _PySet_Update(PEEK(oparg + 1), TOP());
  DROP(1);
  if (failed < 0) goto error;
  NEXT();
}

OP(DICT_UPDATE) {
  TELL_DISPLAY(PEEK(oparg + 1));
  BEFORE_OPERATOR(CRESSET_OP_ITER, 0, TOP(), NULL, refused_answer);
  TELL_CONTENTS(TOP());
  const int failed = cresset_dict_update(PEEK(oparg + 1), TOP());
  DROP(1);
  if (failed) goto error;
  NEXT();
}

OP(DICT_MERGE) {
  TELL_DISPLAY(PEEK(oparg + 1));
  TELL_CONTENTS(TOP());
  const int failed = cresset_merge_keywords(PEEK(3 + kCallableFirst + oparg), PEEK(oparg + 1), TOP());
  DROP(1);
  if (failed) goto error;
  NEXT();
}

OP(UNPACK_SEQUENCE) {
  SKIP(CACHES(UNPACK_SEQUENCE));
  TAKE_ITEMS(UNPACK_SEQUENCE, first_of, oparg);
  TELL_CONTENTS(TOP());
  if (items_of_length(TOP(), oparg) != NULL) {
    TELL(read_length, TOP(), oparg);
    PyObject* sequence = POP();
    PyObject** items = items_of_length(sequence, oparg);
    for (int i = oparg; --i >= 0;) PUSH(Py_NewRef(items[i]));
    Py_DECREF(sequence);
    NEXT();
  }
  if (!PyTuple_CheckExact(TOP()) && !PyList_CheckExact(TOP())) {
    BEFORE_OPERATOR(CRESSET_OP_UNPACK, oparg, TOP(), NULL, unpack_given);
    goto unpack;
  unpack_given:
    REPLACE_TOP(result);  // a sequence in place of the value
  }
unpack: {
  PyObject* taken;
  if (cresset_unpack(TOP(), oparg, -1, sp - 1 + oparg, &taken) < 0) {
    goto error;  // the sequence is still on the stack: nothing remains above it
  }
  sp += oparg - 1;
  Py_DECREF(taken);
  NEXT();
}
}

OP(UNPACK_EX) {
  const int before = oparg & 0xFF, after = oparg >> 8;
  TAKE_ITEMS(UNPACK_EX, list_of, -1);
  TELL_CONTENTS(TOP());
  PyObject* taken;
  if (cresset_unpack(TOP(), before, after, sp + before + after, &taken) < 0) goto error;
  sp += before + after;
  Py_DECREF(taken);
  NEXT();
}

OP(LOAD_BUILD_CLASS) {
  PyObject* build = cresset_mapping_get(frame->f_builtins, cresset_names.__build_class__);
  if (build == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_NameError, "__build_class__ not found");
    goto error;
  }
  PUSH(build);
  TELL(read_name, CRESSET_IN_BUILTINS, frame->f_builtins, cresset_names.__build_class__, build);
  NEXT();
}

OP(LOAD_ASSERTION_ERROR) {
  PUSH(Py_NewRef(PyExc_AssertionError));
  NEXT();
}

OP(SETUP_ANNOTATIONS) {
  if (cresset_setup_annotations(frame) < 0) goto error;
  NEXT();
}

OP(IMPORT_NAME) {
  PyObject* name = PyTuple_GET_ITEM(names, oparg);
  PyObject* module = cresset_import_name(tstate, frame, name, TOP(), SECOND());
  if (module == NULL) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    TELL(read_name, CRESSET_IN_MODULES, PyImport_GetModuleDict(), name, NULL);
    PyErr_Restore(type, value, traceback);
    goto error;
  }
  DROP(1);
  REPLACE_TOP(module);
  TELL(read_name, CRESSET_IN_MODULES, PyImport_GetModuleDict(), name, module);
  NEXT();
}

OP(IMPORT_FROM) {
  PyObject* value = cresset_import_from(TOP(), PyTuple_GET_ITEM(names, oparg));
  if (value == NULL) goto error;
  PUSH(value);
  if (LIKELY(hooks->read_attribute != NULL)) {
    const CressetAttributeRead read = {.owner = SECOND(),
                                       .name = PyTuple_GET_ITEM(names, oparg),
                                       .value = value,
                                       .place = PyModule_Check(SECOND()) ? CRESSET_AT_MODULE : CRESSET_AT_FOREIGN};
    TELL(read_attribute, &read);
  }
  NEXT();
}

OP(GET_LEN) {
  const Py_ssize_t length = PyObject_Length(TOP());
  if (length < 0) goto error;
  PyObject* number = PyLong_FromSsize_t(length);
  if (number == NULL) goto error;
  PUSH(number);
  TELL(read_length, SECOND(), length);
  NEXT();
}

OP(MATCH_MAPPING) {
  PUSH(Py_NewRef((Py_TYPE(TOP())->tp_flags & Py_TPFLAGS_MAPPING) ? Py_True : Py_False));
  NEXT();
}

OP(MATCH_SEQUENCE) {
  PUSH(Py_NewRef((Py_TYPE(TOP())->tp_flags & Py_TPFLAGS_SEQUENCE) ? Py_True : Py_False));
  NEXT();
}

OP(MATCH_CLASS) {
  TELL(read_contents, THIRD());
  REST();
  PyObject* attributes = cresset_match_class(hooks, activation, THIRD(), SECOND(), oparg, TOP());
  MOVE();
  if (attributes == NULL) {
    if (PyErr_Occurred()) goto error;
    attributes = Py_NewRef(Py_None);
  }
  DROP(2);
  REPLACE_TOP(attributes);
  NEXT();
}

OP(MATCH_KEYS) {
  TELL_CONTENTS(SECOND());
  PyObject* values = cresset_match_keys(SECOND(), TOP());
  if (values == NULL) goto error;
  PUSH(values);
  NEXT();
}

refused_answer : Py_CLEAR(result);
PyErr_SetString(PyExc_SystemError, "this operator takes no answer from a hook");
goto error;
