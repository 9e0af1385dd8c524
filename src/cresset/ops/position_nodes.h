// Nodes which compute positions, as known_elements.cpp and affine_elements.cpp read them.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "graph/graph.h"

namespace cresset::ops {

inline constexpr int kDeepest = 64;  // programs decide the length of chains of operators
// Sums of a few numbers of at most this magnitude do not overflow.
inline constexpr int64_t kModerate = int64_t{1} << 48;

// "aten::ge.Scalar" -> "ge"; empty for operators of another library.
inline std::string_view base_name(const graph::Node& node) {
  constexpr std::string_view kLibrary = "aten::";
  std::string_view name = graph::op_name(node.op);
  if (!name.starts_with(kLibrary)) return {};
  name.remove_prefix(kLibrary.size());
  return name.substr(0, name.find('.'));
}

struct Range {
  sym::ExprId start, end, step;
};
// Of aten::arange: (end), (start, end) or (start, end, step), then dtype, layout, device, pin_memory. nullopt: a number
// is no integer.
inline std::optional<Range> range_of(const graph::Node& node, sym::ExprPool& pool) {
  const size_t numbers = node.args.size() - 4;
  std::array<sym::ExprId, 3> given{pool.constant(0), pool.constant(0), pool.constant(1)};
  for (size_t i = 0; i < numbers; ++i) {
    const auto* number = std::get_if<sym::ExprId>(&node.args[i]);
    if (number == nullptr) return std::nullopt;
    given[numbers == 1 ? 1 : i] = *number;
  }
  return Range{given[0], given[1], given[2]};
}

}  // namespace cresset::ops
