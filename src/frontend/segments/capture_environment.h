// Time spent in capturing.
#pragma once

#include <chrono>
#include <utility>

namespace cresset::frontend {

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Excludes compilation and code which runs for real while no segment is open.
class CaptureTime {
 public:
  void go() {
    if (began_ == 0) began_ = now_ms();
  }
  void stop() {
    if (began_ != 0) ms_ += now_ms() - std::exchange(began_, 0);
  }
  double ms() const { return ms_; }

 private:
  double began_ = 0, ms_ = 0;
};

}  // namespace cresset::frontend
