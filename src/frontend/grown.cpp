#include "frontend/grown.h"

#include <unordered_map>

extern "C" int cresset_asks_for_lists;  // eval/known.h, which is C

namespace cresset::frontend {
namespace {

// Whether it is closed, or had better not be.
std::unordered_map<PyObject*, bool>& table() {
  static auto& known = *new std::unordered_map<PyObject*, bool>;  // not destroyed after Python
  return known;
}

// By how many variants that are dropped it was found with other contents.
std::unordered_map<PyObject*, int>& dropped() {
  static auto& known = *new std::unordered_map<PyObject*, int>;
  return known;
}

constexpr size_t kMost = 4096;

}  // namespace

void Contents::count(const StateFacts& facts) {
  facts.each_grown([&](PyObject* list, bool) { ++seen_[list]; });
}

void Contents::drop(const StateFacts& facts) {
  facts.each_grown([&](PyObject* list, bool is_longer) {
    if (is_longer && dropped().size() < kMost) ++dropped()[list];
  });
}

void Contents::note() const {
  constexpr int kContents = 6, kDropped = 16;
  const auto dropped_before = [](PyObject* list) {
    const auto found = dropped().find(list);
    return found != dropped().end() ? found->second : 0;
  };
  for (const auto& [list, times] : seen_)
    if ((times >= kContents || dropped_before(list) >= kDropped) && table().size() < kMost) table().emplace(list, true);
  cresset_asks_for_lists = table().empty() ? 0 : 1;
}

bool any_grown() { return !table().empty(); }

bool has_grown(PyObject* object) {
  if (table().empty()) return false;
  const auto found = table().find(object);
  return found != table().end() && found->second;
}

void leave_growing(PyObject* object) { table()[object] = false; }

void forget_grown() {
  table().clear();
  dropped().clear();
  cresset_asks_for_lists = 0;
}

}  // namespace cresset::frontend
