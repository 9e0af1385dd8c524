// What tells programs kept on disk by this build from those of another: a hash of the core's sources. Its definition is
// written by the build (cmake/HashSources.cmake).
#pragma once

namespace cresset::driver {

extern const char* const kCompilerVersion;

}  // namespace cresset::driver
