// Names of generated code for debuggers: gdb's interface for code made at run time.
#pragma once

#include <cstdint>
#include <string>

namespace cresset::codegen::cpu {

// From now on a debugger that is attached, or attached later, shows `name` for these bytes of code: in backtraces, by
// `info symbol`, and as the place of a breakpoint. The registration lasts for the life of the process.
void show_to_debugger(const void* entry, uint64_t bytes, const std::string& name);

}  // namespace cresset::codegen::cpu
