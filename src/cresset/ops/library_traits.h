// Differences between versions of the operator library which programs call. The code which links the library sets them.
#pragma once

#include "ops/op_traits.h"

namespace cresset::ops {

struct LibraryTraits {
  // Whether convolutions of volumes in oneDNN write channels-last when an operand is channels-last.
  bool (*volumes_channels_last)() = [] { return true; };
  // What the library's schema and tags say about an operator without rules: `draws` and `dropout`.
  OpTraits (*described)(graph::OpId) = [](graph::OpId) { return OpTraits(); };
};

LibraryTraits& library_traits();

}  // namespace cresset::ops
