// The exception by which an operator says that a graph cannot represent it.
#pragma once

#include <c10/util/Exception.h>

#include <string>

namespace cresset::bridge {

// Raised when a capture cannot continue: the operator needs tensor data or has no counterpart in a graph. The boxed
// kernel catches it, flushes the capture and runs its operator eagerly.
class CaptureAbort : public c10::Error {
 public:
  using c10::Error::Error;
};
[[noreturn]] void abort_capture(std::string why);

}  // namespace cresset::bridge
