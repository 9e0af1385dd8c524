#include "bridge/capture_turn.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace cresset::bridge {
namespace {

struct Table {
  std::mutex mutex;
  std::condition_variable given;
  std::thread::id holder;
  pid_t process = 0;  // the holder of a process that forked is no thread of its child
  int depth = 0;      // an inner call's capture, from what runs natively in the middle of one
  bool given_up = false;

  bool is_free() const { return depth == 0 || holder == std::this_thread::get_id() || process != ::getpid(); }
  void take() {
    if (depth == 0 || holder != std::this_thread::get_id() || process != ::getpid()) depth = 0, given_up = false;
    holder = std::this_thread::get_id();
    process = ::getpid();
    ++depth;
  }
};

Table& table() {
  static auto* const table = new Table;  // threads may end after the process has begun to
  return *table;
}

}  // namespace

bool CaptureTurn::take() {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  if (mine_ || !t.is_free()) return mine_;
  t.take();
  return mine_ = true;
}

bool CaptureTurn::wait(std::chrono::milliseconds patience) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  if (mine_ || (!t.is_free() && t.given_up)) return mine_;
  if (!t.given.wait_for(lock, patience, [&] { return t.is_free() || t.given_up; }) || !t.is_free()) {
    t.given_up = true;
    t.given.notify_all();
    return false;
  }
  t.take();
  return mine_ = true;
}

void CaptureTurn::give() {
  if (!mine_) return;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  mine_ = false;
  if (t.holder != std::this_thread::get_id() || t.process != ::getpid() || --t.depth > 0) return;
  t.given.notify_all();
}

}  // namespace cresset::bridge
