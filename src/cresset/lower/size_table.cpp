#include "lower/size_table.h"

#include <algorithm>

namespace cresset::lower {

runtime::SizeRef SizeTable::ref(sym::ExprId e) {
  const sym::ExprId simple = env_.simplify(e);
  const auto [it, added] = index_.emplace(simple, static_cast<uint32_t>(exprs_.size()));
  if (added) exprs_.push_back(simple);
  return {it->second};
}

std::vector<runtime::SizeRef> SizeTable::refs(const std::vector<sym::ExprId>& es) {
  std::vector<runtime::SizeRef> out;
  out.reserve(es.size());
  for (sym::ExprId e : es) out.push_back(ref(e));
  return out;
}

void SizeTable::finish(runtime::Program& program) const {
  for (sym::ExprId e : exprs_) env_.pool().collect_vars(e, program.symbols);
  std::sort(program.symbols.begin(), program.symbols.end());
  program.symbols.erase(std::unique(program.symbols.begin(), program.symbols.end()), program.symbols.end());
  std::unordered_map<sym::VarId, uint32_t> slots;
  for (sym::VarId var : program.symbols) slots.emplace(var, static_cast<uint32_t>(slots.size()));
  program.sizes = sym::SizeProgram::compile(env_.pool(), exprs_, slots);
}

}  // namespace cresset::lower
