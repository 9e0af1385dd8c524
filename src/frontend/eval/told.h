// Names whose reads need not be reported to a hook again (CRESSET_READ_TOLD), by the instruction that reads them. An
// unchanged dictionary gives the same value, so neither dictionary nor hook is asked. Under the GIL, for all threads.
#pragma once

#include "frontend/eval/cpython.h"
#include "frontend/eval/hooks.h"

typedef struct {
  uint64_t told;  // CressetEvalHooks::told, unique to a graph segment
  const void* at;
  uint64_t version, outer_version;
  PyObject* name;   // owned: another string may be allocated at its address
  PyObject* value;  // borrowed from the dictionary
} ToldName;

enum { kToldNames = 2048 };
extern ToldName cresset_told[kToldNames];
void cresset_told_init(void);  // once, before any other use

// The version of a dictionary; 0: it may change unseen. See dict_version() in py_objects.h.
static inline uint64_t told_version(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030E0000
  (void)dict;
  return 0;
#else
  if (dict == NULL || !PyDict_CheckExact(dict) || ((PyDictObject*)dict)->ma_values != NULL)
    return 0;  // NULL: a module before __init__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return ((PyDictObject*)dict)->ma_version_tag;
#pragma GCC diagnostic pop
#endif
}

static inline ToldName* told_place(const void* at) { return &cresset_told[((uintptr_t)at >> 1) % kToldNames]; }

// The value read by the instruction under the name, borrowed; NULL: the name must be read and reported.
// outer_version: the version of the builtins; 0 where the builtins are not searched.
static inline PyObject* told_value(const CressetEvalHooks* hooks, const void* at, PyObject* name, uint64_t version,
                                   uint64_t outer_version) {
  const ToldName* known = told_place(at);
  if (known->at != at || known->told != hooks->told || known->version != version || known->name != name ||
      known->outer_version != outer_version || version == 0)
    return NULL;
  return known->value;
}

static inline void remember_told(const CressetEvalHooks* hooks, const void* at, PyObject* name, uint64_t version,
                                 uint64_t outer_version, PyObject* value) {
  if (hooks->told == 0 || version == 0) return;
  ToldName* known = told_place(at);
  Py_XSETREF(known->name, Py_NewRef(name));
  *known = (ToldName){hooks->told, at, version, outer_version, known->name, value};
}
