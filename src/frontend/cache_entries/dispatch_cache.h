// Lookup of the fitting cache entry among many, without a linear search.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/cpython/py_ref.h"

namespace cresset::frontend {

struct ArgSpec;
struct CacheEntry;

// Remembers which cache entries (`CacheEntry`) served similar calls. The result is a hint: all guards of the entry are
// still checked.
//
// The similarity hash covers types, dtypes, tensor sizes, and the plain values and identities in the guards of some
// entry. Objects which are new at each call and symbolic numbers do not distinguish entries, so the hash leaves them
// out.
class CallHints {
 public:
  static constexpr size_t kFew = 4;  // a linear search over so few entries is faster than hashing
  using Likely = std::vector<std::weak_ptr<CacheEntry>>;
  const Likely* find(PyObject* args, PyObject* kwargs) const;  // at most kFew, most recently used first; or nullptr
  void put(PyObject* args, PyObject* kwargs, const std::shared_ptr<CacheEntry>& entry);
  void clear();

 private:
  class Hash;
  void learn(const ArgSpec& spec);

  std::unordered_map<size_t, Likely> cache_entries_;
  std::unordered_set<size_t> telling_;  // values and identities in the guards of entries
};

}  // namespace cresset::frontend
