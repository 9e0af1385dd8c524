#include "frontend/cache_entries/limits.h"

#include <algorithm>

#include "frontend/cpython/stats.h"

namespace cresset::frontend {
namespace {

// The object with attributes in an identity guard, also inside a cell. For an object guarded by its parts, its class.
// nullptr for other objects.
PyObject* instance_in(const ArgSpec& spec) {
  if (spec.kind == ArgSpec::Kind::ObjectLayout && spec.layout.kind == ObjectLayout::Kind::Cell &&
      spec.children.size() == 1)
    return instance_in(spec.children[0]);
  if (spec.kind == ArgSpec::Kind::ObjectLayout && spec.layout.kind == ObjectLayout::Kind::Object)
    return PyTuple_GET_ITEM(spec.layout.form.get(), 0);
  if (spec.kind != ArgSpec::Kind::Identity) return nullptr;
  PyObject* object = spec.object.get();
  const bool is_one = !PyType_Check(object) && !PyFunction_Check(object) && !PyModule_Check(object) &&
                      _PyObject_GetDictPtr(object) != nullptr;
  return is_one ? object : nullptr;
}

// The object whose calls the entry serves: the first among its arguments.
PyObject* instance_of(const CacheEntry& entry) {
  for (const ArgSpec& arg : entry.args.children)
    if (PyObject* object = instance_in(arg)) return object;
  return nullptr;
}

// The same for a segment: the first argument of the innermost frame which has such an argument.
PyObject* instance_among(const ArgSpec& frames) {
  constexpr size_t kSlots = 2;  // in frame_contents()
  for (auto frame = frames.children.rbegin(); frame != frames.children.rend(); ++frame) {
    if (frame->children.size() <= kSlots || frame->children[kSlots].children.empty()) continue;
    if (PyObject* object = instance_in(frame->children[kSlots].children[0])) return object;
  }
  return nullptr;
}

const char* remedy(GuardKind kind) {
  switch (kind) {
    case GuardKind::Size:
      return "let the size vary: drop dynamic=False, or cresset.mark_dynamic(tensor, dim), and look for code that "
             "needs its exact value (CRESSET_LOG=guards)";
    case GuardKind::Argument:
    case GuardKind::Tensor:
    case GuardKind::Number:
      return "pass what varies as a tensor, or call a function compiled for each value";
    case GuardKind::Modes:
      return "call it in one mode of torch's";
    case GuardKind::State:
      break;
  }
  return "keep state that changes from call to call out of compiled code (cresset.disable), hold it in a tensor, or "
         "drop the guard with options={'guard_filter_fn': ...} where it does not matter";
}

}  // namespace

void Misses::note(const GuardFailure& why) {
  Count& count = counts_[guard_of(why.text)];
  ++count.times;
  count.kind = why.kind;
}

std::string Misses::guard_of(const std::string& why) {
  static constexpr std::string_view kExpected = ": expected ";
  const size_t at = why.find(kExpected);
  if (at == std::string::npos) return why;
  size_t end = at + kExpected.size();
  while (end < why.size() && std::isalpha(static_cast<unsigned char>(why[end])) != 0) ++end;  // sizes, dtype, ...
  return end > at + kExpected.size() ? why.substr(0, end) : why.substr(0, at);
}

std::string Misses::worst() const {
  const auto most = std::max_element(counts_.begin(), counts_.end(),
                                     [](const auto& a, const auto& b) { return a.second.times < b.second.times; });
  if (most == counts_.end()) return "No guard failed.";
  return "The guard that fails most: " + most->first + " (" + std::to_string(most->second.times) +
         " times). Remedy: " + remedy(most->second.kind) + ".";
}

bool drop_least_used(CacheEntries& cache_entries, const CacheEntry& added, int64_t limit) {
  return cache_entries.drop_least_used(added, limit, limit * kInstances, instance_of);
}

void warn_in_vain(const std::string& name, const BreakReason& why) {
  note_reason(name, {BreakKind::Limits, "nothing came of its captures: " + why.text()});
  PyErr_WarnFormat(
      PyExc_RuntimeWarning, 1,
      "cresset: %s: nothing came of its last captures: %s. Calls that no cache entry serves run eagerly from "
      "now on, and one of them is captured now and then.",
      name.c_str(), why.empty() ? "the calls raised" : why.text().c_str());
  PyErr_Clear();
}

bool has_room(const ResumePoint& point, const ArgSpec& frames, int64_t limit) {
  const auto total = static_cast<int64_t>(point.resume_entries.size());
  if (total < limit) return true;
  if (total >= limit * kInstances) return false;
  PyObject* const instance = instance_among(frames);
  return std::count_if(point.resume_entries.begin(), point.resume_entries.end(),
                       [&](const auto& v) { return instance_among(v->args) == instance; }) < limit;
}

void warn_too_many_resume_entries(ResumePoint& point, int64_t limit) {
  if (std::exchange(point.warned, true)) return;
  PyErr_WarnFormat(PyExc_RuntimeWarning, 2,
                   "cresset: %s has more than %lld resume entries; calls that need another one continue in CPython "
                   "from there. Remedy: keep what varies there (a number read from data, a state) in a tensor.",
                   point.place.text().c_str(), static_cast<long long>(limit));
  PyErr_Clear();
}

}  // namespace cresset::frontend
