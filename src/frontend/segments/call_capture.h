// The capture of one call: the call runs once, for real, with deferred operators.
#pragma once

#include "bridge/capture/capture_lock.h"
#include "frontend/cache_entries/cache_entry.h"
#include "frontend/cache_entries/compile_options.h"
#include "frontend/guards/shape_profile.h"
#include "frontend/guards/torch_modes.h"
#include "frontend/segments/call_owner.h"
#include "frontend/segments/capture_state.h"

namespace cresset::frontend {

struct CaptureRequest {
  PyObject* function;
  std::string name;
  const CompileOptions& options;
  ShapeProfile* profile;
  TorchState state;                     // at the beginning of the call
  const ModuleGuards& names;            // of parameters
  ResumePoints& points;                 // resume points of the function; capture adds new points
  bool& inference_apart;                // of the function (opaque_calls.h)
  bool& plain_sizes;                    // of the function: its sizes must be plain ints
  AutomaticDynamic& automatic_dynamic;  // of the function
  CallOwner& compiled;
  bridge::CaptureLock& lock;  // held by the caller; released as soon as nothing is captured any more
};

// Calls the function and completes the cache entry, which already has its state, args and kwargs. The entry gets a
// program and a reconstruction, or an `eager_reason` when it cannot serve later calls. After a graph break more
// segments are captured; they become resume entries (`resume_entries`) of resume points. Returns the function's result
// with every tensor real. Returns nullptr with an exception set when the function raised; `entry.raised` is set and
// nothing is learned from the call. Returns nullptr without an exception when the capture must begin again with plain
// sizes. Throws PythonError for misuse, such as a marked dimension which must be static.
PyRef capture_call(const CaptureRequest& request, std::shared_ptr<CacheEntry> entry, PyObject* args, PyObject* kwargs);

// Captures from a resume point in the middle of the function. `frames` are the frames at the point's place. `value` is
// the result of the point's operation, or `exception` is its exception.
PyRef capture_from(const CaptureRequest& request, const std::shared_ptr<ResumePoint>& point,
                   std::shared_ptr<CacheEntry> entry, PyRef frames, PyObject* value, PyObject* exception);

}  // namespace cresset::frontend
