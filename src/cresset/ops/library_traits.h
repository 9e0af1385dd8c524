// What versions of the library whose operators programs call do differently, as whoever links that library finds it.
#pragma once

namespace cresset::ops {

struct LibraryTraits {
  // Whether convolutions of volumes that are left to oneDNN write channels-last where an operand lies so.
  bool (*volumes_channels_last)() = [] { return true; };
};

LibraryTraits& library_traits();

}  // namespace cresset::ops
