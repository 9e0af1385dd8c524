// Identifies the build which wrote a program on disk: a hash of the core's sources. The build defines it
// (cmake/HashSources.cmake).
#pragma once

namespace cresset::driver {

extern const char* const kCompilerVersion;

}  // namespace cresset::driver
