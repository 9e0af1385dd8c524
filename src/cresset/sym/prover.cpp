#include "sym/prover.h"

#ifdef CRESSET_Z3
#include <z3++.h>

#include "base/check.h"
#include "sym/z3_library.h"

namespace cresset::sym {

struct Prover::Impl {
  // An expression in Z3: an integer, and the condition under which the expression has a value.
  struct Term {
    z3::expr value, defined;
  };

  explicit Impl(const ExprPool& pool) : pool(pool), solver(make_solver()) {}

  // The default solver is faster than the dedicated tactics on these short nonlinear problems.
  z3::solver make_solver() { return z3::solver(context); }

  z3::expr truth(const z3::expr& integer) { return integer != 0; }
  z3::expr number(const z3::expr& condition) { return z3::ite(condition, context.int_val(1), context.int_val(0)); }

  Term apply(Kind kind, const Term& a, const Term& b, Division division) {
    const z3::expr both = a.defined && b.defined;
    switch (kind) {
      case Kind::Add:
        return {a.value + b.value, both};
      case Kind::Mul:
        return {a.value * b.value, both};
      case Kind::FloorDiv:
      case Kind::Mod:
        return divide(kind, a, b, both, division);
      case Kind::Min:
        return {z3::ite(a.value <= b.value, a.value, b.value), both};
      case Kind::Max:
        return {z3::ite(a.value <= b.value, b.value, a.value), both};
      case Kind::Eq:
        return {number(a.value == b.value), both};
      case Kind::Ne:
        return {number(a.value != b.value), both};
      case Kind::Lt:
        return {number(a.value < b.value), both};
      case Kind::Le:
        return {number(a.value <= b.value), both};
      case Kind::And:
        return {number(truth(a.value) && truth(b.value)), both};
      case Kind::Or:
        return {number(truth(a.value) || truth(b.value)), both};
      case Kind::Const:
      case Kind::Var:
      case Kind::Not:
        break;
    }
    CRESSET_CHECK(false, "not an operation on two operands");
  }

  // Z3's div and mod leave a remainder >= 0: they round down for positive divisors. Operands of negative divisors are
  // negated.
  Term divide(Kind kind, const Term& a, const Term& b, const z3::expr& both, Division division) {
    const bool is_mod = kind == Kind::Mod;
    const auto up = [&](const z3::expr& x, const z3::expr& y) { return is_mod ? z3::mod(x, y) : x / y; };
    const auto down = [&](const z3::expr& x, const z3::expr& y) { return is_mod ? -z3::mod(-x, -y) : (-x) / (-y); };
    int64_t constant = 0;
    if (b.value.is_numeral_i64(constant) && constant != 0) {
      return {constant > 0 ? up(a.value, b.value) : down(a.value, b.value), both};
    }
    const z3::expr zero = context.int_val(0);
    z3::expr value = z3::ite(b.value > zero, up(a.value, b.value), down(a.value, b.value));
    if (division == Division::Program) return {z3::ite(b.value == zero, zero, value), both};
    return {value, both && b.value != zero};
  }

  Term of(ExprId id, Division division) {
    auto& memo = memos[division == Division::Program];
    if (const auto it = memo.find(id); it != memo.end()) return it->second;
    const Expr& e = pool[id];
    const auto done = [&](Term term) {
      memo.emplace(id, term);
      return term;
    };
    if (e.kind == Kind::Const) return done({context.int_val(e.value), context.bool_val(true)});
    if (e.kind == Kind::Var) {
      const VarId var = pool.var_of(id);
      const z3::expr constant = context.int_const(("v" + std::to_string(var.index)).c_str());
      variables.insert_or_assign(var, constant);
      return done({constant, context.bool_val(true)});
    }
    const std::span<const ExprId> operands = pool.operands(id);
    Term result = of(operands[0], division);
    if (e.kind == Kind::Not) return done({number(result.value == 0), result.defined});
    for (size_t i = 1; i < operands.size(); ++i) result = apply(e.kind, result, of(operands[i], division), division);
    return done(result);
  }

  // The operation requested from a builder, as opposed to its simplified result.
  Term original(const RewriteStep& step) {
    const Term a = of(step.a, Division::Partial);
    if (step.kind == StepKind::Rewrite) return a;
    if (step.kind == StepKind::Not) return {number(a.value == 0), a.defined};
    const Term b = of(step.b, Division::Partial);
    if (step.kind == StepKind::Sub) return {a.value - b.value, a.defined && b.defined};
    return apply(operation(step.kind), a, b, Division::Partial);
  }

  static Kind operation(StepKind kind) {
    switch (kind) {
      case StepKind::Add:
        return Kind::Add;
      case StepKind::Mul:
        return Kind::Mul;
      case StepKind::FloorDiv:
        return Kind::FloorDiv;
      case StepKind::Mod:
        return Kind::Mod;
      case StepKind::Min:
        return Kind::Min;
      case StepKind::Max:
        return Kind::Max;
      case StepKind::Eq:
        return Kind::Eq;
      case StepKind::Ne:
        return Kind::Ne;
      case StepKind::Lt:
        return Kind::Lt;
      case StepKind::Le:
        return Kind::Le;
      case StepKind::And:
        return Kind::And;
      case StepKind::Or:
        return Kind::Or;
      case StepKind::Rewrite:
      case StepKind::Sub:
      case StepKind::Not:
        break;
    }
    CRESSET_CHECK(false, "not an operation of a pool");
  }

