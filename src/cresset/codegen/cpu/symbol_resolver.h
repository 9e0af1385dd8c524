#pragma once

namespace cresset::codegen::cpu {

// Looks up vector-math functions: returns the address of e.g. "Sleef_expf16_u10", or nullptr.
using SymbolResolver = void* (*)(const char* name);

}  // namespace cresset::codegen::cpu
