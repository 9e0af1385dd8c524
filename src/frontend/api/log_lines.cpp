#include "frontend/api/log_lines.h"

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "frontend/cpython/py_ref.h"
#include "frontend/values/pending_error.h"

namespace cresset::frontend {
namespace {

using LogLine = std::pair<const char*, std::string>;

std::mutex lines_mutex;
std::vector<LogLine>& waiting_lines() {
  static auto* const lines = new std::vector<LogLine>;  // a thread may write at the end of the process
  return *lines;
}
std::atomic<bool> are_handled{false}, do_wait{false};
PyObject* log_receiver = nullptr;  // under the GIL; for the life of the process

bool keep_line(const char* area, std::string_view text) {
  if (!are_handled.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(lines_mutex);
  waiting_lines().emplace_back(area, text);
  do_wait.store(true, std::memory_order_relaxed);
  return true;
}

bool tell_receiver(PyObject* what) {
  const PyRef answer = PyRef::steal(PyObject_CallOneArg(log_receiver, what));
  const bool yes = answer && answer.get() == Py_True;
  if (!answer) PyErr_WriteUnraisable(log_receiver);
  return yes;
}

}  // namespace

void set_log_receiver(PyObject* receiver) {
  Py_INCREF(receiver);
  log_receiver = receiver;
  log::set_sink(keep_line);
}

void begin_log_lines() {
  if (log_receiver == nullptr || !log::any_enabled()) return;
  const SavedError pending;
  are_handled = tell_receiver(Py_None);
}

void send_log_lines() {
  if (!do_wait.load(std::memory_order_relaxed) || log_receiver == nullptr) return;
  std::vector<LogLine> lines;
  {
    const std::lock_guard lock(lines_mutex);
    lines.swap(waiting_lines());
    do_wait = false;
  }
  const SavedError pending;
  for (const auto& [area, text] : lines) {
    const PyRef decoded =
        PyRef::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    const PyRef line = PyRef::steal(decoded ? Py_BuildValue("(sO)", area, decoded.get()) : nullptr);
    if (line)
      tell_receiver(line.get());
    else
      PyErr_Clear();
  }
}

}  // namespace cresset::frontend
