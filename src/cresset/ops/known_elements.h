// Elements of integers and booleans which follow from the operators that make them: an arange has its bounds, and a
// comparison of bounds may have a single answer. Masks that keep everything are found so.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "graph/graph.h"
#include "ops/affine_elements.h"

namespace cresset::ops {

class KnownElements {
 public:
  // Whether a <= b is known, or may be taken for granted.
  using AtMost = std::function<bool(sym::ExprId a, sym::ExprId b)>;
  KnownElements(const graph::Graph& graph, AtMost at_most)
      : graph_(graph),
        at_most_(std::move(at_most)),
        affine_(graph, [this](graph::ValueId v) { return truth(v) == true; }) {}
  KnownElements(const KnownElements&) = delete;
  KnownElements& operator=(const KnownElements&) = delete;

  // The truth value which all elements have; nullopt: unknown. Of an empty tensor any answer is right.
  std::optional<bool> truth(graph::ValueId v);
  // Whether all elements of int64 are known to lie between both.
  bool all_between(graph::ValueId v, sym::ExprId least, sym::ExprId greatest) {
    const std::optional<Bounds> found = bounds(v);
    return found && at_most_(least, found->least) && at_most_(found->greatest, greatest);
  }

 private:
  // All elements lie between both. Of an empty tensor the bounds may cross. Both are sums of a few numbers which do not
  // overflow: sizes, and other integers of moderate magnitude.
  struct Bounds {
    sym::ExprId least, greatest;
    int terms = 1;
  };
  using Truth = std::optional<bool>;
  using Known = std::optional<Bounds>;

  Truth truth_of(graph::ValueId v);
  Truth truth_of_boolean(const graph::Node& node);
  Truth truth_of_number(const graph::Arg& number) const;
  Truth operand_truth(const graph::Arg& arg);
  Truth connective(const graph::Node& node, bool decisive);
  Truth comparison(const graph::Node& node, std::string_view relation);
  Truth all_less(const Bounds& a, const Bounds& b);
  Truth all_equal(const Bounds& a, const Bounds& b);

  Known bounds(graph::ValueId v);
  Known bounds_of_integers(const graph::Node& node);
  Known bounds_of_range(const graph::Node& node) const;
  Known operand_bounds(const graph::Arg& arg);
  Known number_bounds(sym::ExprId number) const;
  Known sum(const graph::Node& node, bool negated);
  Known sum_of_nothing(const graph::Node& node);
  Known magnitude(const graph::Node& node);
  Bounds between(int64_t least, int64_t greatest) const;

  const graph::Graph& graph_;
  const AtMost at_most_;
  std::unordered_map<graph::ValueId, Truth> truths_;
  std::unordered_map<graph::ValueId, Known> bounds_;
  AffineElements affine_;
  int depth_ = 0;
};

}  // namespace cresset::ops
