// The driver: compiles a captured graph to a runnable Program. No other file knows the order of the stages.
#pragma once

#include <memory>
#include <string>

#include "base/compile_options.h"
#include "base/result.h"
#include "graph/graph.h"
#include "runtime/program.h"

namespace cresset::driver {

struct Stats {
  int64_t nodes_captured = 0, nodes_after_passes = 0;
  int64_t kernels = 0, distinct_kernels = 0, extern_calls = 0;
  double ms_passes = 0, ms_lower = 0, ms_codegen = 0;
  int64_t frozen_values = 0;       // constants computed by a separate program (options.freeze)
  int64_t programs_from_disk = 0;  // neither lowered nor generated (compile/program_cache.h)

  // Adds the numbers of another program of the same call.
  void add(const Stats& other) {
    nodes_captured += other.nodes_captured;
    kernels += other.kernels;
    distinct_kernels += other.distinct_kernels;
    extern_calls += other.extern_calls;
    ms_passes += other.ms_passes;
    ms_lower += other.ms_lower;
    ms_codegen += other.ms_codegen;
    frozen_values += other.frozen_values;
    programs_from_disk += other.programs_from_disk;
  }
};

struct Compiled {
  runtime::Program program;
  Stats stats;
  CudaGraphs cuda_graphs = CudaGraphs::Auto;
  std::shared_ptr<GraphTaker> taker;  // not null: owns the code which the program calls
};

// A lowered program with recorded guards and scheduled kernels. The remaining work writes to no shared state: any
// thread may call finish(), once.
class Deferred {
 public:
  virtual ~Deferred() = default;
  virtual const Stats& stats() const = 0;  // without the figures of code generation
  virtual Result<Compiled> finish() = 0;
};

// Takes ownership of the graph. Only failures of code generation give a fallback; an operator without a native form is
// an extern call.
Result<Compiled> compile(std::unique_ptr<graph::Graph> graph, const Options& options);
Result<std::unique_ptr<Deferred>> defer(std::unique_ptr<graph::Graph> graph, const Options& options);

}  // namespace cresset::driver
