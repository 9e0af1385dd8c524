// The options of cresset.compile.
#pragma once

#include <cstdint>

#include "compile/compile.h"
#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

struct CompileOptions {
  bool dynamic = true;
  bool auto_dynamic =
      false;  // static at first; automatic dynamic sizes once they varied (frontend/guards/shape_profile.h)
  bool fullgraph = false;
  bool symbolic_numbers = false;  // numbers read from integer tensors stay symbolic; implied by fullgraph
  driver::Options code;
  bool evaluate = false;       // by the bytecode evaluator; else traced: run by CPython on recording tensors
  bool keep_text = false;      // keep the text of the graph, for cresset.explain
  bool keep_rejected = false;  // keep the sizes with which calls raised, for cresset.solve
  bool through_aten = false;   // backend="eager" and "aot_eager": ATen runs each operator, no code is generated
  PyRef guard_filter;          // the user's filter for guards (state_guards.h); empty: keep all guards
  int64_t cache_entry_limit = 64;
  int64_t resume_entry_limit = 64;  // of a resume point between two graph segments
};

inline CompileOptions without_symbols_of(CompileOptions options) {
  options.dynamic = options.auto_dynamic = false;
  return options;
}

}  // namespace cresset::frontend
