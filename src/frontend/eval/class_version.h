// The version of a class, which no other class gets: what is said of a class holds for as long as it has it.
#pragma once

#include <Python.h>

// 0: none now; it may change unseen. Looking a name up gives a class one, where there are some left.
static inline unsigned cresset_class_version(const PyTypeObject* type) {
  return (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) != 0 ? type->tp_version_tag : 0;
}
