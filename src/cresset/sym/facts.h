// Knowledge about variables: ranges, equalities, bounds on sums, divisibility, and their consequences.
//
// Every learned condition must hold wherever the facts are used. simplify() returns an expression which is equal under
// the facts. Equal sizes get equal ids as far as the rules reach. A condition which is proved or refuted simplifies to
// 1 or 0. All answers are memoized until the next condition is learned.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sym/bound_prover.h"
#include "sym/expr.h"
#include "sym/interval.h"
#include "sym/rewrite_log.h"
#include "sym/samples.h"

namespace cresset::sym {

class Facts {
 public:
  explicit Facts(ExprPool& pool) : pool_(pool), samples_(pool) {}
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  // Equalities replace Unbacked symbols first, then Symbols, and never an Index.
  enum class Role : uint8_t { Index, Symbol, Unbacked };
  void declare(VarId var, Interval range, Role role, std::optional<int64_t> hint = std::nullopt);
  void declare_index(VarId var, ExprId extent);  // 0 <= var < extent
  void constrain(VarId var, Interval range);
  Interval declared_range(VarId var) const;

  ExprId simplify(ExprId e);
  ExprId simplify_address(ExprId e);
  Interval range(ExprId e);  // range of simplify(e)
  std::optional<bool> decide(ExprId condition);
  // Assumes that `condition` holds. Returns false, and learns nothing, when it contradicts the facts.
  bool learn(ExprId condition);

  bool nonzero(ExprId e);
  bool at_most(ExprId a, ExprId b);    // proves a <= b
  bool less_than(ExprId a, ExprId b);  // proves a < b

  // For tests of validation: an additional rewrite, right or wrong, which is applied to every node before the other
  // rules.
  void plant_rule(ExprId (*rule)(ExprPool&, ExprId)) { planted_rule_ = rule; }

 private:
  friend class BoundProver;
  struct VarInfo {
    Interval range = Interval::all();
    ExprId extent;       // of an index: exclusive bound, as declared
    ExprId replacement;  // mentions no replaced variable after simplification
    Role role = Role::Symbol;
  };
  struct Memo {
    ExprId simplified;
    uint32_t simplified_at = 0, range_at = 0;
    Interval range;
    int64_t proved = Interval::kPosInf;  // a proved bound; it stays valid because facts only grow
    int64_t failed = 0;                  // at epoch failed_at, a search from failed_depth found no proof of this bound
    uint32_t failed_at = 0;
    int failed_depth = 0;
  };
  struct Bound {  // sum <= bound
    ExprId sum;
    int64_t bound;
  };

  VarInfo& info(VarId var);
  Memo& memo(ExprId e);
  ExprId extent(VarId var);  // extent of an index under the present facts; invalid when there is none
  void changed() { ++epoch_; }
  ExprId truth_of(ExprId condition);  // condition != 0, unless `condition` is a truth value already

  // facts.cpp
  struct Next {
    ExprId expr;
    const char* rule;
  };
  ExprId simplify_uncached(ExprId e);
  Next rewrite_once(ExprId e);
  RewriteLog* log();  // nullptr unless validating; the first call creates base_
  void assume(Assumption::Kind kind, ExprId expr, Interval range, ExprId extent = {});
  ExprId simplify_node(ExprId e);  // operands are simplified
  ExprId simplify_sum(ExprId e);
  ExprId simplify_product(ExprId e);
  ExprId simplify_extremum(ExprId e);
  // facts_div.cpp
  ExprId simplify_division(ExprId e);
  bool divide(ExprId a, ExprId b, ExprId& quotient, ExprId& remainder);
  ExprId divide_by_part(ExprId a, ExprId b, bool is_mod);
  ExprId cancel_factor(ExprId a, ExprId b, bool is_mod);
  ExprId split_multiples(ExprId a, ExprId b, bool is_mod);
  bool is_remainder(ExprId r, ExprId b);  // proves 0 <= r < b
  ExprId common_monomial(ExprId a, ExprId b);
  bool multiple_of(const Term& term, int64_t divisor);
  int64_t known_multiple(ExprId monomial);
  // Recognizes x // n for a variable x whose largest known divisor is n. Canonical forms replace x by n * (x // n), so
  // that every expression in x is a polynomial in its units.
  bool is_unit(ExprId e);
  // facts_relation.cpp
  ExprId simplify_relation(ExprId e);
  ExprId cancel_relation_factor(ExprId e);
  std::optional<bool> decide_equality(ExprId sum, int64_t value);
  // facts_range.cpp
  Interval range_of(ExprId simplified);
  Interval range_uncached(ExprId e);
  Interval var_range(VarId var);
  Interval product_range(ExprId monomial);
  // facts_learn.cpp
  void learn_simplified(ExprId condition);
  void learn_equality(ExprId condition);
  void learn_inequality(ExprId condition);
  void learn_bound(ExprId sum, int64_t bound);
  void propagate_bound(ExprId sum, int64_t bound);
  void set_bound(ExprId sum, int64_t bound);
  VarId counted_var(ExprId monomial, int64_t& unit);  // a variable (unit 1) or the variable of a unit; else invalid
  void apply_exclusions(ExprId sum);
  void learn_point(ExprId sum);
  void replace_var(VarId var, ExprId by);
  bool replace_monomial(ExprId sum, int64_t value);
  void learn_divisibility(ExprId mod);
  void refresh(VarId replaced);

  ExprPool& pool_;
  Samples samples_;
  BoundProver prover_{*this};
  std::vector<VarInfo> vars_;
  std::vector<Memo> memo_;
  uint32_t epoch_ = 1;
  uint64_t extent_mask_ = 0;  // var_mask of the indices with an extent
  int fuel_ = 0;              // bounds the number of rule applications in an outermost simplify()
  int nesting_ = 0;
  int learning_ = 0;  // depth of nested learn(); nested conditions follow from the outermost condition
  uint32_t base_ = RewriteStep::kNoBase;
  ExprId (*planted_rule_)(ExprPool&, ExprId) = nullptr;

  std::unordered_map<ExprId, bool> truth_;          // canonical condition -> truth
  std::vector<ExprId> conditions_;                  // learned conditions which no replacement absorbed
  std::unordered_map<ExprId, Interval> sum_range_;  // learned range of a sum without constant, or of an atom
  std::vector<Bound> bounds_;
  std::unordered_multimap<ExprId, int64_t> exclusions_;      // sum != value
  std::unordered_map<ExprId, ExprId> monomial_replacement_;  // keys: atoms which are not variables, and products
  std::vector<ExprId> product_keys_;                         // the keys which are products
  std::unordered_map<ExprId, int64_t> multiple_;             // monomial -> a number which divides it
};

}  // namespace cresset::sym
