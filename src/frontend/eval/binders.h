// Objects that bind their names when somebody looks at them (cresset_eval_binds_names): torch.ops and what is found
// there.
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

// Instances of this very type look a name up once, natively, and keep what they found under that name, by __getattr__
// or by descriptors of the type `caches` (torch.ops, and what is found there): that is no write of the program's.
void cresset_eval_binds_names(PyTypeObject* type, PyTypeObject* caches);
// Has such an object bind the name, natively, if it has not; nothing of others. Sets no exception.
void cresset_eval_bind(PyObject* owner, PyObject* name);

#ifdef __cplusplus
}
#endif
