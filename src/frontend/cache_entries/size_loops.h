// Programs that hold every round of a loop over sizes. Such a program serves calls of its sizes alone, and compiling
// another program pays where its sizes come often. The first few sizes are compiled. Calls of later sizes run eagerly
// until eager calls of the same sizes have taken a part of the time that a compilation takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>

#include "frontend/cache_entries/cache_entry.h"

namespace cresset::frontend {

// The dtypes and ranks of a call's tensors, as a hash that is not 0; 0 where a tensor has no sizes to compare.
uint64_t kinds_of(const CallLeaves& leaves);

class SizeLoops {
 public:
  using Clock = std::chrono::steady_clock;

  // A call that no cache entry serves: the hash of its sizes, where an entry among these would serve the call but for
  // its sizes and where compiling does not pay; 0 where the call is to be compiled.
  uint64_t eager_sizes(const CacheEntries& among, const TorchState& state, PyObject* args, PyObject* kwargs) const;
  // A call of these sizes ran eagerly. Whether the user is to be warned now, which happens once.
  bool ran_eagerly(uint64_t sizes, Clock::duration took);
  void compiled(const CacheEntry& entry, Clock::duration took);

 private:
  bool pays(uint64_t sizes) const;

  size_t programs_ = 0;
  Clock::duration compile_{};
  std::unordered_map<uint64_t, Clock::duration> eager_;  // by the sizes of a call
  bool warned_ = false;
};

}  // namespace cresset::frontend
