#include "sym/explain.h"

#include <fmt/format.h>

#include <algorithm>

namespace cresset::sym {
namespace {

constexpr size_t kMostGuards = 400;  // of more, only those that share variables with the conclusion are tried

void declare(const ShapeEnv& env, Facts& facts) {
  for (const Symbol& s : env.symbols()) {
    facts.declare(s.var, s.range, s.hint ? Facts::Role::Symbol : Facts::Role::Unbacked);
  }
}

bool follows(ShapeEnv& env, const std::vector<const GuardFact*>& guards, ExprId condition, const GuardFact* without) {
  Facts facts(env.pool());
  declare(env, facts);
  for (const GuardFact* guard : guards) {
    if (guard != without && !facts.learn(guard->condition)) return false;
  }
  return facts.decide(condition).value_or(false);
}

// The guards connected with `condition` by shared variables.
std::vector<const GuardFact*> connected(const ShapeEnv& env, ExprId condition) {
  std::vector<const GuardFact*> out;
  const ExprPool& pool = env.pool();
  uint64_t mask = pool[condition].var_mask;
  for (bool grew = true; grew;) {
    grew = false;
    for (const GuardFact& guard : env.guards()) {
      const uint64_t its = pool[guard.condition].var_mask;
      if ((its & mask) == 0 || (its & ~mask) == 0) continue;
      mask |= its;
      grew = env.guards().size() <= kMostGuards;
    }
  }
  for (const GuardFact& guard : env.guards()) {
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

// "x.size(0)" -> the call that marks it, with `settings`.
std::string mark_call(const char* mark, const std::string& source, const std::string& settings) {
  const size_t dot = source.rfind(".size(");
  if (dot == std::string::npos) return fmt::format("cresset.{} for {}", mark, source);
  const std::string dim = source.substr(dot + 6, source.size() - dot - 7);
  return fmt::format("cresset.{}({}, {}{})", mark, source.substr(0, dot), dim, settings);
}

std::string violation_text(ShapeEnv& env, const Violation& v) {
  const Symbol& symbol = *env.symbol(v.var);
  ExprPool& pool = env.pool();
  std::string out = fmt::format("\n  {} would be pinned to {} by", symbol.source, v.value);
  std::vector<GuardFact> why = causes(env, pool.eq(pool.var(v.var), pool.constant(v.value)));
  if (why.empty()) why.push_back({v.condition, v.reason});
  for (const GuardFact& guard : why) out += "\n    " + describe(env, guard);
  out += fmt::format("\n  the weakest mark that would be accepted: {}, which serves size {} only",
                     mark_call("mark_static", symbol.source, ""), v.value);
  return out;
}

}  // namespace

std::vector<GuardFact> causes(ShapeEnv& env, ExprId condition) {
  std::vector<const GuardFact*> kept = connected(env, condition);
  if (!follows(env, kept, condition, nullptr)) return {};
  // Late guards first: what was asked early is nearer to the inputs.
  for (size_t i = kept.size(); i-- > 0;) {
    if (follows(env, kept, condition, kept[i])) kept.erase(kept.begin() + static_cast<long>(i));
  }
  std::vector<GuardFact> out;
  for (const GuardFact* guard : kept) out.push_back(*guard);
  return out;
}

VarNames source_names(const ShapeEnv& env) {
  VarNames names;
  for (const Symbol& s : env.symbols()) names.emplace(s.var, s.source.empty() ? s.name : s.source);
  return names;
}

std::string describe(const ShapeEnv& env, const GuardFact& guard) {
  return to_string(env.pool(), guard.condition, source_names(env)) + asked_by(guard.reason);
}

std::string explain_violations(ShapeEnv& env) {
  if (env.violations().empty()) return "";
  std::string out = "cresset: dimensions marked dynamic would have to be static:";
  for (const Violation& v : env.violations()) out += violation_text(env, v);
  out +=
      "\nremedy: change these lines so that they hold for any size, or use cresset.maybe_mark_dynamic, "
      "cresset.mark_static "
      "or no mark";
  return out;
}

std::string explain_failure(ShapeEnv& env, const GuardFact& guard, const std::unordered_map<VarId, int64_t>& values) {
  const VarNames names = source_names(env);
  std::string out = "expected " + describe(env, guard);
  std::vector<VarId> vars;
  env.pool().collect_vars(guard.condition, vars);
  std::sort(vars.begin(), vars.end());
  for (const VarId var : vars) {
    const auto value = values.find(var);
    if (value != values.end()) out += fmt::format(", got {} = {}", names.at(var), value->second);
  }
  const std::vector<GuardFact> why = causes(env, guard.condition);
  const bool itself = why.empty() || (why.size() == 1 && why[0].condition == guard.condition);
  if (itself) return out;
  out += "; because of";
  for (const GuardFact& cause : why) out += fmt::format("{} {}", &cause == &why[0] ? "" : " and", describe(env, cause));
  return out;
}

}  // namespace cresset::sym
