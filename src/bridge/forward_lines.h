// Where operators stand in the user's program, told again by the backward pass that differentiates them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace cresset::bridge {

class ForwardLines {
 public:
  // An operator of this location is met: the node that autograd has just made for it, if any, is known by it.
  void note(uint32_t location);

  // That of the operator which autograd's engine differentiates on this thread. Nothing where the engine is not at
  // work, differentiates what was not met, or runs a function of Python's: that has lines of its own.
  std::optional<uint32_t> differentiated() const;

 private:
  std::vector<std::pair<uint64_t, uint32_t>> lines_;  // autograd's number of the node, ascending; location
};

}  // namespace cresset::bridge
