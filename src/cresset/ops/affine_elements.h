// Integers which are an affine function of their indices, such as positions, and booleans which compare these: a mask
// "position of the key <= position of the query" is found so.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace cresset::ops {

// base + steps[0] * index 0 + ...; a dimension of size 1 has step 0.
struct Affine {
  sym::ExprId base;
  std::vector<int64_t> steps;
};

class AffineElements {
 public:
  // `is_true`: whether a boolean tensor is known to be true everywhere.
  AffineElements(const graph::Graph& graph, std::function<bool(graph::ValueId)> is_true)
      : graph_(graph), is_true_(std::move(is_true)) {}

  // The function of which an element of a boolean tensor tells whether it is at least 0; nullopt: none is known.
  std::optional<Affine> at_least_zero(graph::ValueId v) { return deeper(v, &AffineElements::boolean, booleans_); }
  // a - b, of the operands of a comparison, where it is the same number for all elements.
  std::optional<int64_t> difference(const graph::Node& comparison);

 private:
  using Found = std::optional<Affine>;
  using Known = std::unordered_map<graph::ValueId, Found>;
  Found deeper(graph::ValueId v, Found (AffineElements::*find)(const graph::Node& node), Known& known);
  Found found_in(graph::ValueId v, Found (AffineElements::*find)(const graph::Node& node));
  Found integer(graph::ValueId v) { return deeper(v, &AffineElements::integers, integers_); }
  Found boolean(const graph::Node& node);
  Found comparison(const graph::Node& node, std::string_view relation);
  Found integers(const graph::Node& node);
  Found operand(const graph::Arg& arg, size_t rank);
  Found number(sym::ExprId number) const;
  Found range(const graph::Node& node) const;
  Found sum(const graph::Node& node, bool negated);
  Found through(const graph::Node& node, Found source) const;
  Found part(const graph::Node& node, Found source) const;
  Found joined(const graph::Node& node);
  Found chosen(const graph::Node& node, const Affine& source);
  bool is_natural(const Affine& index) const;
  Affine combined(const Affine& a, const Affine& b, int64_t factor_of_b) const;

  const graph::Graph& graph_;
  const std::function<bool(graph::ValueId)> is_true_;
  Known booleans_, integers_;
  int depth_ = 0;
};

}  // namespace cresset::ops
