#include "base/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "base/options.h"

namespace cresset::log {
namespace {

constexpr const char* kNames[] = {
#define CRESSET_LOG_AREA(area, name, meaning) name,
#include "base/log_areas.def"
#undef CRESSET_LOG_AREA
};
constexpr const char* kMeanings[] = {
#define CRESSET_LOG_AREA(area, name, meaning) meaning,
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
    bool found = name == "help" || name == "all";
    if (name == "help") std::fputs(help().c_str(), stderr);
    if (name == "all") mask = ~0u;
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
std::shared_ptr<const Sink> sink;

}  // namespace

bool enabled(Area area) { return (mask().load(std::memory_order_relaxed) >> static_cast<int>(area)) & 1u; }
bool any_enabled() { return mask().load(std::memory_order_relaxed) != 0; }
void enable(std::string_view areas) { mask() = parse(areas); }

std::string help() {
  std::string text = "CRESSET_LOG: areas, separated by commas, or all\n";
  for (size_t i = 0; i < std::size(kNames); ++i) text += fmt::format("  {:12} {}\n", kNames[i], kMeanings[i]);
  return text;
}

void set_sink(Sink new_sink) {
  std::lock_guard lock(sink_mutex);
  sink = new_sink ? std::make_shared<const Sink>(std::move(new_sink)) : nullptr;
}

// The sink is called without the lock: it may wait for other threads that write.
void write(Area area, std::string_view text) {
  const char* const name = kNames[static_cast<size_t>(area)];
  std::shared_ptr<const Sink> taker;
  {
    std::lock_guard lock(sink_mutex);
    taker = sink;
  }
  if (taker != nullptr && (*taker)(name, text)) return;
  const std::string line = fmt::format("[cresset:{}] {}\n", name, text);
  std::fputs(line.c_str(), stderr);
}

}  // namespace cresset::log
