#include "frontend/cache_entries/growing_containers.h"

#include "frontend/cpython/containers.h"
#include "frontend/feedback/feedback.h"
#include "frontend/feedback/thresholds.h"

extern "C" int cresset_asks_for_lists;  // eval/known.h, which is C

namespace cresset::frontend {
namespace {

using Lists = ByObject<Feedback::GrowingContainer>;

// nullptr: too many containers are recorded, or no compiled function is running.
Feedback::GrowingContainer* known(PyObject* list) {
  Feedback* const feedback = Feedback::current();
  if (feedback == nullptr) return nullptr;
  Lists& lists = feedback->growing;
  if (lists.size() >= threshold::kMostObjects && lists.count(list) == 0) return nullptr;
  return &lists.try_emplace(list, PyRef::borrow(list), Feedback::GrowingContainer{}).first->second.second;
}

void close(PyObject* list) {
  Feedback::GrowingContainer* const verdict = known(list);
  if (verdict == nullptr || verdict->stays_open) return;
  verdict->closed = any_is_growing = true;
  cresset_asks_for_lists = 1;
}

// Removes the containers which only the feedback still holds.
void let_go_of_gone(Lists& lists) {
  std::vector<PyRef> gone;  // destroyed when the table is consistent again
  std::erase_if(lists, [&](auto& entry) {
    if (Py_REFCNT(entry.first) > 1) return false;
    gone.push_back(std::move(entry.second.first));
    return true;
  });
}

}  // namespace

void Contents::count(const StateGuards& guards) {
  guards.each_growing([&](PyObject* list, bool) { ++seen_[list]; });
}

void Contents::drop(const StateGuards& guards) {
  // Items which changed while the length stayed the same become inputs of the next entry.
  guards.each_growing([&](PyObject* list, bool other_length) {
    Feedback::GrowingContainer* const verdict = other_length ? known(list) : nullptr;
    if (verdict != nullptr && ++verdict->dropped >= threshold::kContents) close(list);
  });
}

void Contents::note() const {
  for (const auto& [list, times] : seen_)
    if (times >= threshold::kContents) close(list);
  if (Feedback* const feedback = Feedback::current()) let_go_of_gone(feedback->growing);
}

bool any_is_growing = false;

bool is_among_growing(PyObject* object) {
  const Feedback* const feedback = Feedback::current();
  if (feedback == nullptr || !is_container(object)) return false;
  if (feedback->of_call.closed.count(object) != 0) return true;
  if (feedback->growing.empty()) return false;
  const auto found = feedback->growing.find(object);
  return found != feedback->growing.end() && found->second.second.closed;
}

bool any_growing_here() {
  const Feedback* const feedback = Feedback::current();
  return feedback != nullptr && !(feedback->growing.empty() && feedback->of_call.closed.empty());
}

void leave_growing(PyObject* object) {
  Feedback* const feedback = Feedback::current();
  if (feedback == nullptr || feedback->of_call.closed.erase(object) != 0) return;
  if (Feedback::GrowingContainer* const verdict = known(object)) verdict->closed = false, verdict->stays_open = true;
}

bool may_break_graph(PyObject* object) {
  Feedback* const feedback = Feedback::current();
  return feedback == nullptr || ++feedback->of_call.looks[object] <= threshold::kLooks;
}

void close_argument(PyObject* list) {
  Feedback* const feedback = Feedback::current();
  if (feedback == nullptr) return;
  const auto found = feedback->of_call.looks.find(list);
  if (found != feedback->of_call.looks.end() && found->second > threshold::kLooks) return;
  feedback->of_call.closed.insert(list);
  any_is_growing = true;
  cresset_asks_for_lists = 1;
}

void forget_arguments() {
  if (Feedback* const feedback = Feedback::current()) feedback->of_call.closed.clear();
}

void forget_looks() {
  if (Feedback* const feedback = Feedback::current()) feedback->of_call = {};
}

}  // namespace cresset::frontend
