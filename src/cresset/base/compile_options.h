// Options of a compilation which change the generated code. They are part of every cache key, except for
// `freeze` and `cuda_graphs`.
#pragma once

#include <cstdint>
#include <memory>

namespace cresset::driver {

class GraphTaker;

// Whether programs on GPUs are recorded as graphs of launches and replayed. Auto: where launches bound a call.
enum class CudaGraphs : uint8_t { Auto, Never, Always };

struct Options {
  bool eager_rounding = false;  // round bf16/fp16 after every operator, as eager mode does
  bool fuse = true;             // false: a kernel for each operator (for bisecting)
  // No written constant of the graph shares memory with another constant, so writes to constants may come early.
  bool constants_apart = false;
  // Values which depend on weights alone are computed once, and weights are laid out for the libraries. Freezing
  // produces a different graph, so this option is not part of any key.
  bool freeze = false;
  CudaGraphs cuda_graphs = CudaGraphs::Auto;  // no part of any key: the code is the same
  // Another compiler, which takes the graphs in place of this one (compile/graph_taker.h); null: none. Its code is in
  // no cache.
  std::shared_ptr<GraphTaker> taker;
};

}  // namespace cresset::driver
