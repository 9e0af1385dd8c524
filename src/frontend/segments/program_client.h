// The Python program behind the capture of a segment. It may be asked after the run of the call has ended.
#pragma once

#include "bridge/capture/capture_client.h"
#include "frontend/frames/location.h"

namespace cresset::frontend {

class ProgramClient : public bridge::CaptureClient {
 public:
  void locate(bridge::Capture& capture) override { tracker_.update(capture); }
  std::optional<at::Scalar> symbolic_number(const at::Tensor& tensor) override;
  bool may_be_caught() override;
  bool end_in_order(const BreakReason& why) override;

 private:
  // Ends the segment at a graph break. Throws PythonError.
  virtual bool end_at_break(const BreakReason& why) = 0;

  LocationTracker tracker_;
};

}  // namespace cresset::frontend
