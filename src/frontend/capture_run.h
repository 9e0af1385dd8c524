// One call that is captured: run once, for real, its operators deferred.
#pragma once

#include "frontend/capturing.h"
#include "frontend/compiled_function.h"

namespace cresset::frontend {

struct CaptureRequest {
  PyObject* function;
  std::string name;
  const CompileOptions& options;
  ShapeProfile* profile;
  TorchState state;           // when the call began
  const ModuleGuards& names;  // of parameters
  Points& points;             // of the function; new ones are added
  bool& inference_apart;      // of the function (left_whole.h)
  bool& plain_sizes;          // of the function: symbolic ones have no place in it
  Varying& varying;           // of the function
  CompiledFunction& compiled;
  bridge::CaptureTurn& turn;  // taken; given back as soon as nothing is captured any more
};

// Calls the function and fills in the variant, which has its state, args and kwargs: entry and recipe, or an
// eager_reason when later calls cannot be served. Where the call breaks, more pieces are captured and become successors
// of points. Returns what the function returned, with every tensor real; nullptr with the exception that it raised
// (then variant.raised: nothing is learned from the call), or without one where the call is to begin again, with plain
// sizes. Throws PythonError for misuse (a marked dimension that must
// be static).
PyRef capture_call(const CaptureRequest& request, std::shared_ptr<Variant> variant, PyObject* args, PyObject* kwargs);

// Likewise from a point in the middle of it: frames as the point's place has them, `value` the result of its operation,
// or `exception` what it raised.
PyRef capture_from(const CaptureRequest& request, const std::shared_ptr<Point>& point, std::shared_ptr<Variant> variant,
                   PyRef frames, PyObject* value, PyObject* exception);

}  // namespace cresset::frontend
