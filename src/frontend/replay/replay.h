// Replay of a segment's side effects at a later call, in two steps. The constructor creates all values while the paths
// to them are still unchanged. happen() then performs the writes.
#pragma once

#include <vector>

#include "frontend/replay/side_effects.h"

namespace cresset::frontend {

class Replay {
 public:
  Replay(const std::vector<ReplayedEffect>& side_effects, Ingredients& with);
  void happen() const;

 private:
  const std::vector<ReplayedEffect>& side_effects_;
  std::vector<PyRef> owners_;
  std::vector<std::vector<PyRef>> values_;
};

}  // namespace cresset::frontend
