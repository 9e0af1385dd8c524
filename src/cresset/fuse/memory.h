// The memory of values: for each value in memory, the base value which owns the memory, and the layout over it.
#pragma once

#include <optional>
#include <unordered_map>

#include "fuse/data_indices.h"
#include "fuse/domain.h"
#include "fuse/layout.h"
#include "ops/op_def.h"

namespace cresset::fuse {

struct Place {
  ValueId base;  // an input, a constant, or a value computed by a step
  Layout layout;
};

class Memory {
 public:
  explicit Memory(const Graph& graph);

  // Gives a computed value its own memory. Call this before the first find().
  void own(ValueId value) { own(value, own_layout(graph_, graph_.type(value))); }
  void own(ValueId value, Layout layout);
  bool owns(ValueId value) const { return owned_.count(value) != 0; }
  const Layout& layout(ValueId owner) const { return owned_.at(owner).layout; }

  // Returns the place of `value`: its own memory, or a strided view of a place. Returns nullptr when the value is not
  // in memory, or when its elements do not lie at strides.
  const Place* find(ValueId value);

  // The index variables for the loops of all kernels.
  IndexVars& index_vars() { return index_vars_; }
  DataIndices& data_indices() { return data_indices_; }

 private:
  const Graph& graph_;
  IndexVars index_vars_;
  DataIndices data_indices_;
  std::unordered_map<ValueId, Place> owned_;
  std::unordered_map<ValueId, std::optional<Place>> views_;
};

// Returns the OpDef of a node when cresset compiles its operator, else nullptr. Of the class Extern these are operators
// that read at indices, on devices whose kernels report indices out of range.
const ops::OpDef* native(const Graph& graph, graph::NodeId node);
bool is_view(const Graph& graph, ValueId value);

}  // namespace cresset::fuse
