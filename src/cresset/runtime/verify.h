// The invariants of a Program.
#pragma once

#include <string>

#include "runtime/program.h"

namespace cresset::runtime {

// Returns an empty string when the invariants hold, else a description of the first violation. The invariants: ids and
// size references are in range, views end at memory, every tensor is written before it is read, and no tensor is used
// after its release.
std::string verify(const Program& program);

}  // namespace cresset::runtime
