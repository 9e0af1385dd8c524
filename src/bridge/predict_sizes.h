// Finds how an operator's result sizes follow from its arguments' sizes, by asking for a few more sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sym/shape_env.h"

namespace cresset::bridge {

// Accepted: a constant, one of the arguments' sizes, an affine function of the size symbols or of one of those
// sizes, a size's half and a constant, or the product, least or greatest of two sizes (the arguments' or those found
// for earlier dimensions). Each must agree with every observation, of which there is at least one for every symbol and
// one that moves them all (a product of two symbols is affine in each of them).
class SizePredictor {
 public:
  using Point = std::unordered_map<sym::VarId, int64_t>;

  // `sizes`: expressions that the call depends on, simplified. A symbol that only data knows stands at a general size.
  SizePredictor(sym::ShapeEnv& env, const std::vector<sym::ExprId>& sizes);

  const Point& hints() const { return hints_; }
  const std::vector<sym::VarId>& symbols() const { return vars_; }
  bool guesses() const { return guesses_; }                     // whether one of them is no hint
  const std::vector<Point>& points() const { return points_; }  // the sizes to try
  // More that move all symbols, by little, for operators that reject those.
  std::vector<Point> closer_points() const;
  bool moves_all(const Point& point) const;
  // Symbols that no observation moves, where there are others that one does: the operator takes their values alone.
  std::vector<sym::VarId> never_moved() const;
  // Symbols that none of the points that the operator took moves alone: each set of several that are as large, whose
  // moves together are to be tried, first by two, then all of them.
  std::vector<std::vector<sym::VarId>> perhaps_equal(const std::vector<Point>& taken) const;
  std::vector<Point> points_moving(const std::vector<sym::VarId>& together) const;
  // Sizes that no observation moves: how results follow from them is not known.
  std::vector<sym::ExprId> still() const;
  // No value: a division by zero there.
  std::optional<int64_t> value(const Point& point, sym::ExprId e) const;
  void observe(const Point& point, std::vector<int64_t> numbers);

  // `base`: the numbers for the hints. False when some number follows no accepted function, or too little was observed.
  bool fit(const std::vector<int64_t>& base);
  sym::ExprId expression(size_t i) const { return expressions_[i]; }  // of number i, after fit()

 private:
  struct Observation {
    Point point;
    std::vector<int64_t> numbers;
  };
  void place_points(const Point& factors);  // by how many times the usual steps each symbol is moved
  bool is_still(sym::ExprId size, const std::vector<Point>& points) const;
  bool observed_enough() const;
  bool agrees(sym::ExprId e, size_t i) const;
  sym::ExprId candidate(size_t i, int64_t base);
  sym::ExprId affine(size_t i, int64_t base);
  sym::ExprId affine_in(sym::ExprId size, size_t i, int64_t base) const;

  sym::ShapeEnv& env_;
  std::vector<sym::ExprId> sizes_;
  std::vector<sym::VarId> vars_;
  Point hints_;
  bool guesses_ = false;
  std::vector<Point> points_;
  std::vector<Observation> seen_;
  std::vector<sym::ExprId> expressions_;
};

}  // namespace cresset::bridge
