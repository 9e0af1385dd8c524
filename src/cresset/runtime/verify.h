// The invariants of a Program.
#pragma once

#include <string>

#include "runtime/program.h"

namespace cresset::runtime {

// Empty when they hold, else the first violation, for people: ids and size references are in range, views end at
// memory, every tensor is written before it is read, and nothing is used after its release.
std::string verify(const Program& program);

}  // namespace cresset::runtime
