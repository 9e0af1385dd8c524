// Identifies the build which wrote machine code on disk: a hash of the sources which determine a kernel's code. The
// build defines it (cmake/HashSources.cmake).
#pragma once

namespace cresset::codegen {

extern const char* const kCodeVersion;

}  // namespace cresset::codegen
