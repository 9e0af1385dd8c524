// Reference semantics of graphs: runs node after node through the operator's element rule, each as a separate kernel in
// the slow loop interpreter. It is the oracle for fusion and lowering: it has no layouts, no fusion, no reuse.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace cresset::ops {

// Row-major, regardless of the strides of the represented value.
struct HostTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::vector<std::byte> data;

  int64_t numel() const;
  static HostTensor zeros(DType dtype, std::vector<int64_t> sizes);
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
};

struct Interpreted {
  std::vector<HostTensor> outputs;
  std::vector<HostTensor> mutated;  // final contents, in Graph::mutations order
};

// Symbols take their values from the sizes of inputs and constants which are plain symbols, else from their hints.
// Composite operators are decomposed on demand, which appends nodes to the graph but leaves its order unchanged.
// Returns a fallback when no rule can compute an operator.
Result<Interpreted> interpret(graph::Graph& graph, std::span<const HostTensor> inputs,
                              std::span<const HostTensor> constants = {});

}  // namespace cresset::ops
