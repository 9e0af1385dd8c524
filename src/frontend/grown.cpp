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

}  // namespace

void Contents::count(const StateFacts& facts) {
  facts.each_grown([&](PyObject* list) { ++seen_[list]; });
}

void Contents::note() const {
  constexpr int kContents = 6;
  constexpr size_t kMost = 4096;
  for (const auto& [list, times] : seen_)
    if (times >= kContents && table().size() < kMost) table().emplace(list, true);
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
  cresset_asks_for_lists = 0;
}

}  // namespace cresset::frontend
