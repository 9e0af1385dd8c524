#include "sym/shape_env.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "base/options.h"
#include "sym/eval.h"

namespace cresset::sym {

ShapeEnv::ShapeEnv() {
  if (option_flag(Option::VALIDATE)) keep_log();
}

void ShapeEnv::keep_log() {
  log_ = std::make_unique<RewriteLog>();
  pool_.set_log(log_.get());
}

Symbol& ShapeEnv::add_symbol(Symbol symbol) {
  if (symbol_of_.size() <= symbol.var.index) symbol_of_.resize(symbol.var.index + 1, UINT32_MAX);
  symbol_of_[symbol.var.index] = static_cast<uint32_t>(symbols_.size());
  facts_.declare(symbol.var, symbol.range, symbol.hint ? Facts::Role::Symbol : Facts::Role::Unbacked, symbol.hint);
  symbols_.push_back(std::move(symbol));
  return symbols_.back();
}

ExprId ShapeEnv::new_backed(std::string source, int64_t hint, Interval range, Policy policy) {
  const VarId var = pool_.new_var();
  Symbol& symbol = add_symbol({var, fmt::format("s{}", backed_count_++), std::move(source), hint, range, policy});
  marked_count_ += policy == Policy::MarkedDynamic;
  if (policy != Policy::Static) return pool_.var(var);
  const ExprId value = pool_.constant(hint);
  record_guard(pool_.eq(pool_.var(var), value), Reason{"", symbol.source});
  return value;
}

ExprId ShapeEnv::new_unbacked(std::string source, Interval range) {
  const VarId var = pool_.new_var();
  add_symbol({var, fmt::format("u{}", unbacked_count_++), std::move(source), std::nullopt, range, Policy::Dynamic});
  return pool_.var(var);
}

const Symbol* ShapeEnv::symbol(VarId var) const {
  if (var.index >= symbol_of_.size() || symbol_of_[var.index] == UINT32_MAX) return nullptr;
  return &symbols_[symbol_of_[var.index]];
}

ExprId ShapeEnv::new_ranged_var(Interval range) {
  const VarId var = pool_.new_var();
  facts_.declare(var, range, Facts::Role::Index);
  return pool_.var(var);
}

ExprId ShapeEnv::new_index_var(ExprId extent) {
  const VarId var = pool_.new_var();
  facts_.declare_index(var, extent);
  return pool_.var(var);
}

std::optional<bool> ShapeEnv::statically_known(ExprId condition) { return facts_.decide(condition); }

bool ShapeEnv::known_equal(ExprId a, ExprId b) {
  if (a == b) return true;
  if (pool_.is_const(a) && pool_.is_const(b)) return false;
  if (facts_.simplify(a) == facts_.simplify(b)) return true;
  return known_true(pool_.eq(a, b));
}

bool ShapeEnv::known_not_equal(ExprId a, ExprId b) { return a != b && known_true(pool_.ne(a, b)); }

std::optional<int64_t> ShapeEnv::specialize(ExprId e, const Reason& why) {
  e = simplify(e);
  if (pool_.is_const(e)) return pool_.const_value(e);
  const std::optional<int64_t> value = hint(e);
  if (!value) return std::nullopt;
  evaluate(pool_.eq(e, pool_.constant(*value)), [&] { return why; });
  return value;
}

bool ShapeEnv::assume(ExprId condition, std::string message) {
  if (!pool_.is_boolean(condition)) condition = pool_.ne(condition, pool_.constant(0));
  const ExprId simplified = simplify(condition);
  if (pool_.is_const(simplified)) return pool_.const_value(simplified) != 0;
  assertions_.push_back({condition, std::move(message)});
  facts_.learn(simplified);
  return true;
}

void ShapeEnv::learn(VarId var, int64_t value) { symbols_.at(symbol_of_.at(var.index)).hint = value; }

void ShapeEnv::state_typical(VarId var, int64_t value) { symbols_.at(symbol_of_.at(var.index)).typical = value; }

int64_t ShapeEnv::typical_or(ExprId e, int64_t fallback) const {
  const auto of = [this](VarId var) -> std::optional<int64_t> {
    const Symbol* s = symbol(var);
    return s == nullptr ? std::nullopt : s->typical ? s->typical : s->hint;
  };
  return eval(pool_, e, of).value_or(fallback);
}

std::optional<int64_t> ShapeEnv::hint(ExprId e) const {
  return eval(pool_, e, [this](VarId var) -> std::optional<int64_t> {
    const Symbol* s = symbol(var);
    return s ? s->hint : std::nullopt;
  });
}

Interval ShapeEnv::range(ExprId e) { return facts_.range(e); }

void ShapeEnv::constrain(VarId var, Interval range) {
  facts_.constrain(var, range);
  if (const Symbol* s = symbol(var)) {
    Symbol& known = symbols_[static_cast<size_t>(s - symbols_.data())];
    known.range = intersect(known.range, range);
  }
}

ExprId ShapeEnv::simplify(ExprId e) { return facts_.simplify(e); }

void ShapeEnv::record_guard(ExprId condition, Reason reason) {
  if (!pool_.is_boolean(condition)) condition = pool_.ne(condition, pool_.constant(0));
  if (pool_[condition].kind == Kind::And) {  // separately: some parts may be known, and failures name the part
    ExprList parts;
    parts.assign(pool_.operands(condition));
    for (const ExprId part : parts) {
      if (!known_true(part)) record_guard(part, reason);
    }
    return;
  }
  ++counters_.guards_recorded;
  CRESSET_LOG(Guards, fmt::format("guard {}  # {} {}", to_string(condition), reason.op, reason.location));
  guards_.push_back({condition, std::move(reason)});
  facts_.learn(condition);
  if (marked_count_ > 0) find_violations(guards_.back());
}

void ShapeEnv::find_violations(const SizeGuard& guard) {
  for (const Symbol& s : symbols_) {
    if (s.policy != Policy::MarkedDynamic) continue;
    const ExprId value = simplify(pool_.var(s.var));
    if (!pool_.is_const(value)) continue;
    const auto same = [&](const Violation& v) { return v.var == s.var; };
    if (std::any_of(violations_.begin(), violations_.end(), same)) continue;
    violations_.push_back({s.var, pool_.const_value(value), guard.condition, guard.reason});
  }
}

VarNames ShapeEnv::names() const {
  VarNames names;
  for (const Symbol& s : symbols_) names.emplace(s.var, s.name);
  return names;
}

std::string ShapeEnv::to_string(ExprId e) const { return sym::to_string(pool_, e, names()); }

}  // namespace cresset::sym
