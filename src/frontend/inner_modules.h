// What runs natively, a call as a whole or the rest of one, compiles the modules that it calls: each on its own, for
// the function that runs. A model that a program calls again and again, in a loop of which no piece can be made, is
// compiled so; one that is called once is not.
#pragma once

#include <Python.h>

#include <cstdint>
#include <unordered_map>

#include "frontend/py_ref.h"

namespace cresset::frontend {

class CompiledFunction;
struct CompileOptions;

// Those of one compiled function. Under the GIL.
class InnerModules {
 public:
  // What is to be called in the place of call(module); empty: nothing.
  PyRef compiled(PyObject* call, PyObject* module, const CompileOptions& options);
  // When the function begins to run natively. What it has not called for long is let go of.
  void begin_rest();
  int visit(visitproc visit, void* arg) const;
  void clear();

 private:
  struct Known {
    PyRef reference;   // a weak one, to the module
    PyRef compiled;    // a CompiledFunction; empty until the module is called again
    int64_t rest = 0;  // of the function's, in which it was last called
  };
  std::unordered_map<PyObject*, Known> known_;  // by the module's address
  int64_t rests_ = 0;
};

// For as long as it lives, this thread runs Python code natively for a function.
class NativeRest {
 public:
  // of_capture: of a call that is captured, and has ended to be (OutOfCapture).
  explicit NativeRest(CompiledFunction& of, bool of_capture = false);
  ~NativeRest();
  NativeRest(const NativeRest&) = delete;
  static bool in_capture();  // whether the one that is innermost in this thread is of a capture

 private:
  CompiledFunction* const around_;
  const bool capture_around_;
  bool watches_ = false;
};

// For as long as it lives, this thread runs for nobody: compiled code, a capture, what was timed and found faster so.
class NoNativeRest {
 public:
  NoNativeRest();
  ~NoNativeRest();
  NoNativeRest(const NoNativeRest&) = delete;

 private:
  CompiledFunction* const around_;
  const bool capture_around_;
};

// The function for whom this thread runs natively, as a number; another takes its place. For cresset.disable.
uintptr_t exchange_native_rest(uintptr_t other);

}  // namespace cresset::frontend
