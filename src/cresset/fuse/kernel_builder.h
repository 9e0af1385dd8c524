// A fusion group as a loop kernel, by pull: each root asks for its element, operators ask for the elements of their
// arguments, and the asking ends at memory. Nothing here decides what to fuse; build_kernel says whether it can be.
#pragma once

#include <memory>
#include <unordered_set>

#include "base/compile_options.h"
#include "fuse/group.h"
#include "fuse/rounding.h"
#include "ops/context.h"

namespace cresset::fuse {

struct BuiltKernel {
  std::unique_ptr<loop::Kernel> kernel;
  std::vector<ValueId> buffers;  // the base value of each kernel buffer
  std::vector<ValueId> reads;    // bases loaded from, in order of first use
};

struct BuildLimits {
  size_t scalars = 2000;
  size_t buffers = 32;
  size_t reductions = 8;
};

// Builds kernels for groups of one graph.
struct Build {
  const Graph& graph;
  Memory& memory;
  const driver::Options& options;
  const RoundedValues& rounded;
};

// nullopt when the group is no kernel: one of its values is asked for at another index than its own (it would be
// computed twice; a reduction could not be computed at all), or a limit is exceeded. Groups of one value always build,
// without limits.
std::optional<BuiltKernel> build_kernel(const Build& build, const Group& group, const BuildLimits* limits);

// The index at which `group` asks for `value` when it is not loaded from memory; nullopt when it asks at none or at
// several.
std::optional<Index> asked_index(const Build& build, const Group& group, ValueId value);

}  // namespace cresset::fuse
