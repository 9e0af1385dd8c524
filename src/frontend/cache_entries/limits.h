// The limit on cache entries of a function, the choice of the entry to drop, and the warning about a guard which keeps
// failing.
#pragma once

#include <string>
#include <unordered_map>

#include "base/guard_failure.h"
#include "frontend/cache_entries/cache_entry.h"

namespace cresset::frontend {

// Counts the guards which made calls miss all cache entries.
class Misses {
 public:
  void note(const GuardFailure& why);
  // The guard which failed most often, its count, and a remedy.
  std::string worst() const;
  void clear() { counts_.clear(); }

 private:
  static std::string guard_of(const std::string& why);  // without the values, which differ from call to call
  struct Count {
    int64_t times = 0;
    GuardKind kind = GuardKind::State;
  };
  std::unordered_map<std::string, Count> counts_;
};

// Drops the least recently used entry when more than `limit` entries exist for a module or object, or more than
// kInstances times `limit` in total. The module or object is the first argument guarded by identity, so that many
// instances of a class do not share a limit. Returns whether an entry was dropped.
inline constexpr int64_t kInstances = 16;
bool drop_least_used(CacheEntries& cache_entries, const CacheEntry& added, int64_t limit);

// Whether another segment may begin at a resume point with these frames. Segments of the same module or object share a
// limit; the module or object is the first argument of the innermost frame with such an argument.
bool has_room(const ResumePoint& point, const ArgSpec& frames, int64_t limit);

// Warns once per function that its captures produced no compiled code.
void warn_in_vain(const std::string& name, const BreakReason& why);

// Warns once per resume point that its calls continue in CPython.
void warn_too_many_resume_entries(ResumePoint& point, int64_t limit);

}  // namespace cresset::frontend
