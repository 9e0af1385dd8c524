#include "sym/explain.h"

#include <fmt/format.h>

#include <algorithm>

namespace cresset::sym {
namespace {

constexpr size_t kMostFixed = 3;
constexpr size_t kMostGuards = 400;  // beyond this number, only guards sharing variables with the conclusion are tried

// `free`: a symbol whose given range is ignored.
void declare(const ShapeEnv& env, Facts& facts, std::optional<VarId> free) {
  for (const Symbol& s : env.symbols()) {
    const Interval natural = s.range.lo >= 0 ? Interval::size() : Interval::all();
    facts.declare(s.var, free == s.var ? natural : s.range, s.hint ? Facts::Role::Symbol : Facts::Role::Unbacked);
  }
}

bool follows(ShapeEnv& env, const std::vector<const SizeGuard*>& guards, ExprId condition, const SizeGuard* without,
             std::optional<VarId> free = std::nullopt) {
  Facts facts(env.pool());
  declare(env, facts, free);
  for (const SizeGuard* guard : guards) {
    if (guard != without && !facts.learn(guard->condition)) return false;
  }
  return facts.decide(condition).value_or(false);
}

// The guards connected with `condition` by shared variables.
std::vector<const SizeGuard*> connected(const ShapeEnv& env, ExprId condition) {
  std::vector<const SizeGuard*> out;
  const ExprPool& pool = env.pool();
  uint64_t mask = pool[condition].var_mask;
  for (bool grew = true; grew;) {
    grew = false;
    for (const SizeGuard& guard : env.guards()) {
      const uint64_t its = pool[guard.condition].var_mask;
      if ((its & mask) == 0 || (its & ~mask) == 0) continue;
      mask |= its;
      grew = env.guards().size() <= kMostGuards;
    }
  }
  for (const SizeGuard& guard : env.guards()) {
    if ((pool[guard.condition].var_mask & mask) != 0) out.push_back(&guard);
  }
  return out;
}

std::string asked_by(const Reason& reason) {
  std::string out;
  if (!reason.op.empty()) out += ", asked by " + reason.op;
  if (!reason.location.empty()) out += (reason.op.empty() ? ", " : " at ") + reason.location;
  return out;
}

// "x.size(0)" -> the call of the mark, with `settings`.
std::string mark_call(const char* mark, const std::string& source, const std::string& settings) {
  const size_t dot = source.rfind(".size(");
  if (dot == std::string::npos) return fmt::format("cresset.{} for {}", mark, source);
  const std::string dim = source.substr(dot + 6, source.size() - dot - 7);
  return fmt::format("cresset.{}({}, {}{})", mark, source.substr(0, dot), dim, settings);
}

std::vector<SizeGuard> causes_of_value(ShapeEnv& env, VarId var, int64_t value) {
  ExprPool& pool = env.pool();
  return causes(env, pool.eq(pool.var(var), pool.constant(value)));
}

// Whether the guards alone specialize the symbol, without the range given to it.
bool specialized_by_guards(ShapeEnv& env, const Violation& v) {
  const ExprId value = env.pool().eq(env.pool().var(v.var), env.pool().constant(v.value));
  return follows(env, connected(env, value), value, nullptr, v.var);
}

std::string violation_text(ShapeEnv& env, const Violation& v, const std::vector<FixedSize>& fixed) {
  const Symbol& symbol = *env.symbol(v.var);
  std::string out = fmt::format("\n  {} would be specialized to {} by", symbol.source, v.value);
  std::vector<SizeGuard> why = causes_of_value(env, v.var, v.value);
  if (why.empty()) why.push_back({v.condition, v.reason});
  for (const SizeGuard& guard : why) out += "\n    " + describe(env, guard);
  if (!specialized_by_guards(env, v)) {
    out += "\n    the range that its mark gives";
    out += fmt::format("\n  the weakest mark that would be accepted: {}, without a range",
                       mark_call("mark_dynamic", symbol.source, ""));
    return out;
  }
  size_t named = 0;
  for (const FixedSize& f : fixed)
    if (f.value == v.value && named++ < kMostFixed) out += fmt::format("\n    {} is static, and {}", f.source, f.value);
  out += fmt::format("\n  the weakest mark that would be accepted: {}, which serves size {} only",
                     mark_call("mark_static", symbol.source, ""), v.value);
  return out;
}

}  // namespace

std::vector<SizeGuard> causes(ShapeEnv& env, ExprId condition) {
  std::vector<const SizeGuard*> kept = connected(env, condition);
  if (!follows(env, kept, condition, nullptr)) return {};
  // Late guards are removed first, because early guards are closer to the inputs.
  for (size_t i = kept.size(); i-- > 0;) {
    if (follows(env, kept, condition, kept[i])) kept.erase(kept.begin() + static_cast<long>(i));
  }
  std::vector<SizeGuard> out;
  for (const SizeGuard* guard : kept) out.push_back(*guard);
  return out;
}

VarNames source_names(const ShapeEnv& env) {
  VarNames names;
  for (const Symbol& s : env.symbols()) names.emplace(s.var, s.source.empty() ? s.name : s.source);
  return names;
}

std::string describe(const ShapeEnv& env, const SizeGuard& guard) {
  return to_string(env.pool(), guard.condition, source_names(env)) + asked_by(guard.reason);
}

std::string explain_violations(ShapeEnv& env, const std::vector<FixedSize>& fixed) {
  if (env.violations().empty()) return "";
  std::string out = "cresset: dimensions marked dynamic would have to be static:";
  for (const Violation& v : env.violations()) out += violation_text(env, v, fixed);
  out +=
      "\nremedy: change these lines so that they hold for any size, or use cresset.maybe_mark_dynamic, "
      "cresset.mark_static "
      "or no mark";
  return out;
}

std::vector<std::string> dropped_suggestions(ShapeEnv& env) {
  std::vector<std::string> out;
  for (const Symbol& s : env.symbols()) {
    if (s.policy != Policy::Suggested) continue;
    const ExprId value = env.simplify(env.pool().var(s.var));
    if (!env.pool().is_const(value)) continue;
    const int64_t number = env.pool().const_value(value);
    std::string line =
        fmt::format("the suggestion that {} varies is dropped: it is specialized to {}", s.source, number);
    for (const SizeGuard& guard : causes_of_value(env, s.var, number)) line += "; " + describe(env, guard);
    out.push_back(std::move(line));
  }
  return out;
}

std::string explain_failure(ShapeEnv& env, const SizeGuard& guard, const std::unordered_map<VarId, int64_t>& values) {
  const VarNames names = source_names(env);
  std::string out = "expected " + describe(env, guard);
  std::vector<VarId> vars;
  env.pool().collect_vars(guard.condition, vars);
  std::sort(vars.begin(), vars.end());
  for (const VarId var : vars) {
    const auto value = values.find(var);
    if (value != values.end()) out += fmt::format(", got {} = {}", names.at(var), value->second);
  }
  const std::vector<SizeGuard> why = causes(env, guard.condition);
  const bool itself = why.empty() || (why.size() == 1 && why[0].condition == guard.condition);
  if (itself) return out;
  out += "; because of";
  for (const SizeGuard& cause : why) out += fmt::format("{} {}", &cause == &why[0] ? "" : " and", describe(env, cause));
  return out;
}

}  // namespace cresset::sym
