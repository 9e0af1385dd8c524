// Whether this thread is capturing a call.
#pragma once

#include "bridge/capture/capture.h"

namespace cresset::frontend {

class Session;

bool is_capturing();
// Whether a tracer or `torch.autograd.detect_anomaly` watches the thread. Calls then run in eager mode.
bool is_watched();

// Marks the thread as capturing during its lifetime. The constructor throws PythonError.
class Capturing {
 public:
  Capturing();
  ~Capturing();
  Capturing(const Capturing&) = delete;
};

// Hides the capture during its lifetime, for the eager fallback of a captured call, so that another call can be
// captured inside it.
class OutOfCapture {
 public:
  OutOfCapture();
  ~OutOfCapture();
  OutOfCapture(const OutOfCapture&) = delete;

 private:
  bridge::Capture* const capture_;
  Session* const session_;
  const bool capturing_;
  void* const evaluation_;
};

}  // namespace cresset::frontend
