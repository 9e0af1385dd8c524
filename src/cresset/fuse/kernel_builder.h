// Builds a loop kernel from a fusion group by pull. Each root asks for its element, operators ask for the elements of
// their arguments, and loads from memory end the recursion. This file does not decide about fusion; build_kernel
// reports whether a group can be a kernel.
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
  std::vector<ValueId> buffers;  // the base value of each kernel buffer; invalid: a report of indices
  std::vector<ValueId> reads;    // loaded bases, in order of first use
  struct Report {
    uint32_t buffer, site;  // of DataIndices
  };
  std::vector<Report> reports;
};

struct BuildLimits {
  size_t scalars = 2000;
  size_t buffers = 32;
  size_t reductions = 8;
};

// Builds kernels for the groups of a graph.
struct Build {
  const Graph& graph;
  Memory& memory;
  const driver::Options& options;
  const RoundedValues& rounded;
};

// Returns nullopt when the group cannot be a kernel. Either a limit is exceeded, or a value of the group is read at an
// index other than its own. The value would then be computed twice; a reduction could not be computed at all. A group
// of a single value always builds, without limits.
std::optional<BuiltKernel> build_kernel(const Build& build, const Group& group, const BuildLimits* limits);

// Returns the index at which `group` reads `value` when it is not loaded from memory. Returns nullopt when the group
// reads it at no index or at several.
std::optional<Index> asked_index(const Build& build, const Group& group, ValueId value);

}  // namespace cresset::fuse
