// Keywords of the textual graph format, shared by printer and parser.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "graph/graph.h"

namespace cresset::graph::text {

inline constexpr std::array<std::pair<MemoryFormat, std::string_view>, 4> kFormats{{
    {MemoryFormat::Contiguous, "contiguous"},
    {MemoryFormat::Preserve, "preserve"},
    {MemoryFormat::ChannelsLast, "channels_last"},
    {MemoryFormat::ChannelsLast3d, "channels_last_3d"},
}};
inline constexpr std::array<std::pair<DeviceKind, std::string_view>, 3> kDevices{{
    {DeviceKind::Cpu, "cpu"},
    {DeviceKind::Cuda, "cuda"},
    {DeviceKind::Meta, "meta"},
}};
inline constexpr std::array<std::pair<sym::Policy, std::string_view>, 4> kPolicies{{
    {sym::Policy::Dynamic, "dynamic"},
    {sym::Policy::Suggested, "suggested"},
    {sym::Policy::MarkedDynamic, "marked"},
    {sym::Policy::Static, "static"},
}};

template <class Table, class Key>
std::string_view word(const Table& table, Key key) {
  for (const auto& [k, text] : table)
    if (k == key) return text;
  return "?";
}

// Returns the string in quotes, with quotes, backslashes and line ends escaped.
std::string quoted(std::string_view text);

}  // namespace cresset::graph::text
