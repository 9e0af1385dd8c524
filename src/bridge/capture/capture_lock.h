// The capture lock: only one thread captures at a time in the whole process. Input proxies answer for their proxy
// tensors (input_proxy.h), so a second capture could not use the same parameters.
#pragma once

#include <chrono>

namespace cresset::bridge {

class CaptureLock {
 public:
  CaptureLock() = default;
  ~CaptureLock() { give(); }
  CaptureLock(const CaptureLock&) = delete;
  CaptureLock& operator=(const CaptureLock&) = delete;

  // Returns true when this thread holds the lock, until it is released as often as it was taken. Never waits.
  bool take();
  // As take(), but waits for the holder. The holder runs the user's code and may itself wait for this thread, so
  // patience ends. After one timeout no thread waits for this capture any more. Calls which change state (ChangeLock)
  // are waited for with the same patience and then ignored. Must not hold the GIL.
  bool wait(std::chrono::milliseconds patience = std::chrono::seconds(2));
  void give();  // idempotent

 private:
  bool mine_ = false;
};

// Lock of a call which changes state read by captures. It excludes captures in both directions: a program contains the
// state which its capture has read, and no capture begins during a change.
class ChangeLock {
 public:
  ChangeLock() = default;
  ~ChangeLock() { give(); }
  ChangeLock(const ChangeLock&) = delete;
  ChangeLock& operator=(const ChangeLock&) = delete;

  // Returns false while a thread captures or waits to capture. Never waits.
  bool take();
  // Takes the lock even after a timeout. Must not hold the GIL.
  void wait(std::chrono::milliseconds patience = std::chrono::seconds(2));
  void give();  // idempotent

 private:
  bool mine_ = false;
};

}  // namespace cresset::bridge
