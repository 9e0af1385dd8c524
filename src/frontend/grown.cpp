#include "frontend/grown.h"

#include <unordered_map>
#include <unordered_set>

#include "frontend/c_functions.h"
#include "frontend/compiled_function.h"

extern "C" int cresset_asks_for_lists;  // eval/known.h, which is C

namespace cresset::frontend {
namespace {

// Whether it is closed, or had better not be.
std::unordered_map<PyObject*, bool>& lists() {
  static auto& known = *new std::unordered_map<PyObject*, bool>;  // not destroyed after Python
  return known;
}

// How many variants that were dropped had held it to another length.
std::unordered_map<PyObject*, int>& dropped() {
  static auto& times = *new std::unordered_map<PyObject*, int>;  // not destroyed after Python
  return times;
}

std::unordered_set<PyObject*>& arguments() {
  static auto& closed = *new std::unordered_set<PyObject*>;  // not destroyed after Python
  return closed;
}

// How often a piece ended because a program looked into it, in the call that did so last.
struct Looks {
  int64_t call = -1;
  int count = 0;
};

std::unordered_map<PyObject*, Looks>& looks() {
  static auto& times = *new std::unordered_map<PyObject*, Looks>;  // not destroyed after Python
  return times;
}

constexpr int kContents = 6;
// Where a loop looks into it item after item, pieces without end cost more than a program for each length.
constexpr int kLooks = 12;
constexpr size_t kMost = 4096;

void note_any() { any_has_grown = !lists().empty() || !arguments().empty(); }

}  // namespace

void Contents::count(const StateFacts& facts) {
  facts.each_grown([&](PyObject* list, bool) { ++seen_[list]; });
}

void Contents::drop(const StateFacts& facts) {
  // Items that are others in a list of this length are inputs of the next variant.
  facts.each_grown([&](PyObject* list, bool other_length) {
    if (!other_length) return;
    if (dropped().size() < kMost || dropped().count(list) != 0) ++dropped()[list];
  });
}

void Contents::note() const {
  const auto close = [](PyObject* list, int times) {
    if (times >= kContents && lists().size() < kMost) lists().emplace(list, true);
  };
  for (const auto& [list, times] : seen_) close(list, times);
  for (const auto& [list, times] : dropped()) close(list, times);
  note_any();
  cresset_asks_for_lists = any_grown() ? 1 : 0;
}

bool any_has_grown = false;

bool is_among_grown(PyObject* object) {
  if (!is_container(object)) return false;  // no container: what lies where one was that is gone
  if (arguments().count(object) != 0) return true;
  if (lists().empty()) return false;
  const auto found = lists().find(object);
  return found != lists().end() && found->second;
}

void leave_growing(PyObject* object) {
  if (arguments().erase(object) == 0) lists()[object] = false;
  note_any();
}

bool may_end_a_piece(PyObject* object) {
  if (looks().size() >= kMost && looks().count(object) == 0) return true;
  Looks& known = looks()[object];
  if (const int64_t call = live_totals().calls; known.call != call) known = {.call = call};
  return ++known.count <= kLooks;
}

void close_argument(PyObject* list) {
  if (const auto found = looks().find(list); found != looks().end() && found->second.count > kLooks) return;
  arguments().insert(list);
  note_any();
  cresset_asks_for_lists = 1;
}

void forget_arguments() {
  arguments().clear();
  note_any();
  cresset_asks_for_lists = lists().empty() ? 0 : 1;
}

void forget_grown() {
  lists().clear();
  dropped().clear();
  looks().clear();
  forget_arguments();
}

}  // namespace cresset::frontend
