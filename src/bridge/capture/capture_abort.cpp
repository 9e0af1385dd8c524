#include "bridge/capture/capture_abort.h"

namespace cresset::bridge {

void abort_capture(BreakReason why) {
  throw CaptureAbort({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, std::move(why));
}

}  // namespace cresset::bridge
