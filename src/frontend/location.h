// The user's line behind an operator, recorded cheaply: formatted once for each instruction that captures.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "bridge/capture.h"

namespace cresset::frontend {

class LocationTracker {
 public:
  // Sets Graph::current_location to the innermost frame outside torch's own package.
  void update(bridge::Capture& capture);

 private:
  struct Key {
    const void* code;
    int line;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return reinterpret_cast<size_t>(k.code) * 31 + static_cast<size_t>(k.line);
    }
  };
  std::unordered_map<Key, uint32_t, Hash> known_;
  std::unordered_map<const void*, bool> is_library_;
};

}  // namespace cresset::frontend
