#include "frontend/session/open_segment.h"

namespace cresset::frontend {

void OpenSegment::begin(StateGuards& guards, bridge::Capture& capture) {
  guards_ = &guards;
  capture_ = &capture;
  refusal_ = {};
  unseen_ = false;
}

void OpenSegment::refuse(BreakKind kind, std::string detail) {
  if (!refusal_.empty()) return;
  if (!capture_->closed()) capture_->set_location();
  BreakReason why(kind, std::move(detail));
  refusal_ = capture_->closed() ? std::move(why) : capture_->located(std::move(why));
}

}  // namespace cresset::frontend
