#include "sym/general_sizes.h"

#include <unordered_map>
#include <vector>

#include "sym/rebuild.h"

namespace cresset::sym {
namespace {

// Replaces symbols, and on request quotients, by fresh variables >= 2. The quotient of a size counts as a size like its
// dividend.
class General {
 public:
  General(ShapeEnv& env, bool quotients) : env_(env), quotients_(quotients) {}

  ExprId of(ExprId id) {
    ExprPool& pool = env_.pool();
    if (pool.is_const(id)) return id;
    if (const auto it = done_.find(id); it != done_.end()) return it->second;
    ExprId result = id;
    if (pool.is_var(id) || (quotients_ && pool[id].kind == Kind::FloorDiv)) {
      const Interval range = intersect(env_.range(id), Interval{2, Interval::kPosInf});
      if (env_.range(id).lo >= 0 && range.lo <= range.hi) result = env_.new_ranged_var(range);
    } else {
      ExprList before, after;
      before.assign(pool.operands(id));
      for (const ExprId operand : before) after.push_back(of(operand));
      result = rebuild(pool, id, after);
    }
    done_.emplace(id, result);
    return result;
  }

 private:
  ShapeEnv& env_;
  bool quotients_;
  std::unordered_map<ExprId, ExprId> done_;
};

// Recognizes a bound on a quotient, q >= 1 or q >= 2. Such a condition is written without the quotient: `sum >= c`
// where the pool has q = (sum + a) // d and c + a is d or 2d.
std::optional<bool> bound_of_quotient(ExprPool& pool, ExprId condition) {
  if (pool[condition].kind != Kind::Le || !pool.is_const(pool.operands(condition)[1])) return std::nullopt;
  const ExprId sum = pool.operands(condition)[0], negated = pool.neg(sum);
  const int64_t bound = pool.const_value(pool.operands(condition)[1]);
  for (uint32_t i = 0; i < pool.size(); ++i) {
    const ExprId q{i};
    if (pool[q].kind != Kind::FloorDiv || !pool.is_const(pool.operands(q)[1])) continue;
    const int64_t d = pool.const_value(pool.operands(q)[1]);
    int64_t a = 0;
    const auto crosses = [&](int64_t least) { return least == d || least == 2 * d; };
    if (pool.constant_difference(pool.operands(q)[0], negated, a) && crosses(a - bound)) return true;
    if (pool.constant_difference(pool.operands(q)[0], sum, a) && crosses(bound + 1 + a)) return false;
  }
  return std::nullopt;
}

}  // namespace

std::optional<bool> known_for_general_sizes(ShapeEnv& env, ExprId condition) {
  const ExprId simplified = env.simplify(condition);
  if (const std::optional<bool> known = env.statically_known(General(env, false).of(simplified))) return known;
  // Simplification may turn n // 4 != 1 into n >= 8: the quotient is searched in both forms.
  for (const ExprId form : {simplified, condition}) {
    if (const std::optional<bool> known = env.statically_known(General(env, true).of(form))) return known;
    if (const std::optional<bool> known = bound_of_quotient(env.pool(), form)) return known;
    if (simplified == condition) break;
  }
  return std::nullopt;
}

}  // namespace cresset::sym
