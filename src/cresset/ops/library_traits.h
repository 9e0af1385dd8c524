// Differences between versions of the operator library which programs call. The code which links the library sets them.
#pragma once

namespace cresset::ops {

struct LibraryTraits {
  // Whether convolutions of volumes in oneDNN write channels-last when an operand is channels-last.
  bool (*volumes_channels_last)() = [] { return true; };
};

LibraryTraits& library_traits();

}  // namespace cresset::ops
