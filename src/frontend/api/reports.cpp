#include "frontend/api/reports.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/log.h"
#include "frontend/cpython/errors.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/cpython/stats.h"
#include "frontend/session/entered_frames.h"
#include "frontend/values/pending_error.h"

namespace cresset::frontend {
namespace {

bool is_call_of_module(PyObject* function) {
  if (!PyMethod_Check(function) || !PyFunction_Check(PyMethod_GET_FUNCTION(function))) return false;
  const auto* called = (PyFunctionObject*)PyMethod_GET_FUNCTION(function);
  return PyUnicode_CompareWithASCIIString(called->func_name, "_wrapped_call_impl") == 0;
}

// The function with the parameters: of a module, its forward.
PyRef parameters_of(PyObject* function) {
  if (!is_call_of_module(function)) return PyRef::borrow(function);
  PyRef forward = PyRef::steal(PyObject_GetAttrString((PyObject*)Py_TYPE(PyMethod_GET_SELF(function)), "forward"));
  if (!forward) PyErr_Clear();
  return forward;
}

// The name of the positional parameter at this place of the call; empty for others.
std::string parameter_name(PyObject* function, size_t position) {
  const PyRef owner = parameters_of(function);
  PyObject* plain = owner.get();
  if (plain != nullptr && PyMethod_Check(plain)) plain = PyMethod_GET_FUNCTION(plain);
  if (plain == nullptr || !PyFunction_Check(plain)) return {};
  auto* code = (PyCodeObject*)PyFunction_GET_CODE(plain);
  position += PyMethod_Check(function);  // self
  if (position >= static_cast<size_t>(code->co_argcount)) return {};
  const PyRef names = PyRef::steal(PyCode_GetVarnames(code));
  if (!names) return PyErr_Clear(), std::string();
  return utf8(PyTuple_GET_ITEM(names.get(), static_cast<Py_ssize_t>(position)));
}

// "argument x['key']" for "args[0]['key']" and "kwargs['x']['key']".
std::string readable_path(PyObject* function, std::string_view path) {
  for (const std::string_view before : {std::string_view("args["), std::string_view("kwargs['")}) {
    if (!path.starts_with(before)) continue;
    const size_t end = path.find(']');
    if (end == std::string_view::npos) break;
    const std::string_view key = path.substr(before.size(), end - before.size());
    const bool by_name = before.front() == 'k';
    if (!by_name && !std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) break;
    const std::string name = by_name ? std::string(key.substr(0, key.size() - 1))
                                     : parameter_name(function, static_cast<size_t>(std::atoi(key.data())));
    if (!name.empty()) return "argument " + name + std::string(path.substr(end + 1));
  }
  if (path == "args") return "positional arguments";
  if (path == "kwargs") return "keyword arguments";
  return std::string(path);
}

// A value that is no constant is known by its type: "another Parameter".
std::string before_the_change(std::string_view value) {
  constexpr std::string_view kAnother = "another ";
  return value.starts_with(kAnother) ? "a " + std::string(value.substr(kAnother.size())) : std::string(value);
}

}  // namespace

std::string name_of(PyObject* function) {
  if (is_call_of_module(function)) return Py_TYPE(PyMethod_GET_SELF(function))->tp_name;
  const PyRef name = PyRef::steal(PyObject_GetAttrString(function, "__qualname__"));
  if (!name) {
    PyErr_Clear();
    return Py_TYPE(function)->tp_name;
  }
  return utf8(name.get());
}

std::string readable_guard(PyObject* function, const std::string& failure) {
  constexpr std::string_view kExpected = ": expected ", kGot = ", got ";
  const std::string_view text = failure;
  const size_t expected = text.find(kExpected);
  if (expected == std::string_view::npos || text.substr(0, expected).find(' ') != std::string_view::npos)
    return failure;
  const std::string path = readable_path(function, text.substr(0, expected)) + ": ";
  const size_t begin = expected + kExpected.size(), got = text.rfind(kGot);
  if (got == std::string_view::npos || got < begin) return path + "expected " + std::string(text.substr(begin));
  return path + before_the_change(text.substr(begin, got - begin)) + " -> " +
         std::string(text.substr(got + kGot.size()));
}

void note_recompile(const std::string& line) {
  live_totals().recompiles.push_back(line);
  CRESSET_LOG(Recompiles, line);
}

void record_break(CacheEntry& entry, const std::string& name) {
  ++live_totals().graph_breaks;
  note_reason(name, entry.eager_reason);
  CRESSET_LOG(GraphBreaks, name + " runs eagerly: " + entry.eager_reason.text() + " " + entry.eager_reason.advice());
}

bool note_watched(const std::string& name, bool fullgraph) {
  CRESSET_LOG(GraphBreaks, "one call runs eagerly: " + name + ": " + kWatched);
  const NotedReason noted{name, {BreakKind::Debugger, kWatched}};
  std::vector<NotedReason>& reasons = live_totals().break_reasons;
  if (std::find(reasons.begin(), reasons.end(), noted) == reasons.end()) reasons.push_back(noted);
  if (fullgraph) {
    set_error("CaptureError", "cresset: fullgraph=True, but " + name + " cannot be captured: " + kWatched +
                                  "; remedy: " + "call it once before they begin, or drop fullgraph=True");
    return false;
  }
  static bool warned = false;
  if (std::exchange(warned, true)) return true;
  // The observers see the program's events alone, not those of the warning.
  PyThreadState* const thread = PyThreadState_Get();
  PyThreadState_EnterTracing(thread);
  PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "cresset: %s runs eagerly: %s; calls are captured when they have ended",
                   name.c_str(), kWatched);
  PyErr_Clear();
  PyThreadState_LeaveTracing(thread);
  return true;
}

}  // namespace cresset::frontend
