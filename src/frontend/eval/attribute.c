// Attribute look-up, which reports the place of the value and stops where Python code would have to run.
#include "frontend/eval/binders.h"
#include "frontend/eval/class_version.h"
#include "frontend/eval/helpers.h"
#include "frontend/eval/known.h"

// The layout of CPython's property objects.
typedef struct {
  PyObject_HEAD PyObject* get;
  PyObject* set;
  PyObject* del;
} PropertyObject;

// The index of an interned name among the shared keys of a class's instances; -1 if it is missing. Names of attribute
// instructions are interned, and so are the keys, so identity decides.
static Py_ssize_t shared_index(PyDictKeysObject* keys, PyObject* name) {
  if (keys->dk_kind == DICT_KEYS_GENERAL) return -1;
  const PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(keys);
  for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
    if (entries[i].me_key == name) return i;
  }
  return -1;
}

PyObject* cresset_eval_item(PyObject* dict, PyObject* name) {
  enum { kNames = 1024, kMostKeys = 64 };
  static uint8_t places[kNames];  // the last position of a name; under the GIL
  PyDictKeysObject* keys = ((const PyDictObject*)dict)->ma_keys;
  if (keys->dk_kind == DICT_KEYS_GENERAL) return PyDict_GetItemWithError(dict, name);
  const PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(keys);
  uint8_t* place = &places[((uintptr_t)name >> 4) % kNames];
  if (*place < keys->dk_nentries && entries[*place].me_key == name) {
    const PyDictValues* values = ((const PyDictObject*)dict)->ma_values;
    return values != NULL ? values->values[*place] : entries[*place].me_value;
  }
  PyObject* value = PyDict_GetItemWithError(dict, name);
  if (value == NULL || keys->dk_nentries > kMostKeys) return value;
  const Py_ssize_t found = shared_index(keys, name);
  if (found >= 0) *place = (uint8_t)found;
  return value;
}

// The value of an interned name in the instance's own dictionary or inline values, borrowed; NULL if missing. Does not
// create the dictionary.
static PyObject* instance_value(PyObject* owner, PyObject* name) {
  PyTypeObject* type = Py_TYPE(owner);
  PyObject* dict = NULL;
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
    const PyDictValues* values = inline_values(owner);
    if (values != NULL) {
      const Py_ssize_t index = shared_index(((PyHeapTypeObject*)type)->ht_cached_keys, name);
      return index < 0 ? NULL : values->values[index];
    }
    dict = managed_dict(owner);
  } else if (type->tp_dictoffset != 0) {
    PyObject** place = _PyObject_GetDictPtr(owner);
    dict = place != NULL ? *place : NULL;
  }
  if (dict == NULL) return NULL;
  return cresset_eval_item(dict, name);
}

static PyTypeObject* holder_in(PyTypeObject* type, PyObject* name, PyObject* found) {
  PyObject* mro = type->tp_mro;
  for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
    PyTypeObject* base = (PyTypeObject*)PyTuple_GET_ITEM(mro, i);
    if (PyDict_GetItemWithError(type_names(base), name) == found) return base;
  }
  PyErr_Clear();
  return NULL;
}

typedef struct {
  PyObject_HEAD PyTypeObject* type;
  PyObject* object;
  PyTypeObject* object_type;
} SuperObject;

PyTypeObject* cresset_super_class(PyObject* super) { return ((const SuperObject*)super)->object_type; }

PyTypeObject* cresset_attribute_holder(const CressetAttributeRead* read) {
  if (read->found == NULL) return NULL;
  PyTypeObject* type = Py_TYPE(read->owner);
  if (read->place == CRESSET_AT_SUPER) type = ((const SuperObject*)read->owner)->object_type;
  if (read->place == CRESSET_AT_CLASS) type = (PyTypeObject*)read->owner;
  PyObject* const names[] = {read->name, cresset_names.__getattr__, cresset_names.__getattribute__};
  for (int i = 0; i < 3; i++) {
    PyTypeObject* holder = holder_in(type, names[i], read->found);
    if (holder != NULL) return holder;
  }
  return NULL;
}

static void set_found(CressetAttributeRead* read, PyObject* found, CressetAttributePlace place) {
  if (read == NULL) return;
  read->place = place;
  read->found = found;
}

