// Hash tables keyed by addresses, for the hottest lookups of a capture: several for each instruction of the program.
// Open addressing with linear probing, at most half full. Single entries are never removed; clear() removes all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace cresset {

// A pair of addresses. The pair of null pointers is not a valid key.
struct AddressPair {
  const void* a = nullptr;
  const void* b = nullptr;
  bool operator==(const AddressPair&) const = default;
};

inline uint64_t address_hash(const void* address) {
  return (reinterpret_cast<uintptr_t>(address) >> 4) * 0x9E3779B97F4A7C15ULL;
}
inline uint64_t address_hash(const AddressPair& pair) {
  return (address_hash(pair.a) ^ (reinterpret_cast<uintptr_t>(pair.b) >> 4)) * 0xD6E8FEB86659FD93ULL;
}

template <class Key, class Value>
class AddressTable {
 public:
  struct Entry {
    Key first{};
    [[no_unique_address]] Value second{};
  };

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  Value* find(const Key& key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  const Value* find(const Key& key) const {
    if (size_ == 0) return nullptr;
    const Entry& entry = entries_[place(key)];
    return entry.first == Key{} ? nullptr : &entry.second;
  }
  bool contains(const Key& key) const { return find(key) != nullptr; }

  // Returns the value under the key, which is created if absent, and whether it was created. The pointer is valid until
  // the next insertion.
  std::pair<Value*, bool> add(const Key& key) {
    if (size_ >= most_) [[unlikely]]
      grow();
    Entry& entry = entries_[place(key)];
    const bool fresh = entry.first == Key{};
    if (fresh) entry.first = key, ++size_;
    return {&entry.second, fresh};
  }
  Value& operator[](const Key& key) { return *add(key).first; }
  bool insert(const Key& key) { return add(key).second; }  // returns whether the key is new

  void clear() {
    if (64 * size_ < capacity()) return *this = AddressTable(), void();
    for (size_t i = 0; size_ != 0 && i < capacity(); ++i) entries_[i] = Entry();
    size_ = 0;
  }

  // Calls visit(key, value) for every entry, in no particular order.
  template <class Visit>
  void each(Visit&& visit) {
    std::as_const(*this).each([&](const Key& key, const Value& value) { visit(key, const_cast<Value&>(value)); });
  }
  template <class Visit>
  void each(Visit&& visit) const {
    for (size_t i = 0; i < capacity(); ++i)
      if (!(entries_[i].first == Key{})) visit(entries_[i].first, entries_[i].second);
  }

 private:
  static constexpr int kFirstBits = 7, kMoreBits = 2;  // capacity grows by a factor of four: most keys are placed once

  size_t capacity() const { return 2 * most_; }
  size_t place(const Key& key) const {
    size_t at = address_hash(key) >> shift_;
    while (!(entries_[at].first == key) && !(entries_[at].first == Key{})) at = (at + 1) & (capacity() - 1);
    return at;
  }
  [[gnu::noinline]] void grow() {  // rare: kept out of line so that its callers are small
    const size_t before = capacity();
    const std::unique_ptr<Entry[]> old = std::move(entries_);
    shift_ = before == 0 ? 64 - kFirstBits : shift_ - kMoreBits;
    most_ = size_t{1} << (63 - shift_);
    entries_ = std::make_unique<Entry[]>(capacity());
    for (size_t i = 0; i < before; ++i)
      if (!(old[i].first == Key{})) entries_[place(old[i].first)] = std::move(old[i]);
  }

  std::unique_ptr<Entry[]> entries_;
  int shift_ = 64;  // a hash shifted right by this amount is a position
  size_t size_ = 0, most_ = 0;
};

struct NoValue {};
template <class Key>
using AddressSet = AddressTable<Key, NoValue>;

}  // namespace cresset
