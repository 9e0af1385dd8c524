// cresset._C.CompiledFunction: the callable that cresset.compile returns.
#pragma once

#include <Python.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bridge/entry.h"
#include "frontend/arg_spec.h"
#include "frontend/recipe.h"
#include "frontend/shape_profile.h"
#include "frontend/state_guard.h"

namespace cresset::frontend {

struct CompileOptions {
  bool dynamic = true;
  bool auto_dynamic = false;  // static first; a size is dynamic once it varied (frontend/shape_profile.h)
  bool fullgraph = false;
  driver::Options code;
  bool keep_text = false;  // keep the graph's text, for cresset.explain
  int64_t entry_limit = 64;
};

// One compiled variant: everything a call is checked against, and how its result is made. `entry` is null when the
// function could not be captured for calls of this kind: they run eagerly.
struct Variant {
  TorchState state;
  ArgSpec args, kwargs;
  ModuleGuards modules;
  std::unique_ptr<bridge::Entry> entry;
  Recipe result;
  uint32_t shared_slots = 0;
  sym::SizeProgram numbers;
  size_t symbol_count = 0;
  std::string eager_reason;
  bool raised = false;  // the function raised while captured: nothing is learned from that
};

struct Totals {  // process-wide, for cresset.stats()
  int64_t calls = 0, graphs = 0, graph_breaks = 0, eager_calls = 0;
  int64_t operators_captured = 0, shape_rule_entries = 0, generic_rule_entries = 0, shape_memo_hits = 0, nodes = 0;
  int64_t guards_asked = 0, guards_checked = 0;
  int64_t steps_proved = 0, steps_not_proved = 0;  // CRESSET_VALIDATE=1
  double ms_validation = 0;
  int64_t kernels = 0, distinct_kernels = 0, extern_calls = 0, bytes_planned = 0;
  int64_t programs_from_disk = 0;
  double ms_setup = 0, ms_capture = 0, ms_lowering = 0, ms_codegen = 0, ms_shape_rules = 0;
  std::vector<std::string> recompiles, break_reasons;
};

Totals totals();
Totals& live_totals();  // under the GIL
void reset_totals();

// The callable's state; the Python object holds one.
class CompiledFunction {
 public:
  CompiledFunction(PyObject* function, CompileOptions options) : function_(PyRef::borrow(function)), options_(options) {}

  // New reference, or nullptr with an exception set.
  PyObject* call(PyObject* const* args, size_t nargsf, PyObject* kwnames);

  PyObject* function() const { return function_.get(); }
  void clear_variants();
  const std::vector<std::shared_ptr<Variant>>& variants() const { return variants_; }
  const CompileOptions& options() const { return options_; }
  int visit(visitproc visit, void* arg) const;

 private:
  PyObject* call_eager(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  PyObject* run(Variant& variant, const CallLeaves& leaves, int64_t* symbols, PyObject* args, PyObject* kwargs);
  std::shared_ptr<Variant> find(const TorchState& state, PyObject* args, PyObject* kwargs, CallLeaves& leaves,
                                c10::SmallVectorImpl<int64_t>& symbols, std::string* why);
  std::shared_ptr<Variant> capture(const TorchState& state, PyObject* args, PyObject* kwargs);
  void forget(const std::shared_ptr<Variant>& variant, const bridge::PredictionError& error);
  void learn_varying_ints(PyObject* args, PyObject* kwargs);

  PyRef function_;
  CompileOptions options_;
  std::unique_ptr<ShapeProfile> profile_;  // made at the first capture, with auto_dynamic
  std::vector<std::shared_ptr<Variant>> variants_;  // most recently used first
  std::vector<std::string> varying_ints_;
  bool warned_limit_ = false;
};

// Adds the type to the module.
void add_compiled_function_type(PyObject* module);
PyObject* new_compiled_function(PyObject* function, CompileOptions options);
CompiledFunction* as_compiled_function(PyObject* object);  // nullptr when it is none

}  // namespace cresset::frontend
