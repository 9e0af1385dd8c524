// A numbering of a kernel's variables, independent of their pool.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "loop/kernel.h"

namespace cresset::loop {

// Names dims d0.., bindings i<scalar>, and size symbols s0.. by first mention: in extents, then scalars, then stores.
// The order of operands in sums and products depends on structure alone wherever possible.
class CanonicalNames {
 public:
  explicit CanonicalNames(const Kernel& kernel);
  const std::vector<VarId>& symbols() const { return symbols_; }
  void set_name(VarId var, std::string name) {
    fixed_[var] = std::move(name);
    shapes_.clear();
  }
  std::string text(ExprId expr);  // numbers new symbols on first mention

 private:
  std::vector<ExprId> ordered_operands(ExprId expr);
  uint64_t shape(ExprId expr);
  void mention(ExprId expr);
  void number(VarId var);  // numbers a size symbol without a number
  std::string name(VarId var);

  const sym::ExprPool& pool_;
  std::unordered_map<VarId, std::string> fixed_;  // dims and bindings
  std::unordered_map<VarId, uint32_t> number_;    // symbols
  std::vector<VarId> symbols_;
  std::unordered_map<ExprId, uint64_t> shapes_;  // for the present names
  std::unordered_set<ExprId> mentioned_;
};

}  // namespace cresset::loop