static void give(AttributeResult* result, CressetAttributeRead* read, PyObject* value) {
  result->value = value;
  if (read == NULL) return;
  read->value = value;
  if (value == NULL && read->place != CRESSET_AT_PYTHON) {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_AttributeError)) read->place = CRESSET_AT_NOWHERE;
  }
}

static void stop_at_python(AttributeResult* result, CressetAttributeRead* read, PyObject* found, PyObject* function,
                           int with_name) {
  set_found(read, found, CRESSET_AT_PYTHON);
  result->python = Py_NewRef(function);
  result->with_name = with_name;
}

static CressetAttributePlace descriptor_place(PyObject* descriptor) {
  if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return CRESSET_AT_SLOT;
  if (Py_IS_TYPE(descriptor, &PyGetSetDescr_Type)) return CRESSET_AT_GETSET;
  return CRESSET_AT_TYPE;
}

// object.__getattribute__. 1 when nothing was found: no exception is set.
static int load_generic(PyObject* owner, PyObject* name, int method, CressetAttributeRead* read,
                        AttributeResult* result) {
  PyTypeObject* type = Py_TYPE(owner);
  PyObject* found = _PyType_Lookup(type, name);
  descrgetfunc get = NULL;
  if (found != NULL) {
    Py_INCREF(found);
    get = Py_TYPE(found)->tp_descr_get;
    if (get != NULL && PyDescr_IsData(found)) {
      if (Py_IS_TYPE(found, &PyProperty_Type) && ((PropertyObject*)found)->get != NULL &&
          PyFunction_Check(((PropertyObject*)found)->get)) {
        stop_at_python(result, read, found, ((PropertyObject*)found)->get, 0);
      } else {
        set_found(read, found, descriptor_place(found));
        give(result, read, get(found, owner, (PyObject*)type));
      }
      Py_DECREF(found);
      return 0;
    }
  }
  PyObject* own = instance_value(owner, name);
  if (own != NULL) {
    Py_INCREF(own);
    set_found(read, NULL, CRESSET_AT_INSTANCE);
    give(result, read, own);
    Py_XDECREF(found);
    return 0;
  }
  if (found == NULL) return 1;
  set_found(read, found, CRESSET_AT_TYPE);
  if (method && (Py_TYPE(found)->tp_flags & Py_TPFLAGS_METHOD_DESCRIPTOR)) {
    result->unbound = 1;
    if (read != NULL) read->unbound = 1;
    give(result, read, found);
    return 0;
  }
  if (get == NULL) {
    give(result, read, found);
    return 0;
  }
  give(result, read, get(found, owner, (PyObject*)type));
  Py_DECREF(found);
  return 0;
}

void cresset_name_attribute_error(PyObject* owner, PyObject* name) {
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return;
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  if (Py_IS_TYPE(error, (PyTypeObject*)PyExc_AttributeError)) {
    PyAttributeErrorObject* attribute = (PyAttributeErrorObject*)error;
    if (attribute->name == NULL && attribute->obj == NULL) {
      attribute->name = Py_NewRef(name);
      attribute->obj = Py_NewRef(owner);
    }
  }
  PyErr_Restore(type, error, traceback);
}

static void no_attribute(PyObject* owner, PyObject* name) {
  PyObject* value = PyObject_GenericGetAttr(owner, name);  // raises with CPython's own message
  if (value != NULL) {                                     // it was created meanwhile
    Py_DECREF(value);
    PyErr_SetObject(PyExc_AttributeError, name);
  }
  cresset_name_attribute_error(owner, name);
}

// Whether `all`, the class's __getattribute__, searches the same places as object's. A module may define __getattr__
// too.
static int is_generic(PyObject* owner, PyObject* all) {
  if (all == cresset_known.object_getattribute || all == NULL) return 1;
  if (all != cresset_known.module_getattribute || !PyModule_Check(owner)) return 0;
  PyObject* names = PyModule_GetDict(owner);  // NULL before __init__
  return names == NULL || PyDict_Contains(names, cresset_names.__getattr__) == 0;
}

static PyObject *stores_code, *stores_names;  // owned

