// A piece's effects, repeated at a later call, in two steps: what they need is made, before anything changes what leads
// to it; then they happen.
#pragma once

#include <vector>

#include "frontend/effects.h"

namespace cresset::frontend {

class Replay {
 public:
  Replay(const std::vector<Effect>& effects, Ingredients& with);
  void happen() const;

 private:
  const std::vector<Effect>& effects_;
  std::vector<PyRef> owners_;
  std::vector<std::vector<PyRef>> values_;
};

}  // namespace cresset::frontend
