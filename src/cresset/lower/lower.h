// Lowers a graph of primitives to loop kernels, extern calls and a memory plan.
#pragma once

#include <memory>
#include <vector>

#include "base/compile_options.h"
#include "graph/graph.h"
#include "loop/kernel.h"
#include "runtime/program.h"

namespace cresset::lower {

struct Lowered {
  runtime::Program program;                            // complete except for Program::kernels
  std::vector<std::shared_ptr<loop::Kernel>> kernels;  // indexed by Launch::kernel; equal kernels may be shared
};

Result<Lowered> lower(const graph::Graph& graph, const driver::Options& options);

}  // namespace cresset::lower
