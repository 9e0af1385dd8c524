// Part of cresset_run_frames: attributes. Python code that computes one (property, __getattr__, __setattr__) gets its
// frame in this loop.
OP(LOAD_ATTR) {
  name_index = ATTRIBUTE_NAME(oparg);
  SKIP(CACHES(LOAD_ATTR));
  if (ATTRIBUTE_AS_METHOD(oparg)) goto load_method;
  PyObject* owner = TOP();
  PyObject* name = PyTuple_GET_ITEM(names, name_index);
  AttributeResult found;
  if (LIKELY(hooks->read_attribute != NULL)) {
    const uint64_t version = REPORTED_VERSION(owner), segment = hooks->reported;
    PyObject* known = reported_value(hooks, next_instr, name, version, 0);
    if (known != NULL) {
      REPLACE_TOP(Py_NewRef(known));
      NEXT();
    }
    CressetAttributeRead read;
    REST();
    cresset_load_attribute(owner, name, 0, &read, &found);
    if (found.value != NULL) {
      owner = TOP();
      TOP() = found.value;
      state->paused++;
      const int reported = hooks->read_attribute(hooks->session, activation, &read);
      MOVING();
      if (reported == CRESSET_READ_AS_CALL || reported == CRESSET_READ_BY_GETATTR) {
        REPLACE_TOP(owner);
        callable = reported == CRESSET_READ_AS_CALL ? cresset_polyfills.data_of : cresset_polyfills.attribute_of;
        implicit_args[0] = owner;
        implicit_args[1] = name;
        call_nargs = reported == CRESSET_READ_AS_CALL ? 1 : 2;
        call_base = sp - 1;
        then = CRESSET_THEN_PUSH;
        then_value = NULL;
        goto implicit_call;
      }
      if (reported == CRESSET_REPORTED) REMEMBER_REPORTED(owner, version, segment, read.value);
      Py_DECREF(owner);  // kept until the hook has seen it
      if (UNLIKELY(reported < 0)) goto error;
      NEXT();
    }
    MOVE();
    TELL_MISSING(read_attribute, &read);
  } else {
    cresset_load_attribute(owner, name, 0, NULL, &found);
  }
  if (LIKELY(found.value != NULL)) {
    REPLACE_TOP(found.value);
    NEXT();
  }
  if (found.python == NULL) goto error;
  owner = TOP();
  callable = found.python;
  implicit_args[0] = owner;
  implicit_args[1] = name;
  call_nargs = 1 + found.with_name;
  call_base = sp - 1;
  then = CRESSET_THEN_ATTRIBUTE;
  then_operand = 4 * name_index + found.then_missing;
  then_value = Py_NewRef(owner);
  goto implicit_call_owned;
}

// A method that is called at once need not be bound. The stack gets the method and its owner, or NULL and a callable.
load_method : {
  PyObject* owner = TOP();
  PyObject* name = PyTuple_GET_ITEM(names, name_index);
  AttributeResult found;
  if (LIKELY(hooks->read_attribute != NULL)) {
    const uint64_t version = REPORTED_VERSION(owner), segment = hooks->reported;
    PyObject* known = reported_value(hooks, next_instr, name, version, 0);
    if (known != NULL) {
      Py_INCREF(known);
      sp--;
      PUSH_CALLABLE(known);
      Py_DECREF(owner);
      NEXT();
    }
    CressetAttributeRead read;
    REST();
    cresset_load_attribute(owner, name, 1, &read, &found);
    if (found.value != NULL) {
      state->paused++;
      const int reported = hooks->read_attribute(hooks->session, activation, &read);
      MOVING();
      if (reported == CRESSET_REPORTED) REMEMBER_REPORTED(owner, version, segment, read.value);
      if (reported < 0 || reported == CRESSET_READ_BY_GETATTR) Py_DECREF(found.value);
      if (UNLIKELY(reported < 0)) goto error;
      if (reported == CRESSET_READ_BY_GETATTR) {
        callable = cresset_polyfills.attribute_of;
        implicit_args[0] = owner;
        implicit_args[1] = name;
        call_nargs = 2;
        call_base = sp - 1;
        then = CRESSET_THEN_ATTRIBUTE;
        then_operand = 4 * name_index + 2;
        then_value = Py_NewRef(owner);
        goto implicit_call;
      }
    } else {
      MOVE();
      TELL_MISSING(read_attribute, &read);
    }
  } else {
    cresset_load_attribute(owner, name, 1, NULL, &found);
  }
  owner = TOP();
  if (LIKELY(found.value != NULL)) {
    if (found.unbound) {
      TOP() = found.value;
      PUSH(owner);
    } else {
      sp--;
      PUSH_CALLABLE(found.value);
      Py_DECREF(owner);
    }
    NEXT();
  }
  if (found.python == NULL) goto error;
  callable = found.python;
  implicit_args[0] = owner;
  implicit_args[1] = name;
  call_nargs = 1 + found.with_name;
  call_base = sp - 1;
  then = CRESSET_THEN_ATTRIBUTE;
  then_operand = 4 * name_index + 2 + found.then_missing;
  then_value = Py_NewRef(owner);
  goto implicit_call_owned;
}

