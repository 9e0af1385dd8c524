#include "sym/general_sizes.h"

#include <unordered_map>
#include <vector>

namespace cresset::sym {

std::optional<bool> known_for_general_sizes(ShapeEnv& env, ExprId condition) {
  ExprPool& pool = env.pool();
  condition = env.simplify(condition);
  std::vector<VarId> vars;
  pool.collect_vars(condition, vars);
  std::unordered_map<VarId, ExprId> general;
  for (const VarId var : vars) {
    const Interval range = intersect(env.range(pool.var(var)), Interval{2, Interval::kPosInf});
    if (range.lo <= range.hi) general.emplace(var, env.new_ranged_var(range));
  }
  return env.statically_known(pool.substitute(condition, general));
}

}  // namespace cresset::sym
