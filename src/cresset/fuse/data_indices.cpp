#include "fuse/data_indices.h"

#include <algorithm>

#include "ops/index_reads.h"

namespace cresset::fuse {

using sym::ExprId;

DataIndices::DataIndices(const Graph& graph)
    : graph_(graph),
      known_(graph, [&graph](ExprId a, ExprId b) { return graph.env().known_true(graph.pool().le(a, b)); }) {}

IndexRange DataIndices::range(ValueId index, ExprId extent) {
  const uint64_t key = uint64_t{index.index} << 32 | extent.index;
  if (const auto found = ranges_.find(key); found != ranges_.end()) return found->second;
  sym::ExprPool& pool = graph_.pool();
  const ExprId last = pool.sub(extent, pool.constant(1));
  IndexRange range = IndexRange::Unknown;
  if (known_.all_between(index, pool.constant(0), last))
    range = IndexRange::FromStart;
  else if (known_.all_between(index, pool.neg(extent), last))
    range = IndexRange::FromEnd;
  return ranges_.emplace(key, range).first->second;
}

bool DataIndices::has_reports(graph::NodeId id) {
  const graph::Node& node = graph_.node(id);
  const std::vector<ops::IndexRead> reads = ops::index_reads(graph_, node);
  const std::vector<ExprId>& extents = ops::OpArgs(graph_, node.args).tensor(0).sizes;
  return std::any_of(reads.begin(), reads.end(), [&](const ops::IndexRead& read) {
    const IndexRange found = range(read.index, extents[read.dim]);
    return found == IndexRange::Unknown || (found == IndexRange::FromEnd && !read.from_the_end);
  });
}

uint32_t DataIndices::site(const Site& site) {
  const auto found = std::find(sites_.begin(), sites_.end(), site);
  const auto position = static_cast<uint32_t>(found - sites_.begin());
  if (found == sites_.end()) sites_.push_back(site);
  return position;
}

}  // namespace cresset::fuse