void cresset_eval_looks_in_stores(PyObject* code, PyObject* names) {
  Py_XSETREF(stores_code, Py_NewRef(code));
  Py_XSETREF(stores_names, Py_NewRef(names));
}

PyObject* cresset_eval_stores(void) { return stores_names; }

static int looks_in_stores(PyTypeObject* type, PyObject* missing) {
  const PyFunctionObject* function = (PyFunctionObject*)missing;
  if (function->func_code != stores_code || function->func_closure != NULL) return 0;
  if (function->func_dict != NULL && PyDict_GET_SIZE(function->func_dict) != 0) return 0;
  if (is_watched(PyThreadState_Get(), (PyCodeObject*)stores_code)) return 0;
  PyObject* dict = _PyType_Lookup(type, cresset_names.__dict__);
  return dict != NULL && Py_IS_TYPE(dict, &PyGetSetDescr_Type);
}

// The value found by a __getattr__ over stores, a new reference. NULL: the function must be evaluated.
static PyObject* in_stores(PyObject* owner, PyObject* name, PyObject* missing, int* looked_in) {
  if (stores_code == NULL || !looks_in_stores(Py_TYPE(owner), missing)) return NULL;
  PyObject* dict = PyObject_GenericGetDict(owner, NULL);
  PyObject* found = NULL;
  for (*looked_in = 0; dict != NULL && found == NULL && *looked_in < PyTuple_GET_SIZE(stores_names);) {
    PyObject* store = cresset_eval_item(dict, PyTuple_GET_ITEM(stores_names, (*looked_in)++));
    if (store == NULL) continue;
    // Comparing keys other than plain strings may run Python code.
    if (!PyDict_CheckExact(store) || ((PyDictObject*)store)->ma_keys->dk_kind == DICT_KEYS_GENERAL) break;
    found = Py_XNewRef(cresset_eval_item(store, name));
  }
  Py_XDECREF(dict);
  if (found == NULL) PyErr_Clear();
  return found;
}

// The size is a quick test: instances of most classes are smaller than a module.
static int is_module(PyObject* owner) {
  return Py_TYPE(owner)->tp_basicsize >= PyModule_Type.tp_basicsize && PyModule_Check(owner);
}

// The class's __getattribute__, borrowed. The last result is reused while the class keeps its version.
static PyObject* getattribute_of(PyTypeObject* type) {
  typedef struct {
    unsigned version;
    PyObject* function;
  } Known;
  enum { kClasses = 64 };
  static Known all[kClasses];  // under the GIL
  const unsigned version = cresset_class_version(type);
  Known* known = &all[version % kClasses];
  if (version != 0 && known->version == version) return known->function;
  PyObject* function = _PyType_Lookup(type, cresset_names.__getattribute__);  // assigns the class a version
  if (version != 0) *known = (Known){version, function};
  return function;
}

// A class with __getattr__ or __getattribute__ in Python.
static void load_hooked(PyObject* owner, PyObject* name, int method, CressetAttributeRead* read,
                        AttributeResult* result) {
  PyTypeObject* type = Py_TYPE(owner);
  PyObject* all = getattribute_of(type);
  PyObject* missing;
  if (is_generic(owner, all)) {
    const int nothing = load_generic(owner, name, method, read, result);
    if (result->value != NULL) {  // __getattr__ is not needed
      if (read != NULL && read->place == CRESSET_AT_INSTANCE && is_module(owner)) read->place = CRESSET_AT_MODULE;
      return;
    }
    PyObject *raised = NULL, *value = NULL, *traceback = NULL;
    if (nothing == 0 && result->python == NULL) {
      // A descriptor with an AttributeError asks __getattr__ too. The look-up in classes drops the exception, so it
      // is saved.
      if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return;
      PyErr_Fetch(&raised, &value, &traceback);
    }
    missing = _PyType_Lookup(type, cresset_names.__getattr__);
    if (nothing == 0 && (missing == NULL || result->python != NULL)) {
      if (raised != NULL) PyErr_Restore(raised, value, traceback);
      result->then_missing = missing != NULL;
      return;
    }
    Py_XDECREF(raised);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    if (missing != NULL && PyFunction_Check(missing)) {
      int looked_in = 0;
      PyObject* stored = in_stores(owner, name, missing, &looked_in);
      if (stored == NULL) {
        stop_at_python(result, read, missing, missing, 1);
        return;
      }
      set_found(read, missing, CRESSET_AT_PYTHON);
      if (read != NULL) read->stores = (uint8_t)looked_in;
      give(result, read, stored);
      return;
    }
  } else if (PyFunction_Check(all) && _PyType_Lookup(type, cresset_names.__getattr__) == NULL) {
    stop_at_python(result, read, all, all, 1);
    return;
  }
  if (read != NULL) read->place = CRESSET_AT_FOREIGN;
  give(result, read, PyObject_GetAttr(owner, name));
}

