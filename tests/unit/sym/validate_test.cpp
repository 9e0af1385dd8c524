#include "sym/validate.h"

#include <gmock/gmock.h>

#include "sym/prover.h"
#include "sym_fixture.h"

namespace cresset::sym::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class ValidateTest : public EnvTest {
 protected:
  void SetUp() override {
    if (!Prover::available()) GTEST_SKIP() << "built without Z3";
    env_.keep_log();
  }
  ValidationReport report() { return validate(env_, env_.minimized_guards()); }
};

TEST_F(ValidateTest, AProgramOfSizesIsProved) {
  size("b", 8), size("s", 48), size("h", 56);
  index("i", "b*s");
  ask("s % 8 == 0");
  ask("b*s != 1");
  ask("(h + 7)//8 == 7");
  simplified("(i//s)*s + i % s");
  simplified("(s//8)*8*b");
  known("i//s < b");
  const ValidationReport r = report();
  EXPECT_TRUE(r.ok()) << r.text();
  EXPECT_TRUE(r.guards_proved) << r.text();
  EXPECT_EQ(r.not_proved, 0) << r.text();
  EXPECT_GT(r.proved, 10);
}

// x // 2 -> 3*x.
ExprId halving_triples(ExprPool& pool, ExprId e) {
  if (pool[e].kind != Kind::FloorDiv || !pool.is_const(pool.operands(e)[1], 2)) return e;
  return pool.mul(pool.operands(e)[0], pool.constant(3));
}

TEST_F(ValidateTest, APlantedWrongRuleIsFoundAndNamedFirst) {
  size("s", 9), size("t", 4);
  ask("t >= 2");
  env_.facts().plant_rule(halving_triples);
  simplified("t*2 + 1");
  ask("s//2 == 27");  // true by the planted rule, false by the hint: recorded negated
  const ValidationReport r = report();
  EXPECT_GE(r.refuted, 1) << r.text();
  ASSERT_FALSE(r.failures.empty());
  const bool named = std::any_of(r.failures.begin(), r.failures.end(), [](const std::string& f) {
    return f.starts_with("planted: s0//2 became 3*s0, which differs at s0 = ");
  });
  EXPECT_TRUE(named) << r.text();
}

TEST_F(ValidateTest, GuardsThatWereDroppedAreMissed) {
  size("s", 9), size("t", 4);
  ask("s >= 3"), ask("t == 4");
  const std::vector<SizeGuard> all = env_.minimized_guards();
  ASSERT_EQ(all.size(), 2u);
  const ValidationReport r = validate(env_, std::span(all).first(1));
  EXPECT_EQ(r.refuted, 1) << r.text();
  EXPECT_FALSE(r.guards_proved);
  EXPECT_THAT(r.failures[0], HasSubstr("the guards checked are not the guards asked for: "));
}

TEST_F(ValidateTest, TimeThatRunsOutIsNotAFailure) {
  size("s", 9), size("t", 4);
  ask("s*s*t != t*t*s + 7");
  ValidationLimits limits;
  limits.total_s = 0;
  const ValidationReport r = validate(env_, env_.minimized_guards(), limits);
  EXPECT_TRUE(r.ok());
  EXPECT_GT(r.not_proved, 0);
  EXPECT_FALSE(r.unproved.empty());
}

// A guard that divides is checked only where the divisor is not zero.
TEST_F(ValidateTest, DivisorsOfGuardsAreGuarded) {
  size("s", 8), size("t", 4);
  ask("s % t == 0");
  EXPECT_THAT(minimized(), UnorderedElementsAre("t >= 1", "s % t == 0"));
  EXPECT_TRUE(report().guards_proved) << report().text();
}

// As a slice without an end asks: the constant moves to the side of a bound that has no room for it.
TEST_F(ValidateTest, SymbolsAreNumbersOf64Bits) {
  size("s", 6400), size("t", 3);
  known("(s + 560)//640 - 1 <= 9223372036854775807");
  known("s - 1 <= 9223372036854775807");
  const ValidationReport r = report();
  EXPECT_TRUE(r.ok()) << r.text();
}

// The rule table: each text fires one rule of the pool's builders, whose steps are proved for all values.
class RuleProofs : public ::testing::TestWithParam<const char*> {};

