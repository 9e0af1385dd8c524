// A fusion group: the values computed by a loop kernel, and their iteration domain.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "fuse/domain.h"
#include "fuse/memory.h"

namespace cresset::fuse {

// A value of the group. Its element at `index` (expressions over the group's variables) is computed once at each point.
// If the index mentions no Inner variable, it is computed once for each row.
struct Root {
  ValueId value;
  Index index;
  ValueId into;        // the value whose memory receives the element: the value itself, or the concatenation containing
                       // it
  Layout layout;       // of the destination
  bool stored = true;  // false: used only inside the group
};

struct Group {
  std::vector<loop::Dim> dims;  // outer first
  std::vector<Root> roots;
  bool has_inner() const { return !dims.empty() && dims.back().kind == loop::Dim::Kind::Inner; }
};

// The device of the group's values. Its kernel runs there.
Device device_of(const Graph& graph, const Group& group);

// The arguments of a concatenation and their positions in the result.
struct ConcatPart {
  ValueId value;
  size_t dim;
  ExprId start;
};
std::vector<ConcatPart> concat_parts(const Graph& graph, const graph::Node& node);

// The dimensions of the operand which the reduction folds, in the order of its memory: a kernel reads neighbours one
// after another. Positions count in the order of the dimensions, so a reduction to a position keeps that order.
std::vector<size_t> folded_in_order(const Graph& graph, const TensorType& operand, const ops::Reduction& reduction);

// The group which computes a single value. For a reduction the reduced dimensions are Inner, for a scan its dimension.
Group group_of(const Graph& graph, IndexVars& vars, ValueId value, const Layout& layout);
// The group which copies an argument of a concatenation to its window.
Group window_group(const Graph& graph, IndexVars& vars, const ConcatPart& part, ValueId whole, const Layout& layout);
// The group which computes the elements of a pointwise `value` which read this part of a concatenation.
Group section_group(const Graph& graph, IndexVars& vars, ValueId value, const ConcatPart& part, const Layout& layout);

}  // namespace cresset::fuse
