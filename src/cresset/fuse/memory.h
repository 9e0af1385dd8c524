// Which values are in memory, and where: the base value that owns the memory, and the layout over it.
#pragma once

#include <optional>
#include <unordered_map>

#include "fuse/domain.h"
#include "fuse/layout.h"
#include "ops/op_def.h"

namespace cresset::fuse {

struct Place {
  ValueId base;  // an input, a constant, or a value that some step computes
  Layout layout;
};

class Memory {
 public:
  explicit Memory(const Graph& graph);

  // Gives a computed value memory of its own. Before the first find().
  void own(ValueId value) { own(value, own_layout(graph_, graph_.type(value))); }
  void own(ValueId value, Layout layout);
  bool owns(ValueId value) const { return owned_.count(value) != 0; }
  const Layout& layout(ValueId owner) const { return owned_.at(owner).layout; }

  // Where `value` is: its own memory, or a strided view of a place. nullptr: it is in no memory, or its elements do not
  // lie at strides.
  const Place* find(ValueId value);

  // Of the loops of all kernels.
  IndexVars& index_vars() { return index_vars_; }

 private:
  const Graph& graph_;
  IndexVars index_vars_;
  std::unordered_map<ValueId, Place> owned_;
  std::unordered_map<ValueId, std::optional<Place>> views_;
};

// The row of a node's operator when it is compiled by cresset (any class but Extern and Composite), else nullptr.
const ops::OpDef* native(const Graph& graph, graph::NodeId node);
bool is_view(const Graph& graph, ValueId value);

}  // namespace cresset::fuse