// Products of unknowns under a division are beyond Z3: the divisor's variable runs over small values instead.
void prove_by_cases(Prover& prover, ExprPool& pool, const RewriteStep& step) {
  const ExprId y = pool.var(VarId{1});
  pool.set_log(nullptr);  // what follows is no step of the rule
  for (int64_t value = -12; value <= 12; ++value) {
    prover.push();
    prover.assume(pool.eq(y, pool.constant(value)));
    EXPECT_EQ(prover.proves(step), Verdict::Proved) << step.rule << " at y = " << value;
    prover.pop();
  }
}

TEST_P(RuleProofs, HoldsForAllValues) {
  if (!Prover::available()) GTEST_SKIP() << "built without Z3";
  ExprPool pool;
  RewriteLog log;
  VarIds ids;
  VarNames names;
  for (const char* name : {"x", "y", "z", "w"}) {
    ids[name] = pool.new_var();
    names[ids[name]] = name;
    pool.var(ids[name]);
  }
  pool.set_log(&log);
  ASSERT_TRUE(parse(pool, GetParam(), ids).ok()) << GetParam();
  ASSERT_FALSE(log.steps().empty());
  Prover prover(pool);
  prover.set_timeout(1000);
  for (const RewriteStep& step : log.steps()) {
    const Verdict verdict = prover.proves(step);
    EXPECT_NE(verdict, Verdict::Refuted) << step.rule << " became " << to_string(pool, step.after, names);
    if (verdict == Verdict::Unknown) prove_by_cases(prover, pool, step);
  }
}

TEST(RuleProof, AWrongStepIsRefuted) {
  if (!Prover::available()) GTEST_SKIP() << "built without Z3";
  ExprPool pool;
  const ExprId x = pool.var(pool.new_var());
  Prover prover(pool);
  const RewriteStep wrong{StepKind::FloorDiv, "", x, pool.constant(2), pool.constant(0)};
  EXPECT_EQ(prover.proves(wrong), Verdict::Refuted);
  const RewriteStep loses_value{StepKind::Mul, "", x, pool.constant(0), pool.mod(x, x)};  // none at x = 0
  EXPECT_EQ(prover.proves(loses_value), Verdict::Refuted);
}

constexpr const char* kRuleExamples[] = {
    "2*x + 3*y + x - y*3",          // like terms
    "(x + y)*(x - y) + y*y",        // products over sums
    "7*(x//7) + x % 7",             // quotient and remainder
    "y*(7*(x//7) + x % 7)",         // the same, times something
    "64*((x//64) % 12) + x % 64",   // digits joined
    "(6*x + 9*y + 4)//3",           // multiples leave a quotient
    "(4*x + 6)//8",                 // common factor of dividend and divisor
    "(x//3 + 2)//5",                // quotient of a quotient
    "x//4 <= 9223372036854775807",  // a bound that int64 does not have
    "(x % 12)//4",                  // quotient of a remainder
    "(5 - x)//3",                   // one form for rounding up
    "-(-x//4)",                     // ceiling
    "(6*x + 3) % 9",                // common factor of a remainder
    "(2*(x % 6) + y) % 4",          // a remainder within a remainder
    "(10*x + 17) % 5",              // multiples leave a remainder
    "x//(-3)",
    "x % (-3)",  // negative divisors
    "(2*x)//(4*y)",
    "(3*x) % (6*y)",  // common factors with a symbolic divisor
    "(-x)//(-y)",
    "(-x) % (-y)",                    // signs of symbolic divisors
    "min(x + 1, min(x, y + 2))",      // minimum flattened
    "max(max(3, x), max(5, x - 2))",  // maximum, one constant
    "2*x + 4 <= 6*y + 7",             // coprime coefficients, rounded bound
    "x == 4*(x//4)",
    "2*y*x != 8*y*(x//4)",  // divisibility
    "4*x == 6*y + 3",       // no solution
    "x//4 <= 5",
    "x//4 >= 5",
    "not (x//4 <= 5)",  // bounds of a quotient
    "(x <= 3) == 0",
    "(x <= 3) + 0 != 1",                    // relations of truth values
    "not (x == y and (x <= z or y != w))",  // negation pushed in
    "x <= y and not (x <= y)",              // contradiction
    "(x == 2 or y == 3) or x == 2",         // flattened, distinct
};
INSTANTIATE_TEST_SUITE_P(All, RuleProofs, ::testing::ValuesIn(kRuleExamples));

}  // namespace
}  // namespace cresset::sym::testing
