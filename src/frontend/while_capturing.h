// What holds while something is captured: its time, what stands in classes of torch.
#pragma once

#include <Python.h>

#include <chrono>
#include <utility>

#include "frontend/py_objects.h"
#include "frontend/session.h"
#include "frontend/set_aside.h"

namespace cresset::frontend {

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What capturing takes: neither compiling, nor what runs for real while no piece is open.
class CaptureTime {
 public:
  void go() {
    if (began_ == 0) began_ = now_ms();
  }
  void stop() {
    if (began_ != 0) ms_ += now_ms() - std::exchange(began_, 0);
  }
  double ms() const { return ms_; }

 private:
  double began_ = 0, ms_ = 0;
};

// Replacements of the module cresset._capture_patches, for as long as something is captured.
class Replacements {
 public:
  explicit Replacements(Session* session) : module_(import_module("cresset._capture_patches")) {
    remove_ = checked(PyObject_CallMethod(module_.get(), "install", nullptr));
    if (session == nullptr) return;
    const PyRef rows = checked(PyObject_GetAttrString(module_.get(), "_REPLACED"));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows.get()); ++i) {
      PyObject *row = PyList_GET_ITEM(rows.get(), i), *where = PyTuple_GET_ITEM(row, 0);
      PyObject* const of = PyModule_Check(where) ? PyModule_GetDict(where) : where;
      session->ignore(of, PyUnicode_AsUTF8(PyTuple_GET_ITEM(row, 1)));
    }
  }
  ~Replacements() {
    const SetAside pending;
    PyRef::steal(PyObject_CallNoArgs(remove_.get()));
    PyErr_Clear();
  }

 private:
  PyRef module_, remove_;
};

}  // namespace cresset::frontend
