#include "sym/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "base/check.h"
#include "sym/prover.h"

namespace cresset::sym {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr const char* kSymbols[] = {"",   "+",  "-", "*",  "//",  "%",  "min", "max",
                                    "==", "!=", "<", "<=", "and", "or", "not"};

std::string operation_text(const ExprPool& pool, const RewriteStep& step, const VarNames& names) {
  const std::string a = to_string(pool, step.a, names);
  if (step.kind == StepKind::Rewrite) return a;
  const char* symbol = kSymbols[static_cast<size_t>(step.kind)];
  if (step.kind == StepKind::Not) return fmt::format("not ({})", a);
  const std::string b = to_string(pool, step.b, names);
  if (step.kind == StepKind::Min || step.kind == StepKind::Max) return fmt::format("{}({}, {})", symbol, a, b);
  return fmt::format("({}) {} ({})", a, symbol, b);
}

class Validation {
 public:
  Validation(ExprPool& pool, const VarNames& names, const ValidationLimits& limits)
      : pool_(pool), names_(names), limits_(limits), begin_(now_ms()) {}

  void steps(const RewriteLog& log) {
    Prover builders(pool_);
    builders.set_timeout(limits_.query_ms);
    std::vector<const RewriteStep*> rewrites;
    for (const RewriteStep& step : log.steps()) {
      if (step.kind == StepKind::Rewrite) {
        rewrites.push_back(&step);
      } else if (!trivial(step)) {
        settle(step, time_left() ? builders.proves(step) : Verdict::Unknown, builders);
      }
    }
    for (uint32_t base = 0; base < log.bases().size(); ++base) rewrites_of(base, log.bases()[base], rewrites);
  }

  void guards(const ShapeEnv& env, std::span<const SizeGuard> checked) {
    Prover prover(pool_);
    prover.set_timeout(5 * limits_.query_ms);
    std::vector<ExprId> asked, program;
    for (const Symbol& s : env.symbols()) {
      const Interval natural = s.range.lo >= 0 ? Interval::size() : Interval::all();
      const bool promised = !s.hint;  // the producer ensures the range of an unbacked symbol
      prover.assume({Assumption::Kind::Range, var(s.var), promised ? s.range : natural, {}});
      if (!promised) add_range(s, natural);
    }
    for (const SizeGuard& guard : env.guards()) asked.push_back(guard.condition);
    for (const SizeGuard& guard : checked) program.push_back(guard.condition);
    asked.insert(asked.end(), ranges_.begin(), ranges_.end());
    const Verdict verdict = prover.equivalent(asked, Division::Partial, program, Division::Program);
    report_.guards_proved = verdict == Verdict::Proved;
    count(verdict, [&] {
      return fmt::format("the guards checked are not the guards asked for: {}", values(prover.counterexample()));
    });
    if (verdict == Verdict::Unknown) note_unproved("the guards checked are those asked for");
  }

  ValidationReport take() {
    report_.ms = now_ms() - begin_;
    return std::move(report_);
  }

 private:
  ExprId var(VarId id) { return pool_.var(id); }

  void add_range(const Symbol& s, Interval natural) {
    if (s.range.lo > natural.lo) ranges_.push_back(pool_.ge(var(s.var), pool_.constant(s.range.lo)));
    if (s.range.hi < natural.hi) ranges_.push_back(pool_.le(var(s.var), pool_.constant(s.range.hi)));
  }

  bool time_left() const { return now_ms() - begin_ < limits_.total_s * 1000; }

  // A builder that stored its arguments unchanged needs no proof.
  bool trivial(const RewriteStep& step) {
    const bool kept = pool_[step.after].kind == Kind::FloorDiv || pool_[step.after].kind == Kind::Mod;
    if (!kept || pool_.operands(step.after)[0] != step.a || pool_.operands(step.after)[1] != step.b) return false;
    ++report_.proved;
    return true;
  }

