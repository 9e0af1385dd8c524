// The user's source line of an operator, recorded cheaply: the string is formatted once per capturing instruction.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "bridge/capture/capture.h"
#include "frontend/eval/stack_walk.h"

namespace cresset::frontend {

class LocationTracker {
 public:
  // Sets Graph::current_location to the innermost frame outside of torch and cresset.
  void update(bridge::Capture& capture);

 private:
  bool is_library(PyCodeObject* code);
  uint32_t add(bridge::Capture& capture, const CressetStackFrame& at);
  int line_of(const CressetStackFrame& at);

  struct Key {
    const void* code;
    int instruction;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return reinterpret_cast<size_t>(k.code) * 31 + static_cast<size_t>(k.instruction);
    }
  };
  std::unordered_map<Key, uint32_t, Hash> known_;
  std::unordered_map<const void*, bool> is_library_;
#if PY_VERSION_HEX < 0x030E0000
  struct Lines {
    const char* table = nullptr;  // borrowed, to detect another code at a reused address
    Py_ssize_t size = 0;
    int first = 0;              // line number
    PyCodeAddressRange read{};  // range which was read so far
  };
  std::unordered_map<const void*, Lines> lines_;  // by code
#endif
};

}  // namespace cresset::frontend
