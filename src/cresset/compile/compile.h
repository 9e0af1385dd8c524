// The driver: a captured graph in, a runnable Program out. The one place that knows the order of stages.
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
  int64_t frozen_values = 0;       // constants that a program of their own computes (options.freeze)
  int64_t programs_from_disk = 0;  // neither lowered nor generated (compile/program_cache.h)

  // Of another program that the same call runs.
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
};

// A program that is lowered, with guards asked for and kernels scheduled. What is left to do writes to nothing that
// others read: finish() may be called from any thread, once.
class Deferred {
 public:
  virtual ~Deferred() = default;
  virtual const Stats& stats() const = 0;  // what code generation takes is missing
  virtual Result<Compiled> finish() = 0;
};

// Takes the graph over. Fallback only for code generation failures: whatever has no native form is an extern call.
Result<Compiled> compile(std::unique_ptr<graph::Graph> graph, const Options& options);
Result<std::unique_ptr<Deferred>> defer(std::unique_ptr<graph::Graph> graph, const Options& options);

}  // namespace cresset::driver
