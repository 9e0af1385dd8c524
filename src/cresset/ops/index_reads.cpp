#include "ops/index_reads.h"

#include <algorithm>

#include "base/check.h"
#include "base/device_traits.h"

namespace cresset::ops {

using graph::Graph;
using graph::Node;
using graph::OptionalValue;
using graph::TensorType;
using graph::ValueId;
using loop::ScalarId;
using sym::ExprId;

namespace {

size_t wrapped_dim(const Graph& graph, const OpArgs& args) {
  const int64_t dim = graph.pool().const_value(args.integer(1));
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(args.tensor(0).rank()) : dim);
}

// index.Tensor: the dimensions of the result that belong to the indices.
struct Span {
  size_t front = 0, rank = 0;
};

Span span_of_indices(const OpArgs& args) {
  const std::vector<OptionalValue>& indices = args.values(1);
  Span out;
  size_t first = indices.size(), last = 0, count = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    first = std::min(first, d);
    last = d;
    ++count;
    out.rank = std::max(out.rank, args.type(*indices[d]).rank());
  }
  if (last - first + 1 == count) out.front = first;
  return out;
}

// The kernel reads row `position` of dimension `dim` for each read; the other dimensions of `own` are set.
struct Lookup {
  ScalarId position;
  IndexRead read;
};

ScalarId element_at(ElementContext& context, ValueId table, Index own, const std::vector<Lookup>& lookups) {
  std::optional<ScalarId> inside;
  for (const Lookup& lookup : lookups) {
    const DataIndex found =
        context.data_index(lookup.position, lookup.read.index, table, lookup.read.dim, lookup.read.from_the_end);
    own[lookup.read.dim] = found.index;
    if (!found.inside) continue;
    inside = inside ? context.scalars().binary(loop::Op::BitAnd, *inside, *found.inside) : *found.inside;
  }
  return inside ? context.element_where(*inside, table, own) : context.element(table, own);
}

// A gather reads the other dimensions at the index of its result, which must lie inside.
bool fits_beside(const Graph& graph, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &index = args.tensor(2);
  if (self.rank() != index.rank()) return false;
  const size_t dim = wrapped_dim(graph, args);
  for (size_t d = 0; d < self.rank(); ++d)
    if (d != dim && !graph.env().known_true(graph.pool().le(index.sizes[d], self.sizes[d]))) return false;
  return true;
}

std::vector<IndexRead> reads_of(const Graph& graph, const OpDef& def, const OpArgs& args) {
  std::vector<IndexRead> out;
  switch (def.traits.raises) {
    case Raises::Rows:
      out.push_back({args.value(1), 0, false});
      break;
    case Raises::AlongDim:
      out.push_back({args.value(2), wrapped_dim(graph, args), false, wrapped_dim(graph, args)});
      break;
    case Raises::List:
      for (size_t d = 0; d < args.values(1).size(); ++d)
        if (const OptionalValue& index = args.values(1)[d]) out.push_back({*index, d, true, out.size()});
      break;
    default:
      CRESSET_CHECK(false, "an operator with an index fault reads at indices");
  }
  return out;
}

bool is_plain_index(const TensorType& type) { return type.dtype == DType::I64 || type.dtype == DType::I32; }

// Whether the arguments are those for which the element rule is written.
bool suits(const Graph& graph, const OpDef& def, const OpArgs& args) {
  if (args.tensor(0).rank() == 0) return false;
  if (def.traits.raises == Raises::AlongDim) {
    if (!graph.pool().is_const(args.integer(1))) return false;
    if (def.element == gather_element && !fits_beside(graph, args)) return false;
  }
  const std::vector<IndexRead> reads = reads_of(graph, def, args);
  return !reads.empty() && std::all_of(reads.begin(), reads.end(),
                                       [&](const IndexRead& r) { return is_plain_index(graph.type(r.index)); });
}

}  // namespace

std::vector<IndexRead> index_reads(const Graph& graph, const Node& node) {
  const OpDef& def = *find(node.op);
  if (def.index_fault == IndexFault::None) return {};
  return reads_of(graph, def, OpArgs(graph, node.args));
}

bool reads_in_kernels(const Graph& graph, const Node& node) {
  const OpDef* def = find(node.op);
  return def != nullptr && def->index_fault != IndexFault::None && !node.through_aten && graph.mutations.empty() &&
         traits_of(graph.type(node.results[0]).device.kind).reports_indices &&
         suits(graph, *def, OpArgs(graph, node.args));
}

ScalarId embedding_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const Index row(index.begin(), index.end() - 1);
  const ScalarId position = context.element(args.value(1), row);
  return element_at(context, args.value(0), {index.back(), index.back()}, {{position, {args.value(1), 0, false}}});
}

ScalarId index_select_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const size_t dim = wrapped_dim(context.graph(), args);
  const Index row(args.tensor(2).rank(), index[dim]);
  const ScalarId position = context.element(args.value(2), row);
  return element_at(context, args.value(0), index, {{position, {args.value(2), dim, false}}});
}

ScalarId gather_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const size_t dim = wrapped_dim(context.graph(), args);
  const ScalarId position = context.element(args.value(2), index);
  return element_at(context, args.value(0), index, {{position, {args.value(2), dim, false}}});
}

ScalarId index_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  const Span span = span_of_indices(args);
  const auto begin = index.begin() + static_cast<std::ptrdiff_t>(span.front);
  const auto end = begin + static_cast<std::ptrdiff_t>(span.rank);
  const Index inside(begin, end);
  Index beside(index.begin(), begin);
  beside.insert(beside.end(), end, index.end());
  Index own(args.tensor(0).rank());
  std::vector<Lookup> lookups;
  size_t next = 0;
  for (size_t d = 0; d < own.size(); ++d) {
    const bool is_read = d < args.values(1).size() && args.values(1)[d].has_value();
    if (!is_read) {
      own[d] = beside[next++];
      continue;
    }
    const ValueId read = *args.values(1)[d];
    lookups.push_back({context.broadcast_element(read, inside), {read, d, true}});
  }
  return element_at(context, args.value(0), std::move(own), lookups);
}

}  // namespace cresset::ops
