// Indices from tensors by which kernels read: which of them are known to lie inside, and where the others are reported.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "ops/known_elements.h"

namespace cresset::fuse {

using graph::Graph;
using graph::ValueId;

enum class IndexRange : uint8_t {
  Unknown,
  FromStart,  // 0 <= index < extent
  FromEnd,    // -extent <= index < extent
};

class DataIndices {
 public:
  explicit DataIndices(const Graph& graph);

  // The range in which all elements of `index` are known to lie.
  IndexRange range(ValueId index, sym::ExprId extent);
  // Whether the node is computed by a kernel which reports some of its indices. Such a node is computed once, and
  // whole.
  bool has_reports(graph::NodeId node);

  // A report of indices into dimension `dim` of the first argument of `node`.
  struct Site {
    graph::NodeId node;
    size_t dim;
    bool operator==(const Site&) const = default;
  };
  uint32_t site(const Site& site);  // its position among sites()
  const std::vector<Site>& sites() const { return sites_; }

 private:
  const Graph& graph_;
  ops::KnownElements known_;
  std::unordered_map<uint64_t, IndexRange> ranges_;  // by value and extent
  std::vector<Site> sites_;
};

}  // namespace cresset::fuse
