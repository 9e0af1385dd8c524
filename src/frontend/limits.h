// How many variants of a function are kept, which one goes, and what is said of a guard that keeps failing.
#pragma once

#include <string>
#include <unordered_map>

#include "frontend/variant.h"

namespace cresset::frontend {

// Why calls found no variant, by guard.
class Misses {
 public:
  void note(const std::string& why) { ++counts_[guard_of(why)]; }
  // The guard that failed most often, how often, and what to do about it.
  std::string worst() const;
  void clear() { counts_.clear(); }

 private:
  static std::string guard_of(const std::string& why);  // without the values that differ from call to call
  std::unordered_map<std::string, int64_t> counts_;
};

// Drops the least used variant when there are more than `limit` for one module or object (the first argument that is
// guarded by identity: many instances of a class do not share a limit), or kInstances times as many in all. Says
// whether it did.
inline constexpr int64_t kInstances = 16;
bool drop_least_used(Variants& variants, const Variant& added, int64_t limit);

// Whether another piece may begin at a point with these frames: the pieces of one module or object (the first argument
// of the innermost frame that has one) share a limit.
bool has_room(const Point& point, const ArgSpec& frames, int64_t limit);

// Once for each function: why nothing came of its captures.
void warn_in_vain(const std::string& name, const std::string& why);

// Once a point: its calls go on in CPython.
void warn_too_many_successors(Point& point, int64_t limit);

}  // namespace cresset::frontend
