// Saves the pending Python exception, and the evaluation of frames, while other code runs.
#pragma once

#include "frontend/cpython/not_evaluated.h"
#include "frontend/eval/hooks.h"
#include "frontend/values/symbols.h"

namespace cresset::frontend {

class SavedError {
 public:
  SavedError() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~SavedError() { PyErr_Restore(type_, value_, trace_); }
  SavedError(const SavedError&) = delete;
  void remove_symbols() {
    PyErr_NormalizeException(&type_, &value_, &trace_);
    without_symbols(PyRef::borrow(value_));  // also in its notes and in its cause
    auto* exception = (PyBaseExceptionObject*)value_;
    PyRef args = with_plain_names(PyRef::borrow(exception->args));
    if (args.get() == exception->args) return;
    PyObject* old = std::exchange(exception->args, args.release());
    Py_DECREF(old);
  }

 private:
  PyObject *type_, *value_, *trace_;
};

// A pending error saved for longer: restore() makes it pending again, or it is dropped.
class PendingError {
 public:
  PendingError() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    type_ = PyRef::steal(type), value_ = PyRef::steal(value), trace_ = PyRef::steal(trace);
  }
  PyRef normalized() {  // the exception with its traceback; clears the saved error
    PyObject *type = type_.release(), *value = value_.release(), *trace = trace_.release();
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != nullptr) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return PyRef::steal(value);
  }
  void restore() { PyErr_Restore(type_.release(), value_.release(), trace_.release()); }

 private:
  PyRef type_, value_, trace_;
};

}  // namespace cresset::frontend
