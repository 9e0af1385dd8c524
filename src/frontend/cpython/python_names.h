// The names of the package's Python modules, which the front end looks functions up in.
#pragma once

namespace cresset::frontend::python_names {

inline constexpr const char* kPackage = "cresset";
inline constexpr const char* kBinding = "cresset._C";
inline constexpr const char* kApi = "cresset._api";
inline constexpr const char* kAutograd = "cresset._autograd";
inline constexpr const char* kCached = "cresset._cached";
inline constexpr const char* kCapturePatches = "cresset._capture_patches";
inline constexpr const char* kOutside = "cresset._capture_patches.outside";
inline constexpr const char* kRanges = "cresset._capture_patches.ranges";
inline constexpr const char* kEquivalents = "cresset._equivalents";
inline constexpr const char* kGenuine = "cresset._genuine";
inline constexpr const char* kLoops = "cresset._loops";

}  // namespace cresset::frontend::python_names
