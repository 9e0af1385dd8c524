// What tells code kept on disk by this build from that of another: a hash of the sources that decide what a kernel
// becomes. Its definition is written by the build (cmake/HashSources.cmake).
#pragma once

namespace cresset::codegen {

extern const char* const kCodeVersion;

}  // namespace cresset::codegen
