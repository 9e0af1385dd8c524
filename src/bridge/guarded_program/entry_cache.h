// The cache entries of a compiled function, most recently used first. The driver of C++ functions (cpp_api.cpp) and the
// Python front end (frontend/api/compiled_function.h) keep their entries here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace cresset::bridge {

// Entry: a guarded program with a member `uint64_t used`.
template <class Entry>
class EntryCache {
 public:
  using Pointer = std::shared_ptr<Entry>;

  // The first entry that serves the call; nullptr where none does. A check may run Python code, and other threads
  // meanwhile: the entry is owned across it, and the list may be another one behind it.
  template <class Serves>
  Pointer find(Serves&& serves) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      Pointer entry = entries_[i];
      if (!serves(*entry)) continue;
      use(entry);
      return entry;
    }
    return nullptr;
  }

  // As find(), for readers that share the cache: its order stays, and use() is left to the caller.
  template <class Serves>
  Pointer peek(Serves&& serves) const {
    for (const Pointer& entry : entries_)
      if (serves(*entry)) return entry;
    return nullptr;
  }
  bool is_first(const Pointer& entry) const { return !entries_.empty() && entries_.front() == entry; }

  // The entry serves a call: it is the most recently used entry. The first entry has served the calls before.
  void use(const Pointer& entry) {
    if (!entries_.empty()) entries_.front()->used = ++clock_;
    entry->used = ++clock_;
    const auto here = std::find(entries_.begin(), entries_.end(), entry);
    if (here != entries_.end()) std::rotate(entries_.begin(), here, here + 1);
  }

  void add(Pointer entry) {
    entry->used = ++clock_;
    entries_.insert(entries_.begin(), std::move(entry));
  }
  void erase(const Pointer& entry) { std::erase(entries_, entry); }
  template <class Is>
  size_t erase_if(Is&& is) {
    return std::erase_if(entries_, is);
  }
  void clear() { entries_.clear(); }
  // Takes out the entries, which die when the caller lets go of them.
  template <class Is>
  std::vector<Pointer> extract_if(Is&& is) {
    const auto first =
        std::stable_partition(entries_.begin(), entries_.end(), [&](const Pointer& entry) { return !is(entry); });
    std::vector<Pointer> taken(first, entries_.end());
    entries_.erase(first, entries_.end());
    return taken;
  }

  // Drops the least recently used entry where more than `limit` belong to one group, or more than `most` to all groups
  // together. The added entry stays. Whether an entry was dropped.
  template <class GroupOf>
  bool drop_least_used(const Entry& added, int64_t limit, int64_t most, GroupOf&& group_of) {
    const auto group = group_of(added);
    const auto count =
        std::count_if(entries_.begin(), entries_.end(), [&](const Pointer& e) { return group_of(*e) == group; });
    const bool too_many = count > limit;
    if (!too_many && static_cast<int64_t>(entries_.size()) <= most) return false;
    auto least = entries_.end();
    for (auto e = entries_.begin(); e != entries_.end(); ++e) {
      if (e->get() == &added || (too_many && group_of(**e) != group)) continue;
      if (least == entries_.end() || (*e)->used < (*least)->used) least = e;
    }
    if (least == entries_.end()) return false;
    const Pointer gone = *least;  // dies when the list is in order again
    entries_.erase(least);
    return true;
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const Pointer& operator[](size_t i) const { return entries_[i]; }

 private:
  std::vector<Pointer> entries_;
  uint64_t clock_ = 0;
};

}  // namespace cresset::bridge
