// The error that eager mode raises for an index out of range.
#pragma once

#include <cstdint>

namespace cresset {

enum class IndexFault : uint8_t {
  None,         // the operator reads no indices, or no kernel reports them
  InSelf,       // IndexError without the index
  OfDimension,  // IndexError with index, dimension and size
  AtRuntime,    // the same as RuntimeError
};

}  // namespace cresset
