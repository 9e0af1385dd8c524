// The error of a compiled run whose data contradicts the capture.
#pragma once

#include <c10/util/Exception.h>

namespace cresset::bridge {

// Run-time data contradicts an assumption of the capture. Nothing has been written yet. Eager mode runs the call and
// raises its own errors.
class AssumptionFailed : public c10::Error {
 public:
  using c10::Error::Error;
};

}  // namespace cresset::bridge
