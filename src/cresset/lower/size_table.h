// The numbers of a Program which depend on sizes, each stored once.
#pragma once

#include <unordered_map>
#include <vector>

#include "runtime/program.h"

namespace cresset::lower {

class SizeTable {
 public:
  explicit SizeTable(sym::ShapeEnv& env) : env_(env) {}

  runtime::SizeRef ref(sym::ExprId e);
  runtime::SizeRef ref(int64_t value) { return ref(env_.pool().constant(value)); }
  std::vector<runtime::SizeRef> refs(const std::vector<sym::ExprId>& es);
  sym::ExprId expr(runtime::SizeRef ref) const { return exprs_[ref.index]; }

  // Fills Program::symbols and Program::sizes. Call this last.
  void finish(runtime::Program& program) const;

 private:
  sym::ShapeEnv& env_;
  std::vector<sym::ExprId> exprs_;
  std::unordered_map<sym::ExprId, uint32_t> index_;
};

}  // namespace cresset::lower
