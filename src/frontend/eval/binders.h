// Objects that bind a name at its first use (cresset_eval_binds_names): torch.ops and its namespaces.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Instances of exactly this type look a name up once, natively, and keep the value under the name. They use __getattr__
// or descriptors of the type `caches` (torch.ops and its namespaces). The binding is no write of the program.
void cresset_eval_binds_names(PyTypeObject* type, PyTypeObject* caches);
// Makes an object of a registered type bind the name natively; does nothing for any other object. Sets no exception.
void cresset_eval_bind(PyObject* owner, PyObject* name);

#ifdef __cplusplus
}
#endif
