#include "bridge/capture/capture_lock.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace cresset::bridge {
namespace {

thread_local int changes_of_this_thread = 0;

struct Table {
  std::mutex mutex;
  std::condition_variable given;
  std::thread::id holder;
  pid_t process = 0;  // after a fork, the parent's holder is no thread of the child
  int depth = 0;      // nested captures: code which runs eagerly inside a capture may capture an inner call
  bool given_up = false;
  int changing = 0, waiting = 0;  // calls which change state; captures which wait for them

  bool is_changed() const { return changing > changes_of_this_thread && process == ::getpid(); }
  bool is_free() const { return depth == 0 || holder == std::this_thread::get_id() || process != ::getpid(); }
  void take() {
    if (depth == 0 || holder != std::this_thread::get_id() || process != ::getpid()) depth = 0, given_up = false;
    enter();
    holder = std::this_thread::get_id();
    ++depth;
  }
  void enter() {
    if (process != ::getpid()) depth = waiting = 0, changing = changes_of_this_thread;
    process = ::getpid();
  }
  bool may_change() const { return changes_of_this_thread > 0 || (is_free() && waiting == 0) || process != ::getpid(); }
  void change() {
    enter();
    ++changing;
    ++changes_of_this_thread;
  }
};

Table& table() {
  static auto* const table = new Table;  // never destroyed: threads may outlive the process's exit handlers
  return *table;
}

}  // namespace

bool CaptureLock::take() {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  if (mine_ || !t.is_free() || t.is_changed()) return mine_;
  t.take();
  return mine_ = true;
}

bool CaptureLock::wait(std::chrono::milliseconds patience) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  if (mine_) return true;
  t.enter();
  ++t.waiting;
  const auto ready = [&] { return t.is_free() ? !t.is_changed() : t.given_up; };
  const bool in_time = t.given.wait_for(lock, patience, ready);
  --t.waiting;
  if (!t.is_free() && !in_time) t.given_up = true;
  t.given.notify_all();
  if (!t.is_free()) return false;
  t.take();
  return mine_ = true;
}

void CaptureLock::give() {
  if (!mine_) return;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  mine_ = false;
  if (t.holder != std::this_thread::get_id() || t.process != ::getpid() || --t.depth > 0) return;
  t.given.notify_all();
}

bool ChangeLock::take() {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  if (mine_ || !t.may_change()) return mine_;
  t.change();
  return mine_ = true;
}

void ChangeLock::wait(std::chrono::milliseconds patience) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  if (mine_) return;
  t.given.wait_for(lock, patience, [&] { return t.may_change() || t.given_up; });
  t.change();
  mine_ = true;
}

void ChangeLock::give() {
  if (!mine_) return;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  mine_ = false;
  --changes_of_this_thread;
  if (t.process != ::getpid()) return;
  --t.changing;
  if (t.waiting > 0) t.given.notify_all();
}

}  // namespace cresset::bridge
