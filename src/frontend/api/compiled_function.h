// cresset._C.CompiledFunction: the callable which `cresset.compile` returns.
#pragma once

#include <Python.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bridge/capture/capture_lock.h"
#include "frontend/api/nested_modules.h"
#include "frontend/api/stale_entries.h"
#include "frontend/cpython/stats.h"
#include "frontend/feedback/eager_fallback_timing.h"
#include "frontend/feedback/feedback.h"
#include "frontend/guards/shape_profile.h"
#include "frontend/segments/call_owner.h"
#include "frontend/segments/write_lock.h"
#include "frontend/variants/cache_entry.h"
#include "frontend/variants/compile_options.h"
#include "frontend/variants/limits.h"
#include "frontend/variants/size_loops.h"

namespace cresset::frontend {

struct CaptureRequest;

// The state of the callable, held by the Python object.
class CompiledFunction final : public CallOwner {
 public:
  CompiledFunction(PyObject* function, CompileOptions options)
      : function_(PyRef::borrow(function)), options_(std::move(options)) {
    add_live_function(this);
  }
  ~CompiledFunction() { remove_live_function(this); }
  CompiledFunction(const CompiledFunction&) = delete;

  // Returns a new reference, or nullptr with an exception set.
  PyObject* call(PyObject* const* args, size_t nargsf, PyObject* kwnames);

  PyObject* function() const { return function_.get(); }
  bool is_call_of(PyObject* module, PyObject* call) const;  // whether the function is call(module, ...)
  InnerModules& inner_modules() { return inner_modules_; }
  void clear_variants();
  const Variants& variants() const { return variants_; }
  const Points& points() const { return points_; }
  const std::vector<RejectedSizes>& rejected() const { return rejected_; }
  const CompileOptions& options() const { return options_; }
  const Feedback& feedback() const override { return feedback_; }
  std::shared_ptr<void> begin_native_rest() override;
  // The average time in nanoseconds of the search for the cache entry which serves this call; negative when no entry
  // serves it.
  double check_ns(PyObject* args, PyObject* kwargs, int64_t count);
  int visit(visitproc visit, void* arg) const;

 private:
  friend int64_t drop_of_gone_models();
  PyObject* serve(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  PyObject* refuse_break(const Variant& variant) const;  // fullgraph=True: sets CaptureError
  PyObject* call_eager(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  struct Found;
  // Finds the first cache entry which serves the call and moves it to the front. `why` receives the reason why the most
  // recently used entry does not fit.
  Found find(Variants& among, CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
             GuardFailure* why);
  Found find_in_turn(Variants& among, CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
                     WriteTurn& turn);
  bool find_or_take(Variants& among, CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
                    WriteTurn& turn_to_write, bridge::CaptureTurn& turn, Found& found);
  bool find_likely(Variants& among, const CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
                   Found& found);
  bool serves(Variant& variant, const TorchState& state, PyObject* args, PyObject* kwargs, Found& found,
              GuardFailure* why) const;
  // frames: the frames in which the segment continues and which it leaves; nullptr: the segment uses the caller's
  // arguments.
  std::vector<PyRef> run_entry(Variant& variant, Found& found, PyObject* frames);
  void read_again(Found& found, PyObject* args, PyObject* kwargs) const;
  // pieces: incremented for each segment.
  PyObject* run_pieces(Found found, WriteTurn& turn, PyObject* args, PyObject* kwargs, size_t& pieces);
  PyRef go_on(const Variant& variant, Ingredients& with, WriteTurn& turn_to_write, Found& next, PyRef& args,
              PyRef& kwargs);
  std::shared_ptr<Variant> successor(const Break& from, const TorchState& state, PyObject* args, PyObject* kwargs);
  PyObject* natively(const Point* point, PyRef frames, PyObject* args, PyObject* kwargs);
  PyObject* call_first(const TorchState& state, PyObject* args, PyObject* kwargs, bridge::CaptureTurn& turn);
  CaptureRequest request(const ModuleGuards& names, bridge::CaptureTurn& turn);  // names: of parameters
  std::string name() const;
  bool captures_in_vain();
  void warn_eager(bool& warned, const std::string& why) const;  // warns once
  size_t how_much_is_known() const;
  void note_worth(const Variant& variant, size_t known_before);
  void note_packing();
  PyObject* run_in_race(PyObject* const* args, size_t nargsf, PyObject* kwnames);  // eagerly
  // SizeLoops::eager_sizes, but for functions that must be compiled.
  uint64_t eager_sizes(const Variants& among, const TorchState& state, PyObject* args, PyObject* kwargs) const;
  // Runs such a call eagerly, from the point on.
  PyObject* run_loop(uint64_t sizes, const Point* point, PyRef frames, PyObject* args, PyObject* kwargs);
  void forget(Variants& among, const std::shared_ptr<Variant>& variant, const bridge::PredictionError& error);
  // Runs the call for real and creates a cache entry. `result`: the result of the call; empty with an exception set.
  std::shared_ptr<Variant> capture(const TorchState& state, PyObject* args, PyObject* kwargs, bridge::CaptureTurn& turn,
                                   PyRef& result);
  void keep(const std::shared_ptr<Variant>& variant, const std::string& name);

  PyRef function_;
  CompileOptions options_;
  std::unique_ptr<ShapeProfile> profile_;  // created at the first capture, with auto_dynamic
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
  std::recursive_timed_mutex turns_;  // of threads, to change state (write_lock.h)
  bool warned_limit_ = false, warned_worth_ = false, warned_vain_ = false, warned_packing_ = false,
       warned_race_ = false, warned_anomaly_ = false, warned_gradients_ = false;
};

// Whether a compiled function is running on this thread.
bool inside_compiled_call();

// Adds the type to the module.
void add_compiled_function_type(PyObject* module);
PyObject* new_compiled_function(PyObject* function, CompileOptions options);
CompiledFunction* as_compiled_function(PyObject* object);  // nullptr for other objects

}  // namespace cresset::frontend
