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
#include "frontend/cache_entries/cache_entry.h"
#include "frontend/cache_entries/compile_options.h"
#include "frontend/cache_entries/limits.h"
#include "frontend/cache_entries/size_loops.h"
#include "frontend/cpython/stats.h"
#include "frontend/feedback/eager_fallback_timing.h"
#include "frontend/feedback/feedback.h"
#include "frontend/guards/shape_profile.h"
#include "frontend/guards/torch_controls.h"
#include "frontend/segments/call_owner.h"
#include "frontend/segments/write_lock.h"

namespace cresset::frontend {

struct CaptureRequest;

// Settings of torch.compile which concern the callable and not its captures.
struct CallSettings {
  std::string name;              // for messages; empty: the function's own
  int64_t recompile_limit = -1;  // cache entries after which other calls run eagerly; negative: no such limit
};

// The state of the callable, held by the Python object.
class CompiledFunction final : public CallOwner {
 public:
  CompiledFunction(PyObject* function, CompileOptions options, CallSettings settings)
      : function_(PyRef::borrow(function)), options_(std::move(options)), settings_(std::move(settings)) {
    add_live_function(this);
  }
  ~CompiledFunction() { remove_live_function(this); }
  CompiledFunction(const CompiledFunction&) = delete;

  // Returns a new reference, or nullptr with an exception set.
  PyObject* call(PyObject* const* args, size_t nargsf, PyObject* kwnames);

  PyObject* function() const { return function_.get(); }
  bool is_call_of(PyObject* module, PyObject* call) const;  // whether the function is call(module, ...)
  InnerModules& inner_modules() { return inner_modules_; }
  void clear_cache_entries();
  const CacheEntries& cache_entries() const { return cache_entries_; }
  const ResumePoints& points() const { return points_; }
  const std::vector<RejectedSizes>& rejected() const { return rejected_; }
  const CompileOptions& options() const { return options_; }
  const Feedback& feedback() const override { return feedback_; }
  std::shared_ptr<void> begin_eager_fallback() override;
  // The average time in nanoseconds of the search for the cache entry which serves this call; negative when no entry
  // serves it.
  double check_ns(PyObject* args, PyObject* kwargs, int64_t count);
  int visit(visitproc visit, void* arg) const;

