// Iteration domains: symbolic matching of the dimensions of values.
#pragma once

#include <optional>
#include <unordered_map>

#include "fuse/layout.h"
#include "loop/kernel.h"

namespace cresset::fuse {

// Index variables for loops, unique for an extent and a number. Kernels over equal loops therefore have equal index
// expressions, and facts about them are shared.
class IndexVars {
 public:
  explicit IndexVars(sym::ShapeEnv& env) : env_(env) {}
  sym::VarId at(ExprId extent, size_t number);

 private:
  sym::ShapeEnv& env_;
  std::unordered_map<ExprId, std::vector<sym::VarId>> made_;  // by number; invalid: not yet created
};

// The coarsest common refinement of two lists of extents with equal products, row-major: [B*S, H] and [B, S, H] refine
// to [B, S, H]. Size-1 dimensions belong to no part.
struct Refinement {
  std::vector<ExprId> extents;
  std::vector<std::vector<size_t>> of_a, of_b;  // a dimension's parts, most significant first
};
std::optional<Refinement> refine(sym::ShapeEnv& env, const std::vector<ExprId>& a, const std::vector<ExprId>& b);

// Returns a / b when b provably divides a.
std::optional<ExprId> exact_quotient(sym::ShapeEnv& env, ExprId a, ExprId b);

// Returns the value of a row-major index over `extents` from variables for its parts.
ExprId combine(sym::ExprPool& pool, const std::vector<ExprId>& parts, const std::vector<ExprId>& extents);

// Returns the coordinates over `extents`, in row-major order, of a point whose coordinates over `dims` are their
// variables. Returns nullopt unless dims refine extents.
std::optional<Index> coordinates(sym::ShapeEnv& env, const std::vector<loop::Dim>& dims,
                                 const std::vector<ExprId>& extents);

// Solves index(dims) == target for the variables of `dims`. Each component of `index` must be a mixed-radix number over
// distinct variables which covers its dimension, and every variable must occur. The map is then a bijection.
std::optional<std::unordered_map<sym::VarId, ExprId>> invert(sym::ShapeEnv& env, const std::vector<loop::Dim>& dims,
                                                             const Index& index, const std::vector<ExprId>& sizes,
                                                             const Index& target);

}  // namespace cresset::fuse
