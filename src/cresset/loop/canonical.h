// Numbering of a kernel's variables that does not depend on the pool they live in.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "loop/kernel.h"

namespace cresset::loop {

// Names dims d0.., bindings i<scalar>, size symbols s0.. by first mention: in extents, then scalars, then stores. Sums
// and products list their operands in an order that structure alone decides wherever it can.
class CanonicalNames {
 public:
  explicit CanonicalNames(const Kernel& kernel);
  const std::vector<VarId>& symbols() const { return symbols_; }
  void set_name(VarId var, std::string name) {
    fixed_[var] = std::move(name);
    shapes_.clear();
  }
  std::string text(ExprId expr);  // mentions new symbols when it meets them

 private:
  std::vector<ExprId> ordered_operands(ExprId expr);
  uint64_t shape(ExprId expr);
  void mention(ExprId expr);
  void number(VarId var);  // of a size symbol, when it has none
  std::string name(VarId var);

  const sym::ExprPool& pool_;
  std::unordered_map<VarId, std::string> fixed_;  // dims and bindings
  std::unordered_map<VarId, uint32_t> number_;    // symbols
  std::vector<VarId> symbols_;
  std::unordered_map<ExprId, uint64_t> shapes_;  // for the names given so far
  std::unordered_set<ExprId> mentioned_;
};

}  // namespace cresset::loop
