// Programs as bytes, for the disk cache. Symbols and operators are stored by name, kernels by their records.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/program.h"

namespace cresset::runtime {

// Returns nullopt when a symbol has no name.
std::optional<std::string> to_bytes(const Program& program, const sym::VarNames& names);

// Complete except for Program::kernels. from_bytes() returns nullopt for malformed bytes and for an unknown symbol.
struct LoadedProgram {
  Program program;
  std::vector<KernelRecord> kernels;
};
std::optional<LoadedProgram> from_bytes(std::string_view bytes,
                                        const std::function<std::optional<sym::VarId>(const std::string&)>& symbol);

}  // namespace cresset::runtime
