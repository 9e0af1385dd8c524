#include "frontend/segments/capture_state.h"

#include <torch/csrc/autograd/anomaly_mode.h>

#include <utility>

#include "frontend/segments/capture_setup.h"
#include "frontend/session/session.h"

namespace cresset::frontend {
namespace {

thread_local bool capturing = false;

}  // namespace

bool is_capturing() { return capturing; }

bool is_watched() { return cresset_eval_is_watched() != 0 || torch::autograd::AnomalyMode::is_enabled(); }

Capturing::Capturing() { set_up_capturing(), capturing = true; }
Capturing::~Capturing() { capturing = false; }

OutOfCapture::OutOfCapture()
    : capture_(bridge::Capture::exchange_current(nullptr)),
      session_(Session::exchange_current(nullptr)),
      capturing_(std::exchange(capturing, false)),
      evaluation_(cresset_eval_suspend()) {}
OutOfCapture::~OutOfCapture() {
  cresset_eval_take_back(evaluation_);
  capturing = capturing_;
  Session::exchange_current(session_);
  bridge::Capture::exchange_current(capture_);
}

}  // namespace cresset::frontend
