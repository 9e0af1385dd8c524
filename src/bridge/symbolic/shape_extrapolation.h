// Finds result sizes of an operator as functions of its arguments' sizes, by observing the operator at further sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sym/shape_env.h"

namespace cresset::bridge {

// Accepted functions: a constant; a size of an argument; an affine function of the size symbols or of such a size; half
// of a size plus a constant; and the product, minimum or maximum of two sizes (of arguments, or found for earlier
// dimensions). A function must agree with every observation. There is at least one observation for every symbol, and
// one which moves all symbols, since a product of two symbols is affine in each of them.
class SizePredictor {
 public:
  using Point = std::unordered_map<sym::VarId, int64_t>;

  // `sizes`: simplified expressions on which the call depends. An unbacked symbol is set to a general size.
  SizePredictor(sym::ShapeEnv& env, const std::vector<sym::ExprId>& sizes);

  const Point& hints() const { return hints_; }
  const std::vector<sym::VarId>& symbols() const { return vars_; }
  bool guesses() const { return guesses_; }                     // whether a symbol has no hint
  const std::vector<Point>& points() const { return points_; }  // the sizes to try
  // Further points which move all symbols by small steps, for operators which reject points().
  std::vector<Point> closer_points() const;
  bool moves_all(const Point& point) const;
  // Symbols which no observation moves, although another symbol was moved: the operator accepts only their present
  // values.
  std::vector<sym::VarId> never_moved() const;
  // Symbols which no accepted point moves alone, grouped by equal hints. The members of a group are moved together:
  // first pairs, then the whole group.
  std::vector<std::vector<sym::VarId>> perhaps_equal(const std::vector<Point>& taken) const;
  std::vector<Point> points_moving(const std::vector<sym::VarId>& together) const;
  // Sizes which no observation moves, so their influence on the results is unknown.
  std::vector<sym::ExprId> still() const;
  // nullopt: a division by zero.
  std::optional<int64_t> value(const Point& point, sym::ExprId e) const;
  void observe(const Point& point, std::vector<int64_t> numbers);

  // `base`: the numbers at the hints. False when a number follows no accepted function, or too little was observed.
  bool fit(const std::vector<int64_t>& base);
  sym::ExprId expression(size_t i) const { return expressions_[i]; }  // of number i, after fit()

 private:
  struct Observation {
    Point point;
    std::vector<int64_t> numbers;
  };
  void place_points(const Point& factors);  // factors: multiples of the usual step, by symbol
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
