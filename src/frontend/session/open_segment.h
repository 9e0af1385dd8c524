// The segment in progress, as all parts of a session see it: its guards, its capture, and why later calls cannot repeat
// it.
//
// Invariants: between two begin() calls the guards and the capture stay the same. The first reason for a refusal
// counts.
#pragma once

#include <string>

#include "bridge/capture/capture.h"
#include "frontend/guards/state_guards.h"

namespace cresset::frontend {

class OpenSegment {
 public:
  void begin(StateGuards& guards, bridge::Capture& capture);

  bool has_begun() const { return guards_ != nullptr; }
  StateGuards& guards() const { return *guards_; }
  bridge::Capture& capture() const { return *capture_; }
  // Whether a segment is open and the program is running, and not a Python shape rule called by a capture kernel.
  bool is_open() const { return capture_ != nullptr && !capture_->closed() && capture_->recording == 0; }

  // Later calls cannot repeat this call.
  [[gnu::cold]] void refuse(BreakKind kind, std::string detail);
  bool is_refused() const { return !refusal_.empty(); }
  const BreakReason& refusal() const { return refusal_; }
  // The reason may be absent at later calls: a watcher which may be inactive, a feature that the next capture avoids.
  void set_unseen() { unseen_ = true; }
  bool was_unseen() const { return unseen_; }

 private:
  StateGuards* guards_ = nullptr;
  bridge::Capture* capture_ = nullptr;
  BreakReason refusal_;
  bool unseen_ = false;
};

}  // namespace cresset::frontend
