// Whose turn it is to capture: one thread at a time, in the whole process. Tensors that take part in a capture answer
// for their stand-ins (guest.h); a second capture on the same parameters could not use them.
#pragma once

#include <chrono>

namespace cresset::bridge {

class CaptureTurn {
 public:
  CaptureTurn() = default;
  ~CaptureTurn() { give(); }
  CaptureTurn(const CaptureTurn&) = delete;
  CaptureTurn& operator=(const CaptureTurn&) = delete;

  // True: this thread has the turn, until it is given back as often as it was taken. Never waits.
  bool take();
  // Likewise, after waiting for the thread that has it. That thread may itself wait for this one (a capture runs the
  // user's code), so patience ends; once it has ended, nobody waits for that capture any more. For calls that change
  // state (ChangeTurn) it waits no longer than that either, and then does not mind them. Not under the GIL.
  bool wait(std::chrono::milliseconds patience = std::chrono::seconds(2));
  void give();  // idempotent

 private:
  bool mine_ = false;
};

// Of a call that changes what others may read: not while another thread captures, since what a capture has read is in
// its program; and while something is being changed no capture begins.
class ChangeTurn {
 public:
  ChangeTurn() = default;
  ~ChangeTurn() { give(); }
  ChangeTurn(const ChangeTurn&) = delete;
  ChangeTurn& operator=(const ChangeTurn&) = delete;

  // False: a thread captures, or waits for it. Never waits.
  bool take();
  void wait(std::chrono::milliseconds patience = std::chrono::seconds(2));  // then it is taken. Not under the GIL
  void give();                                                              // idempotent

 private:
  bool mine_ = false;
};

}  // namespace cresset::bridge
