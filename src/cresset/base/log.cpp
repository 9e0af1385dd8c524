#include "base/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <stdexcept>

#include "base/options.h"

namespace cresset::log {
namespace {

constexpr std::string_view kNames[] = {
#define CRESSET_LOG_AREA(area, name) name,
#include "base/log_areas.def"
#undef CRESSET_LOG_AREA
};

uint32_t parse(std::string_view areas) {
  uint32_t mask = 0;
  while (!areas.empty()) {
    const size_t comma = areas.find(',');
    const std::string_view name = areas.substr(0, comma);
    areas = comma == std::string_view::npos ? std::string_view{} : areas.substr(comma + 1);
    if (name.empty()) continue;
    bool found = false;
    for (size_t i = 0; i < std::size(kNames); ++i) {
      if (kNames[i] != name) continue;
      mask |= 1u << i;
      found = true;
    }
    if (!found)
      throw std::invalid_argument(fmt::format("unknown log area '{}'; expected some of {}", name,
                                              fmt::join(std::begin(kNames), std::end(kNames), ", ")));
  }
  return mask;
}

std::atomic<uint32_t>& mask() {
  static std::atomic<uint32_t> value{parse(option(Option::LOG))};
  return value;
}

std::mutex sink_mutex;
std::function<void(std::string_view)> sink;

}  // namespace

bool enabled(Area area) { return (mask().load(std::memory_order_relaxed) >> static_cast<int>(area)) & 1u; }
void enable(std::string_view areas) { mask() = parse(areas); }

void set_sink(std::function<void(std::string_view)> new_sink) {
  std::lock_guard lock(sink_mutex);
  sink = std::move(new_sink);
}

void write(Area area, std::string_view text) {
  const std::string line = fmt::format("[cresset:{}] {}\n", kNames[static_cast<size_t>(area)], text);
  std::lock_guard lock(sink_mutex);
  if (sink)
    sink(line);
  else
    std::fputs(line.c_str(), stderr);
}

}  // namespace cresset::log
