// Threads that call the same function take turns where it changes state: what a call has read is what it changes.
#pragma once

#include <Python.h>

#include <chrono>
#include <mutex>

namespace cresset::frontend {

class WriteTurn {
 public:
  explicit WriteTurn(std::recursive_timed_mutex& turns) : lock_(turns, std::defer_lock) {}

  // Whether another thread had it meanwhile, which may have changed what was found. Waits without the GIL; not for
  // ever, since code of the program's that runs in a turn may itself wait for another thread.
  bool take() {
    if (lock_.owns_lock() || lock_.try_lock()) return false;
    PyThreadState* const state = PyEval_SaveThread();
    lock_.try_lock_for(kLongest);
    PyEval_RestoreThread(state);
    return true;
  }
  void give() {
    if (lock_.owns_lock()) lock_.unlock();
  }

 private:
  static constexpr std::chrono::seconds kLongest{30};
  std::unique_lock<std::recursive_timed_mutex> lock_;
};

}  // namespace cresset::frontend
