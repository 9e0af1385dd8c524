// Compilation of modules which are called during an eager fallback or an eager call. Each module is compiled on its
// own, for the function which runs. This serves models which a program calls repeatedly, in a loop which cannot be
// captured. A module which is called once is not compiled.
#pragma once

#include <Python.h>

#include <cstdint>
#include <unordered_map>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

class CompiledFunction;
struct CompileOptions;

// The inner modules of a compiled function. Under the GIL.
class InnerModules {
 public:
  // The callable which replaces call(module); empty: no replacement.
  PyRef compiled(PyObject* call, PyObject* module, const CompileOptions& options);
  // Called when the function begins to run in CPython. Modules which were not called for a long time are released.
  void begin_fallback();
  int visit(visitproc visit, void* arg) const;
  void clear();

 private:
  struct Known {
    PyRef reference;   // a weak reference to the module
    PyRef compiled;    // a CompiledFunction; empty until the module is called again
    int64_t rest = 0;  // the function's last fallback which called the module
  };
  std::unordered_map<PyObject*, Known> known_;  // by the module's address
  int64_t rests_ = 0;
};

// Marks this thread, during its lifetime, as running Python code in CPython for a function.
class NativeRest {
 public:
  // of_capture: the fallback belongs to a call whose capture has ended (OutOfCapture).
  explicit NativeRest(CompiledFunction& of, bool of_capture = false);
  ~NativeRest();
  NativeRest(const NativeRest&) = delete;
  static bool in_capture();  // whether the innermost fallback of this thread belongs to a capture

 private:
  CompiledFunction* const around_;
  const bool capture_around_;
  bool watches_ = false;
};

// Clears the mark during its lifetime: for compiled code, for a capture, and for a call which tuning found faster in
// eager mode.
class NoNativeRest {
 public:
  NoNativeRest();
  ~NoNativeRest();
  NoNativeRest(const NoNativeRest&) = delete;

 private:
  CompiledFunction* const around_;
  const bool capture_around_;
};

// Exchanges the function for which this thread runs in CPython, passed as a number. For cresset.disable.
uintptr_t exchange_eager_fallback(uintptr_t other);

}  // namespace cresset::frontend
