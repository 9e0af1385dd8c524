// Functions of torch and Python in whose place the calls of a captured program find others. Nothing is put into their
// modules and classes: a call is known by the identity of what it calls, so that other threads see nothing, and a
// user's replacement, which is another object, is called as it is.
#pragma once

#include <utility>

#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

class Session;

// What to call instead, with the same arguments; empty for others, and in what stands there itself, which calls the
// original.
PyRef substitute_of(const CressetActivation& activation, const CressetCall& call);
bool has_substitute(PyObject* original);

// What torch.compiler.is_compiling() gives to a captured program; nullptr for other calls. Borrowed.
PyObject* answer_to_compiling(const CressetActivation& activation, const CressetCall& call);

// next(counter), of a counter that is no state of the program's: what it gives. Empty for other calls.
PyRef next_of_uncounted(const CressetCall& call);
// Names of torch's modules and classes that are no state of the program's either.
void ignore_bookkeeping(Session& session);

// Until it ends, torch.compiler.is_compiling() is true to the program that this thread captures.
class CompilingFlag {
 public:
  CompilingFlag() { ++depth_; }
  ~CompilingFlag() { end(); }
  CompilingFlag(const CompilingFlag&) = delete;
  // Nothing more will be captured: what follows is done as without us.
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

// For the traced front end, which sees nothing of Python but calls: for as long as it lives, this thread's frames are
// evaluated, and their calls find what stands in the place of others. Nothing where CPython cannot be evaluated.
class SubstitutedCalls {
 public:
  SubstitutedCalls();
  ~SubstitutedCalls();
  SubstitutedCalls(const SubstitutedCalls&) = delete;

 private:
  CressetEvalHooks hooks_{};
  bool begun_ = false;
};

// For the module. _substitute(original, function[, self]): what is evaluated in the place of a function; self: of the
// method of that object (a class) alone.
PyObject* substitute(PyObject* module, PyObject* args);
// _asks_compiling(function): torch.compiler.is_compiling.
PyObject* asks_compiling(PyObject* module, PyObject* function);
// _exchange_compiling(depth): of this thread, 0 where it is false; what it was.
PyObject* exchange_compiling(PyObject* module, PyObject* depth);
// _bookkeeping(owner, name, is_counter): of a module or a class; a counter's next() is no effect of the program's.
PyObject* bookkeeping(PyObject* module, PyObject* args);

}  // namespace cresset::frontend
