// The user's source lines of forward operators, reported again while the backward pass differentiates them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace cresset::bridge {

class ForwardLines {
 public:
  // Called for an operator of this location. Associates the location with the node which autograd has just made, if
  // any.
  void note(uint32_t location);

  // The location of the operator which autograd's engine currently differentiates on this thread. nullopt: the engine
  // is idle, the operator is unknown, or a Python function runs, which has lines of its own.
  std::optional<uint32_t> differentiated() const;

 private:
  std::vector<std::pair<uint64_t, uint32_t>> lines_;  // sequence number of the autograd node, ascending; location
};

}  // namespace cresset::bridge
