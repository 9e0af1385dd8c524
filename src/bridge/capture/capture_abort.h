// The exception by which an operator says that a graph cannot represent it.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include "base/break_reason.h"

namespace cresset::bridge {

// Raised when a capture cannot continue: the operator needs tensor data or has no counterpart in a graph. The boxed
// kernel catches it, flushes the capture and runs its operator eagerly.
class CaptureAbort : public c10::Error {
 public:
  CaptureAbort(c10::SourceLocation at, BreakReason why) : c10::Error(at, why.text()), reason_(std::move(why)) {}
  const BreakReason& reason() const { return reason_; }

 private:
  BreakReason reason_;
};
[[noreturn]] void abort_capture(BreakReason why);
[[noreturn]] inline void abort_capture(BreakKind kind, std::string detail) {
  abort_capture(BreakReason(kind, std::move(detail)));
}

}  // namespace cresset::bridge
