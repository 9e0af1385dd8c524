// Iteration domains: matching the dimensions of values with each other, symbolically.
#pragma once

#include <optional>
#include <unordered_map>

#include "fuse/layout.h"
#include "loop/kernel.h"

namespace cresset::fuse {

// Index variables for loops, by extent and number: the same one whenever it is asked for. Kernels that run over equal
// loops then have equal index expressions, and what was found out about those of one is known of all.
class IndexVars {
 public:
  explicit IndexVars(sym::ShapeEnv& env) : env_(env) {}
  sym::VarId at(ExprId extent, size_t number);

 private:
  sym::ShapeEnv& env_;
  std::unordered_map<ExprId, std::vector<sym::VarId>> made_;  // by number; invalid: not yet
};

// The coarsest common refinement of two lists of extents with equal products, row-major: [B*S, H] and [B, S, H] refine
// to [B, S, H]. Size-1 dimensions belong to no part.
struct Refinement {
  std::vector<ExprId> extents;
  std::vector<std::vector<size_t>> of_a, of_b;  // a dimension's parts, most significant first
};
std::optional<Refinement> refine(sym::ShapeEnv& env, const std::vector<ExprId>& a, const std::vector<ExprId>& b);

// a / b when b divides a provably.
std::optional<ExprId> exact_quotient(sym::ShapeEnv& env, ExprId a, ExprId b);

// The value of a row-major index over `extents`, from variables for its parts.
ExprId combine(sym::ExprPool& pool, const std::vector<ExprId>& parts, const std::vector<ExprId>& extents);

// Coordinates over `extents`, in row-major order, of a point whose coordinates over `dims` are their variables.
// nullopt unless dims refine extents.
std::optional<Index> coordinates(sym::ShapeEnv& env, const std::vector<loop::Dim>& dims,
                                 const std::vector<ExprId>& extents);

// Solves index(dims) == target for the variables of `dims`: each component of `index` must be a mixed-radix number
// over distinct variables that covers its dimension, and every variable must occur. So the map is a bijection.
std::optional<std::unordered_map<sym::VarId, ExprId>> invert(sym::ShapeEnv& env, const std::vector<loop::Dim>& dims,
                                                             const Index& index, const std::vector<ExprId>& sizes,
                                                             const Index& target);

}  // namespace cresset::fuse
