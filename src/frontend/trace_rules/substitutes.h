// Substitutes for functions of torch and Python in calls of a captured program. The modules and classes of torch and
// Python stay unmodified: a call is recognized by the identity of its callable. Other threads are unaffected, and a
// user's replacement, which is another object, is called unchanged.
#pragma once

#include <utility>
#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

// The function to call instead, with the same arguments. Empty for other calls, and inside of the substitute itself,
// which calls the original.
PyRef substitute_of(const CressetActivation& activation, const CressetCall& call);
bool has_substitute(PyObject* original);

// The result of torch.compiler.is_compiling() in a captured program; nullptr for other calls. Borrowed.
PyObject* answer_to_compiling(const CressetActivation& activation, const CressetCall& call);

// The result of next(counter) for a counter which is not program state. Empty for other calls.
PyRef next_of_uncounted(const CressetCall& call);
// Bookkeeping names in torch's modules and classes, which are not program state.
struct Bookkeeping {
  PyObject* owner;
  const char* name;
};
std::vector<Bookkeeping>& bookkeeping_names();

// Makes torch.compiler.is_compiling() true for the program which this thread captures, until it ends.
class CompilingFlag {
 public:
  CompilingFlag() { ++depth_; }
  ~CompilingFlag() { end(); }
  CompilingFlag(const CompilingFlag&) = delete;
  // Called when nothing more will be captured: the rest of the call sees is_compiling() as without cresset.
  void end() {
    if (!ended_) --depth_;
    ended_ = true;
  }
  static bool is_set() { return depth_ > 0; }
  static int exchange(int depth) { return std::exchange(depth_, depth); }  // of this thread

 private:
  static thread_local int depth_;
  bool ended_ = false;
};

// For the traced front end, which intercepts only calls. During its lifetime this thread's frames are evaluated, and
// their calls reach the substitutes. Does nothing when the CPython version is not supported.
class SubstitutedCalls {
 public:
  SubstitutedCalls();
  ~SubstitutedCalls();
  SubstitutedCalls(const SubstitutedCalls&) = delete;

 private:
  CressetEvalHooks hooks_{};
  bool begun_ = false;
};

// Module functions: _substitute(original, function[, self]) registers a substitute. self: only for the method of this
// object (a class).
PyObject* substitute(PyObject* module, PyObject* args);
// _asks_compiling(function): registers torch.compiler.is_compiling.
PyObject* asks_compiling(PyObject* module, PyObject* function);
// _exchange_compiling(depth): sets the depth of this thread, 0 for false, and returns the old depth.
PyObject* exchange_compiling(PyObject* module, PyObject* depth);
// _bookkeeping(owner, name, is_counter): name of a module or a class; next() of a counter is not a side effect of the
// program.
PyObject* bookkeeping(PyObject* module, PyObject* args);

}  // namespace cresset::frontend
