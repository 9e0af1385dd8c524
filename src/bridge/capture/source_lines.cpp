#include "bridge/capture/source_lines.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>

#include "bridge/capture/autograd_state.h"

namespace cresset::bridge {

void ForwardLines::note(uint32_t location) {
  const uint64_t made = at::sequence_number::peek();
  if (made != 0 && (lines_.empty() || lines_.back().first < made - 1)) lines_.emplace_back(made - 1, location);
}

std::optional<uint32_t> ForwardLines::differentiated() const {
  if (lines_.empty()) return std::nullopt;
  const auto node = torch::autograd::get_current_node();
  if (node == nullptr || is_python_function(*node)) return std::nullopt;
  const uint64_t number = node->sequence_nr();
  // A node without an operator of its own below it belongs to the previous operator.
  const auto after = std::upper_bound(lines_.begin(), lines_.end(), number,
                                      [](uint64_t n, const auto& line) { return n < line.first; });
  if (after == lines_.begin() || number == UINT64_MAX) return std::nullopt;
  return std::prev(after)->second;
}

}  // namespace cresset::bridge
