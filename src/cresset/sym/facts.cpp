#include "sym/facts.h"

#include "base/check.h"
#include "sym/rebuild.h"

namespace cresset::sym {
namespace {

constexpr int kFuel = 4000;
constexpr int kMaxDepth = 200;  // deeper expressions are not simplified

const char* rule_name(Kind kind) {
  switch (kind) {
    case Kind::Add:
      return "sum under facts";
    case Kind::Mul:
      return "product under facts";
    case Kind::FloorDiv:
    case Kind::Mod:
      return "division under facts";
    case Kind::Min:
    case Kind::Max:
      return "extremum under facts";
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
      return "relation under facts";
    case Kind::Const:
    case Kind::Var:
    case Kind::And:
    case Kind::Or:
    case Kind::Not:
      break;
  }
  return "";
}

}  // namespace

Facts::VarInfo& Facts::info(VarId var) {
  if (var.index >= vars_.size()) vars_.resize(pool_.var_count());
  CRESSET_CHECK(var.index < vars_.size(), "a variable of another pool");
  return vars_[var.index];
}

Facts::Memo& Facts::memo(ExprId e) {
  if (e.index >= memo_.size()) memo_.resize(pool_.size() + pool_.size() / 2);
  return memo_[e.index];
}

void Facts::declare(VarId var, Interval range, Role role, std::optional<int64_t> hint) {
  VarInfo& v = info(var);
  v.range = range;
  v.role = role;
  samples_.declare(var, range, hint);
  assume(Assumption::Kind::Range, pool_.var(var), range);
}

void Facts::declare_index(VarId var, ExprId extent) {
  declare(var, Interval::size(), Role::Index);
  info(var).extent = extent;
  samples_.declare_index(var, extent);
  assume(Assumption::Kind::Extent, pool_.var(var), Interval::size(), extent);
  extent_mask_ |= uint64_t{1} << (var.index % 64);
}

RewriteLog* Facts::log() {
  RewriteLog* steps = pool_.log();
  if (steps != nullptr && base_ == RewriteStep::kNoBase) base_ = steps->new_base();
  return steps;
}

void Facts::assume(Assumption::Kind kind, ExprId expr, Interval range, ExprId extent) {
  if (RewriteLog* steps = log()) steps->assume(base_, {kind, expr, range, extent});
}

Interval Facts::declared_range(VarId var) const {
  return var.index < vars_.size() ? vars_[var.index].range : Interval::all();
}

ExprId Facts::extent(VarId var) {
  const ExprId declared = info(var).extent;
  return declared.valid() ? simplify(declared) : declared;
}

void Facts::constrain(VarId var, Interval range) {
  const ExprId v = pool_.var(var);
  if (range.lo != Interval::kNegInf) learn(pool_.ge(v, pool_.constant(range.lo)));
  if (range.hi != Interval::kPosInf) learn(pool_.le(v, pool_.constant(range.hi)));
}

ExprId Facts::simplify(ExprId e) {
  if (pool_.is_const(e)) return e;
  if (const Memo& m = memo(e); m.simplified_at == epoch_) return m.simplified;
  if (nesting_ == 0) fuel_ = kFuel;
  if (fuel_ <= 0 || nesting_ > 2 * kMaxDepth || pool_[e].depth > kMaxDepth) return e;
  ++nesting_;
  const ExprId result = simplify_uncached(e);
  --nesting_;
  if (fuel_ <= 0) return result;  // sound, but a new query with full fuel may give a better result
  for (const ExprId key : {e, result}) {
    Memo& m = memo(key);
    m.simplified = result;
    m.simplified_at = epoch_;
  }
  return result;
}

ExprId Facts::simplify_uncached(ExprId e) {
  --fuel_;
  const Next next = rewrite_once(e);
  if (next.expr == e) return e;
  if (RewriteLog* steps = log()) steps->rewrote(base_, next.rule, e, next.expr);
  return simplify(next.expr);
}

Facts::Next Facts::rewrite_once(ExprId e) {
  if (planted_rule_ != nullptr) {
    if (const ExprId planted = planted_rule_(pool_, e); planted != e) return {planted, "planted"};
  }
  if (pool_.is_var(e)) {
    const VarInfo v = info(pool_.var_of(e));
    if (v.replacement.valid()) return {v.replacement, "learned equality"};
    if (const Interval range = range_of(e); range.is_point()) return {pool_.constant(range.lo), "range of one value"};
    const int64_t unit = v.role == Role::Index ? 1 : known_multiple(e);
    return {pool_.mul(pool_.constant(unit), pool_.floor_div(e, pool_.constant(unit))), "known multiple"};
  }
  ExprList old_operands, new_operands;
  if (!is_unit(e)) old_operands.assign(pool_.operands(e));  // the operand of a unit would be expressed by the unit
  bool changed = false;
  for (const ExprId operand : old_operands) {
    new_operands.push_back(simplify(operand));
    changed |= new_operands.back() != operand;
  }
  if (changed) {
    const ExprId rebuilt = rebuild(pool_, e, new_operands);
    if (rebuilt != e) return {rebuilt, "operands simplified"};
  }
  if (const auto it = truth_.find(e); it != truth_.end()) return {pool_.constant(it->second), "learned condition"};
  if (const auto it = monomial_replacement_.find(e); it != monomial_replacement_.end()) {
    return {it->second, "learned value of a product"};
  }
  if (const ExprId next = simplify_node(e); next != e) return {next, rule_name(pool_[e].kind)};
  if (!pool_.is_boolean(e)) {
    if (const Interval r = range_of(e); r.is_point()) return {pool_.constant(r.lo), "range of one value"};
  }
  return {e, ""};
}

ExprId Facts::simplify_node(ExprId e) {
  switch (pool_[e].kind) {
    case Kind::Const:
    case Kind::Var:
    case Kind::And:
    case Kind::Or:
    case Kind::Not:
      return e;
    case Kind::Add:
      return simplify_sum(e);
    case Kind::Mul:
      return simplify_product(e);
    case Kind::FloorDiv:
    case Kind::Mod:
      return simplify_division(e);
    case Kind::Min:
    case Kind::Max:
      return simplify_extremum(e);
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
      return simplify_relation(e);
  }
  CRESSET_CHECK(false, "unknown kind");
}

ExprId Facts::simplify_sum(ExprId e) {
  TermList terms;
  pool_.terms(e, terms);
  const bool joined = pool_.join_remainders(terms, [this](ExprId divisor) {
    return !pool_.is_const(divisor) && nonzero(divisor);  // the pool already joins constant divisors
  });
  return joined ? pool_.from_terms(terms) : e;
}

// Simplifies an expression which is evaluated only where it has a value. No divisor is 0, so divisors in the range of
// sizes are positive.
ExprId Facts::simplify_address(ExprId e) {
  e = simplify(e);
  const ExprPool::Divisors is_size = [this](ExprId divisor) { return range_of(divisor).lo >= 0; };
  for (int step = 0; step < kMaxDepth; ++step) {
    TermList terms;
    pool_.terms(e, terms);  // quotients first: joining two remainders hides their quotient
    if (!pool_.join_remainders(terms, is_size) && !pool_.join_remainders(terms, is_size, &is_size)) break;
    const ExprId joined = pool_.from_terms(terms);
    if (RewriteLog* steps = log()) steps->rewrote(base_, "quotient and remainder of an address", e, joined);
    e = simplify(joined);
  }
  return e;
}

// (x // c) * (c * k) -> x * k when c is known to divide x; also applies learned values of products.
ExprId Facts::simplify_product(ExprId e) {
  const Expr& node = pool_[e];
  const Term term{node.monomial, node.value};
  for (const ExprId key : product_keys_) {
    ExprId rest;
    if (!pool_.monomial_quotient(term.monomial, key, rest)) continue;
    return pool_.mul(pool_.scaled(rest, term.coefficient), monomial_replacement_.at(key));
  }
  ExprList atoms;
  atoms.assign(pool_.factors(term.monomial));
  for (const ExprId atom : atoms) {
    if (pool_[atom].kind != Kind::FloorDiv || is_unit(atom)) continue;
    const ExprId x = pool_.operands(atom)[0], c = pool_.operands(atom)[1];
    ExprId rest, cofactor;
    if (!pool_.monomial_quotient(term.monomial, atom, rest)) continue;
    TermList divisor;
    pool_.terms(c, divisor);
    if (divisor.size() != 1 || divisor[0].coefficient == 0) continue;
    if (term.coefficient % divisor[0].coefficient != 0) continue;
    if (!pool_.monomial_quotient(rest, divisor[0].monomial, cofactor)) continue;
    if (!pool_.is_const(simplify(pool_.mod(x, c)), 0)) continue;
    return pool_.mul(pool_.scaled(cofactor, term.coefficient / divisor[0].coefficient), x);
  }
  return e;
}

ExprId Facts::simplify_extremum(ExprId e) {
  const bool is_min = pool_[e].kind == Kind::Min;
  ExprList kept;
  kept.assign(pool_.operands(e));
  for (size_t i = 0; i < kept.size(); ++i) {
    for (size_t j = 0; j < kept.size(); ++j) {
      if (i == j) continue;
      if (!(is_min ? at_most(kept[i], kept[j]) : at_most(kept[j], kept[i]))) continue;
      kept.erase_at(j);
      return kept.size() == 1 ? kept[0] : rebuild(pool_, e, kept);
    }
  }
  return e;
}

Interval Facts::range(ExprId e) { return range_of(simplify(e)); }

ExprId Facts::truth_of(ExprId condition) {
  return pool_.is_boolean(condition) ? condition : pool_.ne(condition, pool_.constant(0));
}

std::optional<bool> Facts::decide(ExprId condition) {
  const ExprId simplified = simplify(truth_of(condition));
  if (!pool_.is_const(simplified)) return std::nullopt;
  return pool_.const_value(simplified) != 0;
}

bool Facts::nonzero(ExprId e) {
  if (!range_of(e).contains(0)) return true;
  return decide(pool_.ne(e, pool_.constant(0))).value_or(false);
}

bool Facts::at_most(ExprId a, ExprId b) { return decide(pool_.le(a, b)).value_or(false); }
bool Facts::less_than(ExprId a, ExprId b) { return decide(pool_.lt(a, b)).value_or(false); }

}  // namespace cresset::sym
