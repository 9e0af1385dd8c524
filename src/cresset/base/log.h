// Logging by area: CRESSET_LOG=graph,kernels,guards,recompiles,... A line starts with "[cresset:area] ".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cresset::log {

enum class Area : uint8_t {
#define CRESSET_LOG_AREA(area, name) area,
#include "base/log_areas.def"
#undef CRESSET_LOG_AREA
};

bool enabled(Area area);
void enable(
    std::string_view areas);  // comma separated; replaces the current set; unknown names throw std::invalid_argument
void write(Area area, std::string_view text);
void set_sink(std::function<void(std::string_view line)> sink);  // default: stderr

}  // namespace cresset::log

// Evaluates `text` only when the area is enabled.
#define CRESSET_LOG(area, text)                                  \
  do {                                                           \
    if (::cresset::log::enabled(::cresset::log::Area::area))     \
      ::cresset::log::write(::cresset::log::Area::area, (text)); \
  } while (false)