  // Few facts are tried first: facts about the variables of the expression, then facts connected with these facts, then
  // all. A proof from some facts is a proof from all facts; only a refutation needs all of them.
  void rewrites_of(uint32_t base, const std::vector<Assumption>& facts, const std::vector<const RewriteStep*>& steps) {
    for (const RewriteStep* step : steps) {
      if (step->base != base) continue;
      if (prover_ == nullptr) prover_ = std::make_unique<Prover>(pool_);
      if (!time_left()) {
        settle(*step, Verdict::Unknown, *prover_);
        continue;
      }
      Verdict verdict = Verdict::Unknown;
      for (int rounds = 1; rounds <= 3; ++rounds) {
        const std::vector<size_t> used = relevant(*step, facts, rounds);
        prover_->set_timeout(limits_.query_ms);
        prover_->push();
        for (const size_t i : used) prover_->assume(facts[i]);
        verdict = prover_->proves(*step);
        prover_->pop();
        const bool all = used.size() == step->known;
        if (verdict == Verdict::Proved || all) break;
      }
      settle(*step, verdict, *prover_);
    }
  }

  uint64_t mask_of(const Assumption& fact) const {
    return pool_[fact.expr].var_mask | (fact.extent.valid() ? pool_[fact.extent].var_mask : 0);
  }

  std::vector<size_t> relevant(const RewriteStep& step, const std::vector<Assumption>& facts, int rounds) const {
    uint64_t mask = pool_[step.a].var_mask | pool_[step.after].var_mask;
    std::vector<bool> in(step.known, rounds >= 3);
    for (int round = 0; round < rounds && rounds < 3; ++round) {
      uint64_t next = mask;
      for (size_t i = 0; i < step.known; ++i) {
        if ((mask_of(facts[i]) & mask) == 0) continue;
        in[i] = true;
        next |= mask_of(facts[i]);
      }
      mask = next;
    }
    std::vector<size_t> used;
    for (size_t i = 0; i < step.known; ++i) {
      const bool range = facts[i].kind == Assumption::Kind::Range && (mask_of(facts[i]) & mask) != 0;
      if (in[i] || range) used.push_back(i);
    }
    return used;
  }

  void settle(const RewriteStep& step, Verdict verdict, const Prover& prover) {
    const auto text = [&] {
      return fmt::format("{}: {} became {}", step.rule, operation_text(pool_, step, names_),
                         to_string(pool_, step.after, names_));
    };
    count(verdict, [&] { return text() + ", which differs at " + values(prover.counterexample()); });
    if (verdict == Verdict::Unknown) note_unproved(text());
  }

  template <class Text>
  void count(Verdict verdict, Text&& text) {
    if (verdict == Verdict::Proved) ++report_.proved;
    if (verdict == Verdict::Unknown) ++report_.not_proved;
    if (verdict != Verdict::Refuted) return;
    ++report_.refuted;
    if (report_.failures.size() < limits_.most_reports) report_.failures.push_back(text());
  }
  void note_unproved(std::string text) {
    if (report_.unproved.size() < limits_.most_reports) report_.unproved.push_back(std::move(text));
  }

  std::string values(const Assignment& assignment) const {
    std::vector<std::pair<VarId, int64_t>> sorted(assignment.begin(), assignment.end());
    std::sort(sorted.begin(), sorted.end());
    std::string out;
    for (const auto& [id, value] : sorted) {
      const auto name = names_.find(id);
      const std::string text = name != names_.end() ? name->second : fmt::format("v{}", id.index);
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", text, value);
    }
    return out.empty() ? "any sizes" : out;
  }

  ExprPool& pool_;
  const VarNames& names_;
  const ValidationLimits limits_;
  const double begin_;
  std::unique_ptr<Prover> prover_;
  std::vector<ExprId> ranges_;
  ValidationReport report_;
};

}  // namespace

ValidationReport validate_steps(ExprPool& pool, const RewriteLog& log, const VarNames& names,
                                const ValidationLimits& limits) {
  Validation validation(pool, names, limits);
  validation.steps(log);
  return validation.take();
}

ValidationReport validate(ShapeEnv& env, std::span<const SizeGuard> checked, const ValidationLimits& limits) {
  CRESSET_CHECK(env.log() != nullptr, "validation needs a log of what was done");
  const VarNames names = env.names();
  Validation validation(env.pool(), names, limits);
  validation.guards(env, checked);
  validation.steps(*env.log());
  return validation.take();
}

std::string ValidationReport::text() const {
  std::string out = fmt::format("{} proved, {} not proved, {} wrong in {:.0f} ms; guards {}", proved, not_proved,
                                refuted, ms, guards_proved ? "proved" : "not proved");
  for (const std::string& failure : failures) out += "\n  wrong: " + failure;
  for (const std::string& text : unproved) out += "\n  not proved: " + text;
  return out;
}

}  // namespace cresset::sym