static void place_of_class_attribute(PyTypeObject* owner, CressetAttributeRead* read) {
  PyObject* meta = _PyType_Lookup(Py_TYPE(owner), read->name);
  if (meta != NULL && Py_TYPE(meta)->tp_descr_get != NULL && PyDescr_IsData(meta)) {
    set_found(read, meta, descriptor_place(meta));
    return;
  }
  PyObject* own = _PyType_Lookup(owner, read->name);
  if (own != NULL) {
    set_found(read, own, CRESSET_AT_CLASS);
  } else {
    set_found(read, meta, CRESSET_AT_TYPE);
  }
}

static void place_of_super_attribute(PyObject* owner, CressetAttributeRead* read) {
  const SuperObject* self = (const SuperObject*)owner;
  read->place = CRESSET_AT_SUPER;
  PyObject* mro = self->object_type != NULL ? self->object_type->tp_mro : NULL;
  if (mro == NULL) return;
  int behind = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
    PyTypeObject* base = (PyTypeObject*)PyTuple_GET_ITEM(mro, i);
    if (behind) {
      PyObject* found = PyDict_GetItemWithError(type_names(base), read->name);
      if (found != NULL) {
        read->found = found;
        return;
      }
    }
    behind |= base == self->type;
  }
}

enum { kMostBinders = 16 };
static PyTypeObject* binders[kMostBinders];  // owned; under the GIL
static PyTypeObject* bound_by;               // likewise
static int binder_count;

void cresset_eval_binds_names(PyTypeObject* type, PyTypeObject* caches) {
  if (binder_count == kMostBinders) return;
  binders[binder_count++] = (PyTypeObject*)Py_NewRef(type);
  Py_XSETREF(bound_by, (PyTypeObject*)Py_NewRef(caches));
}

static int binds_names(const PyTypeObject* type) {
  for (int i = 0; i < binder_count; ++i)
    if (binders[i] == type) return 1;
  return 0;
}

// Binds the name at its first read: from now on the instance has it. The program's own read reports a missing name.
void cresset_eval_bind(PyObject* owner, PyObject* name) {
  if (!binds_names(Py_TYPE(owner)) || !PyUnicode_Check(name)) return;
  PyObject* found = _PyType_Lookup(Py_TYPE(owner), name);
  if (found != NULL && !Py_IS_TYPE(found, bound_by)) return;
  PyObject* names = PyObject_GenericGetDict(owner, NULL);
  const int is_known = names != NULL ? PyDict_Contains(names, name) : -1;
  Py_XDECREF(names);
  if (is_known == 0) {
    cresset_eval_pause();
    Py_XDECREF(PyObject_GetAttr(owner, name));
    cresset_eval_unpause();
  }
  PyErr_Clear();
}

static void find_place(PyObject* owner, CressetAttributeRead* read) {
  getattrofunc load = Py_TYPE(owner)->tp_getattro;
  if (load == cresset_known.module_getattr) {
    PyObject* value = PyDict_GetItemWithError(PyModule_GetDict(owner), read->name);
    read->place = value != NULL ? CRESSET_AT_MODULE : CRESSET_AT_FOREIGN;
  } else if (load == cresset_known.type_getattr) {
    place_of_class_attribute((PyTypeObject*)owner, read);
  } else if (load == cresset_known.super_getattr) {
    place_of_super_attribute(owner, read);
  } else {
    read->place = CRESSET_AT_FOREIGN;
  }
}

