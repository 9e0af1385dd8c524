// Kernels without sizes: loops are collapsed, and every extent, stride and offset becomes a parameter of the kernel, in
// an environment of its own. Layers that differ in sizes only (channels, heads, resolution) then share one compilation.
//
// What stays a number, because the code is better for it: unit and other tiny coefficients, extents of short loops
// (windows, which are unrolled), and divisors. Parameters keep their sign (>= 0, >= 1) and a hint, nothing else.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "loop/kernel.h"

namespace cresset::lower {

struct GeneralKernel {
  std::shared_ptr<loop::Kernel> kernel;
  std::vector<sym::ExprId> arguments;  // over the given kernel's environment: kernel->size_symbols(), in that order
};

// Computes what `kernel` computes, over the same buffers, when its parameters are given the arguments' values.
GeneralKernel generalize(const loop::Kernel& kernel);

// The same for many kernels of one environment, in which nothing is learned meanwhile: of kernels that are the same to
// the letter, as layers of equal sizes have them, the first is generalized.
class Generalized {
 public:
  const GeneralKernel& of(std::shared_ptr<const loop::Kernel> kernel);

 private:
  struct Known {
    std::shared_ptr<const loop::Kernel> kernel;
    GeneralKernel general;
  };
  std::unordered_multimap<size_t, Known> known_;  // by a hash
};

}  // namespace cresset::lower