  z3::expr all(std::span<const ExprId> conditions, Division division) {
    z3::expr result = context.bool_val(true);
    for (const ExprId condition : conditions) result = result && holds(condition, division);
    return result;
  }
  z3::expr holds(ExprId condition, Division division) {
    const Term term = of(condition, division);
    return term.defined && truth(term.value);
  }

  // Returns Proved when the negation is unsatisfiable.
  Verdict refute(const z3::expr& negation) {
    solver.push();
    solver.add(negation);
    const z3::check_result result = check();
    if (result == z3::sat) read_model();
    solver.pop();
    if (result == z3::unsat) return Verdict::Proved;
    return result == z3::sat ? Verdict::Refuted : Verdict::Unknown;
  }

  // A model is accepted only if it satisfies the query. An interrupted search for nonlinear integers may answer with
  // values outside their bounds.
  z3::check_result check() {
    try {
      const z3::check_result result = solver.check();
      return result == z3::sat && !model_holds() ? z3::unknown : result;
    } catch (const z3::exception&) {  // some kinds of timeout
      return z3::unknown;
    }
  }

  bool model_holds() {
    const z3::model model = solver.get_model();
    const z3::expr_vector assertions = solver.assertions();
    for (unsigned i = 0; i < assertions.size(); ++i) {
      if (!model.eval(assertions[static_cast<int>(i)], true).is_true()) return false;
    }
    return true;
  }

  void read_model() {
    found.clear();
    const z3::model model = solver.get_model();
    for (const auto& [var, constant] : variables) {
      int64_t value = 0;
      if (model.eval(constant, true).is_numeral_i64(value)) found[var] = value;
    }
  }

  const ExprPool& pool;
  z3::context context;
  z3::solver solver;
  std::unordered_map<ExprId, Term> memos[2];  // by Division
  std::unordered_map<VarId, z3::expr> variables;
  Assignment found;
};

Prover::Prover(const ExprPool& pool) : impl_(open_z3() ? std::make_unique<Impl>(pool) : nullptr) {}
Prover::~Prover() = default;
bool Prover::available() { return open_z3(); }
void Prover::set_timeout(int milliseconds) {
  if (impl_) impl_->solver.set("timeout", static_cast<unsigned>(milliseconds > 0 ? milliseconds : 1));
}
void Prover::push() {
  if (impl_) impl_->solver.push();
}
void Prover::pop() {
  if (impl_) impl_->solver.pop();
}

void Prover::assume(ExprId condition, Division division) {
  if (impl_) impl_->solver.add(impl_->holds(condition, division));
}

void Prover::assume(const Assumption& assumption) {
  if (!impl_) return;
  if (assumption.kind == Assumption::Kind::Condition) return assume(assumption.expr);
  const z3::expr value = impl_->of(assumption.expr, Division::Partial).value;
  const auto bound = [&](int64_t end) { return impl_->context.int_val(end); };
  if (assumption.range.lo != Interval::kNegInf) impl_->solver.add(value >= bound(assumption.range.lo));
  if (assumption.range.hi != Interval::kPosInf) impl_->solver.add(value <= bound(assumption.range.hi));
  if (!assumption.extent.valid()) return;
  const Impl::Term extent = impl_->of(assumption.extent, Division::Partial);
  impl_->solver.add(extent.defined && value < extent.value);
}

Verdict Prover::proves(const RewriteStep& step) {
  if (!impl_) return Verdict::Unknown;
  const Impl::Term before = impl_->original(step), after = impl_->of(step.after, Division::Partial);
  return impl_->refute(before.defined && !(after.defined && before.value == after.value));
}

Verdict Prover::equivalent(std::span<const ExprId> left, Division left_division, std::span<const ExprId> right,
                           Division right_division) {
  if (!impl_) return Verdict::Unknown;
  return impl_->refute(impl_->all(left, left_division) != impl_->all(right, right_division));
}

std::optional<Assignment> Prover::model(bool* decided) {
  if (decided != nullptr) *decided = false;
  if (!impl_) return std::nullopt;
  const z3::check_result result = impl_->check();
  if (decided != nullptr) *decided = result != z3::unknown;
  if (result != z3::sat) return std::nullopt;
  impl_->read_model();
  return impl_->found;
}

const Assignment& Prover::counterexample() const {
  static const Assignment none;
  return impl_ ? impl_->found : none;
}

}  // namespace cresset::sym

#else  // without Z3's headers: every answer is Unknown

namespace cresset::sym {

struct Prover::Impl {
  Assignment none;
};
Prover::Prover(const ExprPool&) : impl_(std::make_unique<Impl>()) {}
Prover::~Prover() = default;
bool Prover::available() { return false; }
void Prover::set_timeout(int) {}
void Prover::push() {}
void Prover::pop() {}
void Prover::assume(ExprId, Division) {}
void Prover::assume(const Assumption&) {}
Verdict Prover::proves(const RewriteStep&) { return Verdict::Unknown; }
Verdict Prover::equivalent(std::span<const ExprId>, Division, std::span<const ExprId>, Division) {
  return Verdict::Unknown;
}
std::optional<Assignment> Prover::model(bool* decided) {
  if (decided != nullptr) *decided = false;
  return std::nullopt;
}
const Assignment& Prover::counterexample() const { return impl_->none; }

}  // namespace cresset::sym
#endif
