// Rules of torch.func.vmap which accept only plain sizes, implemented again for symbolic sizes.
#pragma once

#include <torch/library.h>

namespace cresset::bridge {

// RAII: replaces torch's own rules.
class SymbolicBatching {
 public:
  SymbolicBatching();

 private:
  torch::Library library_;
};

}  // namespace cresset::bridge
