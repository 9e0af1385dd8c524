// Reference semantics of graphs: runs one node at a time through the operator's own element rule, each as a kernel of
// its own in the slow loop interpreter. The oracle for fusion and lowering: it knows no layouts, no fusion, no reuse.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace cresset::ops {

// Row-major whatever the strides of the value it stands for.
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

// Symbols take their values from the sizes of the inputs and constants where these are plain symbols, else their hints.
// Composite operators are decomposed as they are met, which appends to the graph but leaves its order as it was.
// Fallback: an operator has no rule that computes it.
Result<Interpreted> interpret(graph::Graph& graph, std::span<const HostTensor> inputs,
                              std::span<const HostTensor> constants = {});

}  // namespace cresset::ops
