// Programs as bytes, for the disk cache. Symbols go by name, operators by theirs, kernels by their records.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/program.h"

namespace cresset::runtime {

// nullopt when a symbol has no name.
std::optional<std::string> to_bytes(const Program& program, const sym::VarNames& names);

// Complete but for Program::kernels. nullopt when the bytes are no program, or name a symbol that `symbol` lacks.
struct LoadedProgram {
  Program program;
  std::vector<KernelRecord> kernels;
};
std::optional<LoadedProgram> from_bytes(std::string_view bytes,
                                        const std::function<std::optional<sym::VarId>(const std::string&)>& symbol);

}  // namespace cresset::runtime
