// Ownership of Python objects in the type system: PyRef owns a reference, a plain PyObject* parameter is borrowed.
#pragma once

#include <Python.h>

#include <utility>

namespace cresset::frontend {

class PyRef {
 public:
  PyRef() = default;
  static PyRef steal(PyObject* object) { return PyRef(object); }
  static PyRef borrow(PyObject* object) {
    Py_XINCREF(object);
    return PyRef(object);
  }
  PyRef(const PyRef& other) : object_(other.object_) { Py_XINCREF(object_); }
  PyRef(PyRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  PyRef& operator=(PyRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit PyRef(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

// A Python exception is set; the C++ exception unwinds to the C API boundary.
struct PythonError {};

inline PyRef checked(PyObject* new_reference) {
  if (new_reference == nullptr) throw PythonError{};
  return PyRef::steal(new_reference);
}

class GilHeld {
 public:
  GilHeld() : state_(PyGILState_Ensure()) {}
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace cresset::frontend