 private:
  friend int64_t drop_of_gone_models();
  PyObject* serve(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  // A call which no cache entry serves: whether torch's stance or the recompile limit forbids its capture. `result`
  // then is the call's result, or nullptr with an exception set.
  bool runs_uncaptured(const TorchState& state, PyObject* args, PyObject* kwargs, PyObject*& result);
  PyObject* refuse_recompile(const std::string& why) const;  // sets RuntimeError
  PyObject* beyond_recompile_limit(PyObject* args, PyObject* kwargs);
  void observe_sizes(PyObject* args, PyObject* kwargs);   // of a call which runs eagerly, for automatic dynamic sizes
  PyObject* run_alone(PyObject* args, PyObject* kwargs);  // eagerly, with no module inside of it compiled
  std::string why_missed(const TorchState& state, PyObject* args, PyObject* kwargs);
  PyObject* refuse_break(const CacheEntry& entry) const;  // fullgraph=True: sets CaptureError
  PyObject* call_eager(PyObject* const* args, size_t nargsf, PyObject* kwnames);
  struct Found;
  // Finds the first cache entry which serves the call and moves it to the front. `why` receives the reason why the
  // nearest entry does not fit: the one with the most guards that hold.
  Found find(CacheEntries& among, CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
             GuardFailure* why);
  Found find_locked(CacheEntries& among, CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
                    WriteLock& lock);
  bool find_or_take(CacheEntries& among, CallHints& hints, const TorchState& state, PyObject* args, PyObject* kwargs,
                    WriteLock& write_lock, bridge::CaptureLock& lock, Found& found);
  bool find_likely(CacheEntries& among, const CallHints& hints, const TorchState& state, PyObject* args,
                   PyObject* kwargs, Found& found);
  bool serves(CacheEntry& entry, const TorchState& state, PyObject* args, PyObject* kwargs, Found& found,
              GuardFailure* why) const;
  // frames: the frames in which the segment continues and which it leaves; nullptr: the segment uses the caller's
  // arguments.
  std::vector<PyRef> run_entry(CacheEntry& entry, Found& found, PyObject* frames);
  void read_again(Found& found, PyObject* args, PyObject* kwargs) const;
  // pieces: incremented for each segment.
  PyObject* run_segments(Found found, WriteLock& lock, PyObject* args, PyObject* kwargs, size_t& segments);
  PyRef go_on(const CacheEntry& entry, Ingredients& with, WriteLock& write_lock, Found& next, PyRef& args,
              PyRef& kwargs);
  std::shared_ptr<CacheEntry> resume_entry(const Break& from, const TorchState& state, PyObject* args,
                                           PyObject* kwargs);
  PyObject* natively(const ResumePoint* point, PyRef frames, PyObject* args, PyObject* kwargs);
  PyObject* call_first(const TorchState& state, PyObject* args, PyObject* kwargs, bridge::CaptureLock& lock);
  CaptureRequest request(const ModuleGuards& names, bridge::CaptureLock& lock);  // names: of parameters
  std::string name() const;
  bool captures_in_vain();
  void warn_eager(bool& warned, const std::string& why) const;  // warns once
  size_t how_much_is_known() const;
  void note_worth(const CacheEntry& entry, size_t known_before);
  void note_packing();
  PyObject* run_timed(PyObject* const* args, size_t nargsf, PyObject* kwnames);  // eagerly
  // SizeLoops::eager_sizes, but for functions that must be compiled.
  uint64_t eager_sizes(const CacheEntries& among, const TorchState& state, PyObject* args, PyObject* kwargs) const;
  // Runs such a call eagerly, from the point on.
  PyObject* run_loop(uint64_t sizes, const ResumePoint* point, PyRef frames, PyObject* args, PyObject* kwargs);
  void forget(CacheEntries& among, const std::shared_ptr<CacheEntry>& entry, const bridge::PredictionError& error);
  // Runs the call for real and creates a cache entry. `result`: the result of the call; empty with an exception set.
  std::shared_ptr<CacheEntry> capture(const TorchState& state, PyObject* args, PyObject* kwargs,
                                      bridge::CaptureLock& lock, PyRef& result);
  void keep(const std::shared_ptr<CacheEntry>& entry, const std::string& name);

  PyRef function_;
  CompileOptions options_;
  const CallSettings settings_;
  std::unique_ptr<ShapeProfile> profile_;  // created at the first capture, with auto_dynamic
  CacheEntries cache_entries_;
  std::vector<RejectedSizes> rejected_;
  ResumePoints points_;
  bool inference_apart_ = false, plain_sizes_ = false;
  AutomaticDynamic dynamic_;
  Feedback feedback_;
  CallHints hints_;
  Misses misses_;
  Worth worth_;
  EagerFallbackTiming timing_;
  SizeLoops loops_;
  InnerModules inner_modules_;
  std::recursive_timed_mutex write_mutex_;  // of threads, to change state (write_lock.h)
  bool has_run_eagerly_ = false;            // in the stance eager_then_compile
  bool warned_limit_ = false, warned_recompiles_ = false, warned_worth_ = false, warned_vain_ = false,
       warned_packing_ = false, warned_timing_ = false, warned_anomaly_ = false, warned_gradients_ = false;
};

// Whether a compiled function is running on this thread.
bool inside_compiled_call();

// Adds the type to the module.
void add_compiled_function_type(PyObject* module);
PyObject* new_compiled_function(PyObject* function, CompileOptions options, CallSettings settings = {});
CompiledFunction* as_compiled_function(PyObject* object);  // nullptr for other objects

}  // namespace cresset::frontend
