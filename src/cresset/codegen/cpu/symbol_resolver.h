#pragma once

namespace cresset::codegen::cpu {

// Which vector-math functions exist: returns the address of e.g. "Sleef_expf16_u10", or nullptr.
using SymbolResolver = void* (*)(const char* name);

}  // namespace cresset::codegen::cpu
