// A log of the rewrites of expressions, kept only while validating (CRESSET_VALIDATE=1; validate.h proves its steps).
//
// A step claims: under the first `known` assumptions of its knowledge base, `after` has the value of the original
// wherever the original has a value. Steps of the pool's builders hold without assumptions.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "sym/expr.h"
#include "sym/interval.h"

namespace cresset::sym {

enum class StepKind : uint8_t { Rewrite, Add, Sub, Mul, FloorDiv, Mod, Min, Max, Eq, Ne, Lt, Le, And, Or, Not };

struct RewriteStep {
  static constexpr uint32_t kNoBase = UINT32_MAX;

  StepKind kind = StepKind::Rewrite;
  const char* rule = "";  // for messages
  ExprId a, b;            // Rewrite: a; other kinds: the operands given to the builder
  ExprId after;
  uint32_t base = kNoBase;  // the knowledge base of the assumptions
  uint32_t known = 0;       // the number of its assumptions which were known
};

// The assumptions of a knowledge base (a Facts object), in order.
struct Assumption {
  enum class Kind : uint8_t { Range, Extent, Condition } kind;
  ExprId expr;  // Range, Extent: the variable; Condition: the condition which holds
  Interval range;
  ExprId extent;  // exclusive; the variable is also >= 0
};

class RewriteLog {
 public:
  uint32_t new_base() {
    bases_.emplace_back();
    return static_cast<uint32_t>(bases_.size() - 1);
  }
  void assume(uint32_t base, Assumption assumption) { bases_[base].push_back(assumption); }
  void built(StepKind kind, const char* rule, ExprId a, ExprId b, ExprId after) { add({kind, rule, a, b, after}); }
  void rewrote(uint32_t base, const char* rule, ExprId before, ExprId after) {
    const auto known = static_cast<uint32_t>(bases_[base].size());
    add({StepKind::Rewrite, rule, before, ExprId{}, after, base, known});
  }

  const std::vector<RewriteStep>& steps() const { return steps_; }
  const std::vector<std::vector<Assumption>>& bases() const { return bases_; }

 private:
  // A step which is repeated under the same or more assumptions is stored once.
  void add(RewriteStep step);

  std::vector<RewriteStep> steps_;
  std::vector<std::vector<Assumption>> bases_;
  std::unordered_set<uint64_t> seen_;
};

}  // namespace cresset::sym
