// Whether this thread is in the middle of a call that is captured.
#pragma once

#include "bridge/capture.h"

namespace cresset::frontend {

class Session;

bool is_capturing();
// By a tracer, or by torch.autograd.detect_anomaly: calls run natively then.
bool is_watched();

// For as long as it lives, it is. Throws PythonError.
class Capturing {
 public:
  Capturing();
  ~Capturing();
  Capturing(const Capturing&) = delete;
};

// Inside of a captured call whose rest CPython runs: for as long as it lives, as if nothing had been captured, so that
// another call can be.
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
