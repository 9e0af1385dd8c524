// Kernels without sizes. Loops are collapsed, and every extent, stride and offset becomes a parameter of the kernel, in
// a separate environment. Layers which differ only in sizes (channels, heads, resolution) then share a compilation.
//
// Some numbers stay, because the code is better for them: unit and other tiny coefficients, extents of short loops
// (windows, which are unrolled), and divisors. Parameters keep their sign (>= 0, >= 1) and a hint, nothing else.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "loop/kernel.h"

namespace cresset::lower {

struct GeneralKernel {
  std::shared_ptr<loop::Kernel> kernel;
  std::vector<sym::ExprId> arguments;  // values of kernel->size_symbols(), over the original environment
};

// The result computes the same as `kernel`, over the same buffers, when its parameters have the values of the
// arguments.
GeneralKernel generalize(const loop::Kernel& kernel);

// A cache for many kernels of an environment which learns nothing in the meantime. Identical kernels, as in layers of
// equal sizes, are generalized once.
class Generalized {
 public:
  const GeneralKernel& of(std::shared_ptr<const loop::Kernel> kernel);

 private:
  struct Known {
    std::shared_ptr<const loop::Kernel> kernel;
    GeneralKernel general;
  };
  std::unordered_multimap<size_t, Known> known_;  // by hash
};

}  // namespace cresset::lower
