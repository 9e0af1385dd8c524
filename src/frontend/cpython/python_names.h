// The names of the package's Python modules, which the front end looks functions up in.
#pragma once

namespace cresset::frontend::python_names {

inline constexpr const char* kPackage = "cresset";
inline constexpr const char* kBinding = "cresset._C";
inline constexpr const char* kApi = "cresset._api.compile";
inline constexpr const char* kBackends = "cresset._api.backends";
inline constexpr const char* kAutograd = "cresset._polyfills.autograd";
inline constexpr const char* kCached = "cresset._polyfills.functools";
inline constexpr const char* kSubstitutes = "cresset._substitutes";
inline constexpr const char* kGraphBreaks = "cresset._substitutes.graph_breaks";
inline constexpr const char* kRanges = "cresset._substitutes.ranges";
inline constexpr const char* kPolyfills = "cresset._polyfills.builtins";
inline constexpr const char* kGenuine = "cresset._genuine";
inline constexpr const char* kPlainFloats = "cresset._polyfills.plain_floats";
inline constexpr const char* kLoops = "cresset._polyfills.itertools";

}  // namespace cresset::frontend::python_names
