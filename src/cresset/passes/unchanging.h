// Values of a graph that are the same at every call: constants that keep their contents, and what is computed from such
// alone, at sizes that are numbers.
#pragma once

#include <unordered_map>
#include <vector>

#include "passes/rewriter.h"

namespace cresset::passes {

class Unchanging {
 public:
  // fixed: which of Graph::constants keep their contents, by position.
  Unchanging(const Graph& graph, const std::vector<bool>& fixed);

  bool contains(ValueId v) const { return known_.contains(v); }
  void note(NodeId id);  // of a node that was appended since
  // Of a value that is contained. How many elements the constants have that it is made of, 0: it is made of numbers;
  // whether it is made by nothing but pointwise operators and views.
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
