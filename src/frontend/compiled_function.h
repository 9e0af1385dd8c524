// cresset._C.CompiledFunction: the callable that cresset.compile returns.
#pragma once

#include <Python.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bridge/capture_turn.h"
#include "frontend/eager_race.h"
#include "frontend/feedback.h"
#include "frontend/gone_models.h"
#include "frontend/inner_modules.h"
#include "frontend/limits.h"
#include "frontend/shape_profile.h"
#include "frontend/size_loops.h"
#include "frontend/totals.h"
#include "frontend/variant.h"
#include "frontend/write_turn.h"

namespace cresset::frontend {

struct CompileOptions {
  bool dynamic = true;
  bool auto_dynamic = false;  // static first; a size is dynamic once it varied (frontend/shape_profile.h)
  bool fullgraph = false;
  bool symbolic_numbers = false;  // what is read from integer tensors stays symbolic; with fullgraph it always does
  driver::Options code;
  bool evaluate = false;       // by the bytecode evaluator; else traced: run natively on tensors that take notes
  bool keep_text = false;      // keep the graph's text, for cresset.explain
  bool keep_rejected = false;  // keep the sizes with which calls raised, for cresset.solve
  PyRef guard_filter;          // of the user's: which facts to keep (state_facts.h); empty: all
  int64_t entry_limit = 64;
  int64_t successor_limit = 64;  // of a point between two pieces
};

struct CaptureRequest;

// The callable's state; the Python object holds one.
class CompiledFunction {
 public:
  CompiledFunction(PyObject* function, CompileOptions options)
      : function_(PyRef::borrow(function)), options_(std::move(options)) {
    add_live_function(this);
  }
  ~CompiledFunction() { remove_live_function(this); }
  CompiledFunction(const CompiledFunction&) = delete;

  // New reference, or nullptr with an exception set.
  PyObject* call(PyObject* const* args, size_t nargsf, PyObject* kwnames);

  PyObject* function() const { return function_.get(); }
  bool is_call_of(PyObject* module, PyObject* call) const;  // whether it is call(module, ...)
  InnerModules& inner_modules() { return inner_modules_; }
  void clear_variants();
  const Variants& variants() const { return variants_; }
  const Points& points() const { return points_; }
  const std::vector<RejectedSizes>& rejected() const { return rejected_; }
  const CompileOptions& options() const { return options_; }
  const Feedback& feedback() const { return feedback_; }
  // Nanoseconds that it takes to find the variant that serves such a call, on average; negative when none does.
  double check_ns(PyObject* args, PyObject* kwargs, int64_t count);
  int visit(visitproc visit, void* arg) const;

 private:
  friend int64_t drop_of_gone_models();
  PyObject* serve(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  PyObject* refuse_break(const Variant& variant) const;  // fullgraph=True: sets CaptureError
  PyObject* call_eager(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  struct Found;
  // The first of the variants that serves the call, moved to the front. `why`: why the one that served last does not.
  Found find(Variants& among, CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
             std::string* why);
  Found find_in_turn(Variants& among, CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
                     WriteTurn& turn);
  bool find_or_take(Variants& among, CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
                    WriteTurn& turn_to_write, bridge::CaptureTurn& turn, Found& found);
  bool find_likely(Variants& among, const CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
                   Found& found);
  bool serves(Variant& variant, const TorchState& state, PyObject* args, PyObject* kwargs, Found& found,
              std::string* why) const;
  // frames: those that the piece goes on in, and leaves; nullptr: the caller's arguments.
  std::vector<PyRef> run_entry(Variant& variant, Found& found, PyObject* frames);
  void read_again(Found& found, PyObject* args, PyObject* kwargs) const;
  // pieces: counted in it.
  PyObject* run_pieces(Found found, WriteTurn& turn, PyObject* args, PyObject* kwargs, size_t& pieces);
  PyRef go_on(const Variant& variant, Ingredients& with, WriteTurn& turn_to_write, Found& next, PyRef& args,
              PyRef& kwargs);
  std::shared_ptr<Variant> successor(const Break& from, const TorchState& state, PyObject* args, PyObject* kwargs);
  PyObject* natively(const Point* point, PyRef frames, PyObject* args, PyObject* kwargs);
  PyObject* call_first(const TorchState& state, PyObject* args, PyObject* kwargs, bridge::CaptureTurn& turn);
  CaptureRequest request(const ModuleGuards& names, bridge::CaptureTurn& turn);  // names: of parameters
  std::string name() const;
  bool captures_in_vain();
  void warn_eager(bool& warned, const std::string& why) const;  // once
  size_t how_much_is_known() const;
  void note_worth(const Variant& variant, size_t known_before);
  void note_packing();
  PyObject* run_in_race(PyObject* const* args, size_t nargsf, PyObject* kwnames);  // eagerly
  // SizeLoops::eager_sizes, but for functions that must be compiled.
  uint64_t eager_sizes(const Variants& among, const TorchState& state, PyObject* args, PyObject* kwargs) const;
  // Runs such a call eagerly, from the point on.
  PyObject* run_loop(uint64_t sizes, const Point* point, PyRef frames, PyObject* args, PyObject* kwargs);
  void forget(Variants& among, const std::shared_ptr<Variant>& variant, const bridge::PredictionError& error);
  // Runs the call for real and makes a variant of it. `result`: what it returned; empty with an exception set.
  std::shared_ptr<Variant> capture(const TorchState& state, PyObject* args, PyObject* kwargs, bridge::CaptureTurn& turn,
                                   PyRef& result);
  void keep(const std::shared_ptr<Variant>& variant, const std::string& name);

  PyRef function_;
  CompileOptions options_;
  std::unique_ptr<ShapeProfile> profile_;  // made at the first capture, with auto_dynamic
  Variants variants_;
  std::vector<RejectedSizes> rejected_;
  Points points_;
  bool inference_apart_ = false, plain_sizes_ = false;
  Varying varying_;
  Feedback feedback_;
  CallHints hints_;
  Misses misses_;
  Worth worth_;
  EagerRace race_;
  SizeLoops loops_;
  InnerModules inner_modules_;
  std::recursive_timed_mutex turns_;  // of threads, to change state (write_turn.h)
  bool warned_limit_ = false, warned_worth_ = false, warned_vain_ = false, warned_packing_ = false,
       warned_race_ = false, warned_anomaly_ = false, warned_gradients_ = false;
};

// Whether a compiled function is at work on this thread.
bool inside_compiled_call();

// Adds the type to the module.
void add_compiled_function_type(PyObject* module);
PyObject* new_compiled_function(PyObject* function, CompileOptions options);
CompiledFunction* as_compiled_function(PyObject* object);  // nullptr when it is none

}  // namespace cresset::frontend