void cresset_load_attribute(PyObject* owner, PyObject* name, int method, CressetAttributeRead* read,
                            AttributeResult* result) {
  *result = (AttributeResult){0};
  if (read != NULL) *read = (CressetAttributeRead){.owner = owner, .name = name};
  if (read != NULL) cresset_eval_bind(owner, name);
  getattrofunc load = Py_TYPE(owner)->tp_getattro;
  if (load == PyObject_GenericGetAttr) {
    if (load_generic(owner, name, method, read, result) == 0) {
      if (result->value == NULL && result->python == NULL) cresset_name_attribute_error(owner, name);
      return;
    }
    no_attribute(owner, name);
    give(result, read, NULL);
  } else if (load == cresset_known.getattr || load == cresset_known.getattribute) {
    load_hooked(owner, name, method, read, result);
  } else {
    if (read != NULL) find_place(owner, read);
    give(result, read, PyObject_GetAttr(owner, name));
  }
}

// The program's function for `method` in the class of the descriptor.
static PyObject* python_method(PyObject* descriptor, PyObject* method) {
  PyTypeObject* type = Py_TYPE(descriptor);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type->tp_descr_set == NULL) return NULL;
  PyObject* found = _PyType_Lookup(type, method);
  return found != NULL && PyFunction_Check(found) ? found : NULL;
}

static int descriptor_changer(PyObject* owner, PyObject* name, int deletes, CressetChanger* changer) {
  PyObject* found = _PyType_Lookup(Py_TYPE(owner), name);
  if (found == NULL) return 0;
  PyObject* function;
  if (Py_IS_TYPE(found, &PyProperty_Type)) {
    function = deletes ? ((const PropertyObject*)found)->del : ((const PropertyObject*)found)->set;
    *changer = (CressetChanger){.found = found, .args = {owner}, .count = 1};
  } else {
    function = python_method(found, deletes ? cresset_names.__delete__ : cresset_names.__set__);
    *changer = (CressetChanger){.found = found, .args = {found, owner}, .count = 2};
  }
  changer->function = function;
  return function != NULL && PyFunction_Check(function);
}

int cresset_find_changer(PyObject* owner, PyObject* name, int deletes, int by_object, CressetChanger* changer) {
  PyTypeObject* type = Py_TYPE(owner);
  if (by_object || type->tp_setattro == PyObject_GenericSetAttr || type->tp_setattro == PyType_Type.tp_setattro)
    return descriptor_changer(owner, name, deletes, changer);
  if (type->tp_setattro != cresset_known.setattr) return 0;
  PyObject* method = deletes ? cresset_names.__delattr__ : cresset_names.__setattr__;
  PyObject* function = _PyType_Lookup(type, method);
  if (function == NULL) return 0;
  if (function == _PyType_Lookup(&PyBaseObject_Type, method) || function == _PyType_Lookup(&PyType_Type, method))
    return descriptor_changer(owner, name, deletes, changer);  // the class defines the other one
  *changer = (CressetChanger){.function = function, .args = {owner, name}, .count = 2};
  return PyFunction_Check(function);
}

int cresset_replace_attribute(PyObject* owner, PyObject* name, PyObject* value) {
  PyTypeObject* type = Py_TYPE(owner);
  if (type->tp_setattro != PyObject_GenericSetAttr || !(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) return 0;
  PyDictValues* values = inline_values(owner);
  if (values == NULL || _PyType_Lookup(type, name) != NULL) return 0;
  const Py_ssize_t index = shared_index(((PyHeapTypeObject*)type)->ht_cached_keys, name);
  if (index < 0 || values->values[index] == NULL) return 0;
  PyObject* old = values->values[index];
  values->values[index] = Py_NewRef(value);
  Py_DECREF(old);
  return 1;
}

PyObject* cresset_python_method(PyObject* object, PyObject* name) {
  PyObject* found = _PyType_Lookup(Py_TYPE(object), name);
  return found != NULL && PyFunction_Check(found) ? found : NULL;
}

PyObject* cresset_missing_attribute(PyObject* owner) {
  PyObject* missing = _PyType_Lookup(Py_TYPE(owner), cresset_names.__getattr__);
  return Py_XNewRef(missing);
}
