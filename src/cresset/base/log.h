// Logging by area: CRESSET_LOG=graph,kernels,guards,recompiles,... or all. A line on stderr starts with "[cresset:area]
// ".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cresset::log {

enum class Area : uint8_t {
#define CRESSET_LOG_AREA(area, name, meaning) area,
#include "base/log_areas.def"
#undef CRESSET_LOG_AREA
};

bool enabled(Area area);
bool any_enabled();
// Replaces the current set: names separated by commas, or "all"; "help" writes the list of areas to stderr. Unknown
// names throw std::invalid_argument.
void enable(std::string_view areas);
void write(Area area, std::string_view text);
// The sink takes a text of an area, or returns false: it then goes to stderr. Any thread may call it.
using Sink = std::function<bool(const char* area, std::string_view text)>;
void set_sink(Sink sink);
std::string help();

}  // namespace cresset::log

// Evaluates `text` only when the area is enabled.
#define CRESSET_LOG(area, text)                                  \
  do {                                                           \
    if (::cresset::log::enabled(::cresset::log::Area::area))     \
      ::cresset::log::write(::cresset::log::Area::area, (text)); \
  } while (false)
