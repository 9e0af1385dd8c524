// torch's own controls of its compiler, which hold for cresset's calls too: torch.compiler.set_stance, torch.compiler.
// reset and torch._dynamo.error_on_graph_break. All of them import torch's compiler and keep their state there. cresset
// reads this state and never imports the compiler.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

#include "base/break_reason.h"
#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

// The values of torch.compiler.set_stance().
enum class Stance : uint8_t {
  Default,
  ForceEager,           // all compiled functions run eagerly
  EagerOnRecompile,     // a call which no cache entry serves runs eagerly
  FailOnRecompile,      // such a call raises
  EagerThenCompile,     // the first such call runs eagerly
  AotEagerThenCompile,  // cresset: as EagerThenCompile
  Invalid,              // torch accepts any string, and reports it at the next call of a compiled function
};

struct TorchControls {
  Stance stance = Stance::Default;
  bool skips_guards = false;    // skip_guard_eval_unsafe: the user promises that no call recompiles
  PyObject* backend = nullptr;  // force_backend; borrowed; nullptr: none
  PyRef object;                 // torch's stance object
  uint64_t resets = 0;          // by torch.compiler.reset(), as far as they were seen
  bool is_default() const { return stance == Stance::Default && !skips_guards && backend == nullptr; }
};

// The controls now. The question costs two look-ups in dictionaries.
const TorchControls& torch_controls();

// Whether torch._dynamo.error_on_graph_break(True) holds now.
bool graph_breaks_are_errors();
inline constexpr const char* kErrorOnGraphBreak = "torch._dynamo.error_on_graph_break(True)";
void set_graph_break_error(const std::string& function, const BreakReason& why);  // sets CaptureError

}  // namespace cresset::frontend
