// Hooks for tests, which record their calls.
#pragma once

#include <Python.h>

PyObject* cresset_eval_record(PyObject* self, PyObject* const* args, Py_ssize_t nargs);
PyObject* cresset_eval_break_at(PyObject* self, PyObject* const* args, Py_ssize_t nargs);
PyObject* cresset_eval_leave_at(PyObject* self, PyObject* const* args, Py_ssize_t nargs);
PyObject* cresset_eval_replace(PyObject* self, PyObject* const* args, Py_ssize_t nargs);  // replace.c
