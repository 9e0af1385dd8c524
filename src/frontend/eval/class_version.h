// The version of a class, unique among all classes: knowledge about a class stays valid while its version stays.
#pragma once

#include <Python.h>

// 0: no version now; the class may change unseen. Looking a name up assigns a version, while versions are left.
static inline unsigned cresset_class_version(const PyTypeObject* type) {
  return (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) != 0 ? type->tp_version_tag : 0;
}
