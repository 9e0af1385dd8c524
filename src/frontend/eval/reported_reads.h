// Names whose reads need not be reported to a hook again (CRESSET_REPORTED), by the instruction that reads them. An
// unchanged dictionary gives the same value, so neither dictionary nor hook is asked. Under the GIL, for all threads.
#pragma once

#include "frontend/eval/cpython.h"
#include "frontend/eval/hooks.h"

typedef struct {
  uint64_t reported;  // CressetEvalHooks::told, unique to a graph segment
  const void* at;
  uint64_t version, outer_version;
  PyObject* name;   // owned: another string may be allocated at its address
  PyObject* value;  // borrowed from the dictionary
} ReportedName;

enum { kReportedNames = 2048 };
extern ReportedName cresset_reported[kReportedNames];
void cresset_reported_init(void);  // once, before any other use

// The version of a dictionary; 0: it may change unseen. See dict_version() in py_objects.h.
static inline uint64_t reported_version(PyObject* dict) {
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

static inline ReportedName* reported_place(const void* at) {
  return &cresset_reported[((uintptr_t)at >> 1) % kReportedNames];
}

// The value read by the instruction under the name, borrowed; NULL: the name must be read and reported.
// outer_version: the version of the builtins; 0 where the builtins are not searched.
static inline PyObject* reported_value(const CressetEvalHooks* hooks, const void* at, PyObject* name, uint64_t version,
                                       uint64_t outer_version) {
  const ReportedName* known = reported_place(at);
  if (known->at != at || known->reported != hooks->reported || known->version != version || known->name != name ||
      known->outer_version != outer_version || version == 0)
    return NULL;
  return known->value;
}

static inline void remember_reported(const CressetEvalHooks* hooks, const void* at, PyObject* name, uint64_t version,
                                     uint64_t outer_version, PyObject* value) {
  if (hooks->reported == 0 || version == 0) return;
  ReportedName* known = reported_place(at);
  Py_XSETREF(known->name, Py_NewRef(name));
  *known = (ReportedName){hooks->reported, at, version, outer_version, known->name, value};
}
