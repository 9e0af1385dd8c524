// A fusion group: the values that one loop kernel computes, and the domain it runs over.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "fuse/domain.h"
#include "fuse/memory.h"

namespace cresset::fuse {

// A value of the group: its element at `index` (expressions over the group's variables) is computed once at each
// point, or once a row when the index mentions no Inner variable.
struct Root {
  ValueId value;
  Index index;
  ValueId into;        // whose memory receives it: the value itself, or the concatenation it is a window of
  Layout layout;       // of the destination
  bool stored = true;  // false: only the group itself uses it
};

struct Group {
  std::vector<loop::Dim> dims;  // outer first
  std::vector<Root> roots;
  bool has_inner() const { return !dims.empty() && dims.back().kind == loop::Dim::Kind::Inner; }
};

// The arguments of a concatenation and where they lie in the result.
struct ConcatPart {
  ValueId value;
  size_t dim;
  ExprId start;
};
std::vector<ConcatPart> concat_parts(const Graph& graph, const graph::Node& node);

// The group that computes one value and nothing else. For a reduction the reduced dimensions are Inner.
Group group_of(const Graph& graph, IndexVars& vars, ValueId value, const Layout& layout);
// The group that copies an argument of a concatenation into its window.
Group window_group(const Graph& graph, IndexVars& vars, const ConcatPart& part, ValueId whole, const Layout& layout);
// The group that computes the elements of a pointwise `value` that read this part of a concatenation.
Group section_group(const Graph& graph, IndexVars& vars, ValueId value, const ConcatPart& part, const Layout& layout);

}  // namespace cresset::fuse
