// The symbols of a compilation: hints, ranges, equalities, and the guards that decisions recorded.
//
// A backed symbol stands for a value that a caller passes in, and has a hint. An unbacked symbol is data-dependent and
// has no hint. evaluate() is the only source of guards. It first tries to prove or refute the condition from ranges and
// facts; only then does it evaluate the hints and record a guard.
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
  Suggested,      // the user expects the size to vary: specialization is reported in the log
  MarkedDynamic,  // a promise: a guard which specializes the size is an error
  Static,         // specialized at creation
};

struct Symbol {
  VarId var;
  std::string name;    // "s0"; "u0" when unbacked
  std::string source;  // "x.size(0)": where the value comes from, for messages and for stable naming
  std::optional<int64_t> hint;
  Interval range;
  Policy policy = Policy::Dynamic;
  std::optional<int64_t> typical = std::nullopt;  // as stated by the user; used by heuristics, never by guards
};

// The origin of a decision.
struct Reason {
  std::string op;        // "aten::view", may be empty
  std::string location;  // "model.py:42 in forward", may be empty
};

struct SizeGuard {
  ExprId condition;  // holds for the hints
  Reason reason;
};
// A guard which leaves a single value to a symbol with the policy MarkedDynamic.
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

  // Creates a backed symbol. `range` defaults to [0, inf) (a size). A narrower range is guarded, since no other check
  // ensures it. Policy::Static records a guard that the value equals the hint, and returns this constant.
  ExprId new_backed(std::string source, int64_t hint, Interval range = Interval::size(),
                    Policy policy = Policy::Dynamic);
  ExprId new_unbacked(std::string source, Interval range = Interval::size());
  // Sets the value of an unbacked symbol. From now on hint() returns it.
  void learn(VarId var, int64_t value);
  void state_typical(VarId var, int64_t value);
  const Symbol* symbol(VarId var) const;  // nullptr for variables which are not symbols (loop variables)
  std::span<const Symbol> symbols() const { return symbols_; }

  // Creates a variable which is not a symbol but has a range: a loop index. statically_known() and simplify() use the
  // range.
  ExprId new_ranged_var(Interval range);
  // The same with a symbolic exclusive bound: 0 <= var < extent.
  ExprId new_index_var(ExprId extent);

  // Returns the answer when ranges, equalities and facts prove or refute `condition`. Adds no guard.
  std::optional<bool> statically_known(ExprId condition);
  bool known_true(ExprId condition) { return statically_known(condition).value_or(false); }
  bool known_equal(ExprId a, ExprId b);
  bool known_not_equal(ExprId a, ExprId b);
  bool known_nonzero(ExprId a) { return facts_.nonzero(a); }

  // Decides `condition` and adds a guard when only hints can decide it. Returns nullopt when the condition depends on
  // an unbacked symbol. The reason is built only when a guard is recorded.
  template <class MakeReason>
  std::optional<bool> evaluate(ExprId condition, MakeReason&& why) {
    ++counters_.evaluations;
    if (std::optional<bool> known = statically_known(condition)) {
      ++counters_.static_answers;
      return known;
    }
    std::optional<int64_t> hint = this->hint(condition);
    if (!hint) {  // an unbacked symbol may be known to equal a backed expression
      condition = simplify(condition);
      hint = this->hint(condition);
      if (!hint) return std::nullopt;
    }
    record_guard(*hint ? condition : pool_.logical_not(condition), why());
    return *hint != 0;
  }
  // Returns the value of e under hints, and guards e == value unless e is constant. Returns nullopt when e is unbacked.
  std::optional<int64_t> specialize(ExprId e, const Reason& why);
  // States a fact: a run-time assertion, unless it is known already, which later reasoning may use. Returns false when
  // the fact is statically refuted.
  bool assume(ExprId condition, std::string message);

  // Returns the value under hints, or nullopt when e mentions an unbacked symbol or a variable which is not a symbol.
  std::optional<int64_t> hint(ExprId e) const;
  int64_t hint_or(ExprId e, int64_t fallback) const { return hint(e).value_or(fallback); }
  // For heuristics only: the value under typical sizes where they were stated, else under hints, else the fallback.
  int64_t typical_or(ExprId e, int64_t fallback) const;
  Interval range(ExprId e);
  void constrain(VarId var, Interval range);  // intersects

  // Returns the canonical form under the present equalities and ranges. Equal sizes get equal ids.
  ExprId simplify(ExprId e);
  // The same for the address of an existing element. Every size which divides in this address is nonzero.
  ExprId simplify_address(ExprId e) { return facts_.simplify_address(e); }

  std::span<const SizeGuard> guards() const { return guards_; }
  std::span<const Violation> violations() const { return violations_; }
  std::span<const RuntimeAssertion> assertions() const { return assertions_; }
  // Returns the guards to check at a call, canonicalized. Guards that follow from the symbols' natural ranges (a size
  // is >= 0) or from the other guards are dropped. The result implies all of guards() and the ranges given to symbols.
  std::vector<SizeGuard> minimized_guards();

  std::string to_string(ExprId e) const;
  VarNames names() const;
  // Gives symbols the names that sym/names.h derives from their sources. Call this when all symbols exist.
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
  void find_violations(const SizeGuard& guard);
  Symbol& add_symbol(Symbol symbol);

  std::unique_ptr<RewriteLog> log_;
  ExprPool pool_;
  Facts facts_{pool_};
  std::vector<Symbol> symbols_;
  std::vector<uint32_t> symbol_of_;  // by variable; UINT32_MAX: not a symbol
  uint32_t backed_count_ = 0, unbacked_count_ = 0, marked_count_ = 0;
  std::vector<SizeGuard> guards_;
  std::vector<Violation> violations_;
  std::vector<RuntimeAssertion> assertions_;
  Counters counters_;
};

}  // namespace cresset::sym
