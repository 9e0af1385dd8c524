// Rules of torch.func.vmap that take plain sizes alone, done again on symbolic ones.
#pragma once

#include <torch/library.h>

namespace cresset::bridge {

// While one lives, in the place of torch's own.
class SymbolicBatching {
 public:
  SymbolicBatching();

 private:
  torch::Library library_;
};

}  // namespace cresset::bridge
