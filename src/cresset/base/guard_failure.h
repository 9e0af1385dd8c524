// The guard at which a call missed a cache entry: text for messages, and the kind for decisions.
#pragma once

#include <cstdint>
#include <string>

namespace cresset {

enum class GuardKind : uint8_t {
  State,     // of the function, its globals, modules and other objects
  Argument,  // of the call
  Modes,     // grad mode, autocast, inference mode, transforms
  Size,      // a size or stride of a tensor
  Tensor,    // another property of an input tensor
  Number     // an input integer
};

struct GuardFailure {
  std::string text;
  GuardKind kind = GuardKind::State;
  uint32_t position = 0;  // Tensor, Number: among the inputs of the program
};

}  // namespace cresset
