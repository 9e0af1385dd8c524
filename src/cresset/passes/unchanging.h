// Values of a graph which are equal at every call: constants which keep their contents, and values computed from these
// alone, at constant sizes.
#pragma once

#include <unordered_map>
#include <vector>

#include "passes/rewriter.h"

namespace cresset::passes {

class Unchanging {
 public:
  // fixed: by position, which of Graph::constants keep their contents.
  Unchanging(const Graph& graph, const std::vector<bool>& fixed);

  bool contains(ValueId v) const { return known_.contains(v); }
  void note(NodeId id);  // adds a node appended since construction
  // For a contained value. elements_read(): number of elements of the constants it depends on, 0 if it depends on
  // numbers only. is_pointwise(): whether only pointwise operators and views compute it.
  int64_t elements_read(ValueId v) const { return known_.at(v).elements_read; }
  bool is_pointwise(ValueId v) const { return known_.at(v).pointwise; }

 private:
  struct Facts {
    int64_t elements_read = 0;
    bool pointwise = true;
  };
  bool has_numbers_alone(const graph::Node& node) const;

  const Graph& graph_;
  std::unordered_map<ValueId, Facts> known_;
};

}  // namespace cresset::passes
