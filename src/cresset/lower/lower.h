// A graph of primitives into loop kernels, extern calls and a memory plan.
#pragma once

#include <memory>
#include <vector>

#include "base/compile_options.h"
#include "graph/graph.h"
#include "loop/kernel.h"
#include "runtime/program.h"

namespace cresset::lower {

struct Lowered {
  runtime::Program program;                            // complete but for Program::kernels
  std::vector<std::shared_ptr<loop::Kernel>> kernels;  // Launch::kernel indexes these; equal ones may be one
};

Result<Lowered> lower(const graph::Graph& graph, const driver::Options& options);

}  // namespace cresset::lower