// Reports the look-up of a descriptor in the owner's class, before the descriptor runs.
#define TELL_CHANGER()                                                           \
  do {                                                                           \
    const CressetAttributeRead looked_up_ = {.owner = (PyObject*)Py_TYPE(owner), \
                                             .name = name,                       \
                                             .value = changer.found,             \
                                             .found = changer.found,             \
                                             .place = CRESSET_AT_CLASS};         \
    if (changer.found != NULL) TELL(read_attribute, &looked_up_);                \
  } while (0)

OP(STORE_ATTR) {
  PyObject* owner = TOP();
  PyObject* name = PyTuple_GET_ITEM(names, oparg);
  if (Py_TYPE(SECOND()) == cresset_string_type && cresset_is_set_by_c(owner, name)) LOOK_AT_STRING(SECOND());
  PyObject* value = SECOND();
  SKIP(CACHES(STORE_ATTR));
  if (hooks->before_write == NULL && hooks->after_write == NULL && cresset_replace_attribute(owner, name, value)) {
    sp -= 2;
    Py_DECREF(value);
    Py_DECREF(owner);
    NEXT();
  }
  CressetChanger changer;
  if (cresset_find_changer(owner, name, 0, 0, &changer)) {
    TELL_CHANGER();
    callable = Py_NewRef(changer.function);
    implicit_args[0] = changer.args[0];
    implicit_args[1] = changer.args[1];
    implicit_args[changer.count] = value;
    call_nargs = changer.count + 1;
    call_base = sp - 2;
    then = CRESSET_THEN_DROP;
    then_value = NULL;
    goto implicit_call_owned;
  }
  const CressetWrite write = {CRESSET_WRITE_ATTRIBUTE, owner, name, value, 0};
  if (LIKELY(hooks->before_write != NULL)) {
    int reported;
    ASK(reported, before_write, &write);
    if (UNLIKELY(reported < 0)) goto error;
    if (reported == CRESSET_WRITE_AS_CALL) {
      callable = cresset_polyfills.assign;
      implicit_args[0] = owner;
      implicit_args[1] = name;
      implicit_args[2] = value;
      call_nargs = 3;
      call_base = sp - 2;
      then = CRESSET_THEN_DROP;
      then_value = NULL;
      goto implicit_call;
    }
  }
  const int failed = PyObject_SetAttr(owner, name, value);
  if (failed == 0) TELL(after_write, &write);
  DROP(2);
  if (failed) goto error;
  NEXT();
}

OP(DELETE_ATTR) {
  PyObject* owner = TOP();
  PyObject* name = PyTuple_GET_ITEM(names, oparg);
  CressetChanger changer;
  if (cresset_find_changer(owner, name, 1, 0, &changer)) {
    TELL_CHANGER();
    callable = Py_NewRef(changer.function);
    implicit_args[0] = changer.args[0];
    implicit_args[1] = changer.args[1];
    call_nargs = changer.count;
    call_base = sp - 1;
    then = CRESSET_THEN_DROP;
    then_value = NULL;
    goto implicit_call_owned;
  }
  const CressetWrite write = {CRESSET_WRITE_ATTRIBUTE, owner, name, NULL, 0};
  TELL(before_write, &write);
  const int failed = PyObject_SetAttr(owner, name, NULL);
  if (failed == 0) TELL(after_write, &write);
  DROP(1);
  if (failed) goto error;
  NEXT();
}
