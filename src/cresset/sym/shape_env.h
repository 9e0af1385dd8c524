// The symbols of one compilation: hints, ranges, equalities, and the guards that decisions asked for.
//
// A symbol is backed (it stands for something a caller passes in: it has a hint) or unbacked (data dependent: none).
// evaluate() is the only way a guard comes into being: it first tries to prove or refute the condition from ranges and
// facts; only then does it ask the hints and record a guard.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sym/expr.h"
#include "sym/facts.h"
#include "sym/interval.h"

namespace cresset::sym {

enum class Policy : uint8_t {
  Dynamic,        // the default
  Suggested,      // the user expects it to vary: told in the log when it is pinned
  MarkedDynamic,  // a promise: a guard that pins it is an error
  Static,         // specialized at creation
};

struct Symbol {
  VarId var;
  std::string name;    // "s0"; "u0" when unbacked
  std::string source;  // "x.size(0)": where the value comes from, for people and for stable naming
  std::optional<int64_t> hint;
  Interval range;
  Policy policy = Policy::Dynamic;
  std::optional<int64_t> typical = std::nullopt;  // as the user stated; heuristics go by it, guards never
};

// Who asked for a decision.
struct Reason {
  std::string op;        // "aten::view", may be empty
  std::string location;  // "model.py:42 in forward", may be empty
};

struct GuardFact {
  ExprId condition;  // holds for the hints
  Reason reason;
};
// A guard that leaves a symbol of policy MarkedDynamic one value only.
struct Violation {
  VarId var;
  int64_t value;
  ExprId condition;
  Reason reason;
};
struct RuntimeAssertion {
  ExprId condition;
  std::string message;
};

class ShapeEnv {
 public:
  ShapeEnv();  // with CRESSET_VALIDATE=1: keeps a log of every step for validate()
  ShapeEnv(const ShapeEnv&) = delete;
  ShapeEnv& operator=(const ShapeEnv&) = delete;

  ExprPool& pool() { return pool_; }
  const ExprPool& pool() const { return pool_; }

  // A backed symbol. `range` defaults to [0, inf) (a size); a narrower one is guarded, since nothing else promises it.
  // Policy::Static: guards that the value is the hint, and returns that constant.
  ExprId new_backed(std::string source, int64_t hint, Interval range = Interval::size(),
                    Policy policy = Policy::Dynamic);
  ExprId new_unbacked(std::string source, Interval range = Interval::size());
  // An unbacked symbol's value became known: from now on hint() gives it.
  void learn(VarId var, int64_t value);
  void state_typical(VarId var, int64_t value);
  const Symbol* symbol(VarId var) const;  // nullptr for variables that are not symbols (loop variables)
  std::span<const Symbol> symbols() const { return symbols_; }

  // A variable that is no symbol but has a range: a loop index. Known to statically_known and simplify.
  ExprId new_ranged_var(Interval range);
  // As above with a symbolic exclusive bound: 0 <= var < extent.
  ExprId new_index_var(ExprId extent);

  // Proved or refuted from ranges, equalities and facts. Adds nothing.
  std::optional<bool> statically_known(ExprId condition);
  bool known_true(ExprId condition) { return statically_known(condition).value_or(false); }
  bool known_equal(ExprId a, ExprId b);
  bool known_not_equal(ExprId a, ExprId b);
  bool known_nonzero(ExprId a) { return facts_.nonzero(a); }

  // Decides `condition`, adding a guard when only hints can tell. nullopt when it depends on an unbacked symbol.
  // The reason is built only when a guard is recorded.
  template <class MakeReason>
  std::optional<bool> evaluate(ExprId condition, MakeReason&& why) {
    ++counters_.evaluations;
    if (std::optional<bool> known = statically_known(condition)) {
      ++counters_.static_answers;
      return known;
    }
    std::optional<int64_t> hint = this->hint(condition);
    if (!hint) {  // an unbacked symbol may be known to equal something backed
      condition = simplify(condition);
      hint = this->hint(condition);
      if (!hint) return std::nullopt;
    }
    record_guard(*hint ? condition : pool_.logical_not(condition), why());
    return *hint != 0;
  }
  // The hint's value of e; guards e == value unless constant. nullopt when unbacked.
  std::optional<int64_t> specialize(ExprId e, const Reason& why);
  // States a fact: a run-time assertion (when not already known) that later reasoning may use. Returns false when the
  // fact is refuted (statically false).
  bool assume(ExprId condition, std::string message);

  // Value under hints; nullopt when e mentions an unbacked symbol or a non-symbol variable.
  std::optional<int64_t> hint(ExprId e) const;
  int64_t hint_or(ExprId e, int64_t fallback) const { return hint(e).value_or(fallback); }
  // For heuristics only: value under typical sizes where they were stated, else under hints, else the fallback.
  int64_t typical_or(ExprId e, int64_t fallback) const;
  Interval range(ExprId e);
  void constrain(VarId var, Interval range);  // intersects

  // Canonical form under the equalities and ranges known so far: equal sizes get equal ids.
  ExprId simplify(ExprId e);
  // The same for the address of an element that exists: no size that it is divided by is 0.
  ExprId simplify_address(ExprId e) { return facts_.simplify_address(e); }

  std::span<const GuardFact> guards() const { return guards_; }
  std::span<const Violation> violations() const { return violations_; }
  std::span<const RuntimeAssertion> assertions() const { return assertions_; }
  // Guards with what follows from the symbols' natural ranges (a size is >= 0) and from the others dropped,
  // canonicalized; the ones to check at a call. They imply all of guards() and the ranges that symbols were given.
  std::vector<GuardFact> minimized_guards();

  std::string to_string(ExprId e) const;
  VarNames names() const;
  // Gives symbols the names that sym/names.h derives from their sources. Call when all symbols exist.
  void name_by_source();

  // For validation and its tests.
  void keep_log();  // before the first symbol
  const RewriteLog* log() const { return log_.get(); }
  Facts& facts() { return facts_; }

  struct Counters {
    int64_t evaluations = 0, static_answers = 0, guards_recorded = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  void record_guard(ExprId condition, Reason reason);
  void find_violations(const GuardFact& guard);
  Symbol& add_symbol(Symbol symbol);

  std::unique_ptr<RewriteLog> log_;
  ExprPool pool_;
  Facts facts_{pool_};
  std::vector<Symbol> symbols_;
  std::vector<uint32_t> symbol_of_;  // by variable; UINT32_MAX: no symbol
  uint32_t backed_count_ = 0, unbacked_count_ = 0, marked_count_ = 0;
  std::vector<GuardFact> guards_;
  std::vector<Violation> violations_;
  std::vector<RuntimeAssertion> assertions_;
  Counters counters_;
};

}  // namespace cresset::sym
