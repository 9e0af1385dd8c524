// The write lock: threads which call the same function take turns to change state, because a call changes the state
// which it has read.
#pragma once

#include <Python.h>

#include <chrono>
#include <mutex>

#include "bridge/capture/capture_lock.h"

namespace cresset::frontend {

inline bool is_only_thread() {
  return PyThreadState_Next(PyInterpreterState_ThreadHead(PyInterpreterState_Get())) == nullptr;
}

inline bool wait_for(bridge::CaptureLock& lock) {
  PyThreadState* const state = PyEval_SaveThread();
  const bool mine = lock.wait();
  PyEval_RestoreThread(state);
  return mine;
}

class WriteLock {
 public:
  explicit WriteLock(std::recursive_timed_mutex& mutex) : lock_(mutex, std::defer_lock) {}

  // Acquires the lock. Returns whether the thread had to wait, since another thread may have changed the state in the
  // meantime. Waits without the GIL, and only for a limited time, because program code under the lock may itself wait
  // for another thread.
  bool take() {
    if ((lock_.owns_lock() || lock_.try_lock()) && change_.take()) return false;
    PyThreadState* const state = PyEval_SaveThread();
    if (!lock_.owns_lock()) lock_.try_lock_for(kLongest);
    change_.wait();
    PyEval_RestoreThread(state);
    return true;
  }
  void give() {
    change_.give();
    if (lock_.owns_lock()) lock_.unlock();
  }

 private:
  static constexpr std::chrono::seconds kLongest{10};
  std::unique_lock<std::recursive_timed_mutex> lock_;
  bridge::ChangeLock change_;
};

}  // namespace cresset::frontend
