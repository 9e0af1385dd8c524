#include "sym/solve.h"

#include <gmock/gmock.h>

#include "sym_fixture.h"

namespace cresset::sym::testing {
namespace {

class SolveTest : public EnvTest {
 protected:
  Solver solver(std::vector<std::string> conditions, SolveLimits limits = {}) {
    Solver out(env_.pool(), limits);
    for (const Symbol& s : env_.symbols()) out.declare(s.var, s.range);
    for (const std::string& text : conditions) out.require((*this)(text));
    return out;
  }
  std::string show(const Solution& solution) {
    if (solution.status == Solution::Status::None) return "none";
    if (!solution.found()) return "gave up";
    std::string out;
    for (const Symbol& s : env_.symbols()) {
      std::string name;
      for (const auto& [text, id] : ids_) name = id == s.var ? text : name;
      out += (out.empty() ? "" : " ") + name + "=" + std::to_string(solution.values.at(s.var));
    }
    return out;
  }
  std::string smallest(std::vector<std::string> conditions) { return show(solver(std::move(conditions)).smallest()); }
};

TEST_F(SolveTest, SmallestOfSimpleGuards) {
  size("s", 8), size("t", 8);
  EXPECT_EQ(smallest({}), "s=0 t=0");
  EXPECT_EQ(smallest({"s >= 3", "s % 8 == 0", "t == s + 1"}), "s=8 t=9");
  EXPECT_EQ(smallest({"s != 0", "s != 1", "t*s >= 100", "t <= 10"}), "s=10 t=10");
  EXPECT_EQ(smallest({"s >= 5", "s <= 4"}), "none");
  EXPECT_EQ(smallest({"s == 2*t + 1", "s % 2 == 0", "t <= 50"}), "none");
}

TEST_F(SolveTest, InversesOfProductsQuotientsAndRemainders) {
  size("s", 8), size("t", 8), size("u", 8);
  EXPECT_EQ(smallest({"s*t == 391", "s >= 2", "t >= 2"}), "s=17 t=23 u=0");
  EXPECT_EQ(smallest({"(s + 7)//8 == 1000"}), "s=7993 t=0 u=0");
  EXPECT_EQ(smallest({"s//t == 5", "t >= 7"}), "s=35 t=7 u=0");
  EXPECT_EQ(smallest({"s % 16 == 3", "s >= 100"}), "s=115 t=0 u=0");
  EXPECT_EQ(smallest({"s % t == 4", "s >= 9"}), "s=9 t=5 u=0");
  EXPECT_EQ(smallest({"3*s + 1 == 2*t", "t >= 20"}), "s=13 t=20 u=0");
  EXPECT_EQ(smallest({"min(s, t) == 6", "max(s, t) == 9"}), "s=6 t=9 u=0");
  EXPECT_EQ(smallest({"s == 4 or t == 7", "s >= 5"}), "s=5 t=7 u=0");
  EXPECT_EQ(smallest({"s*t*u == 2310", "s >= 9", "t > s", "u > t"}), "s=10 t=11 u=21");
}

TEST_F(SolveTest, SearchThatGivesUpAsksZ3) {
  if (!Prover::available()) GTEST_SKIP() << "built without Z3";
  size("s", 8), size("t", 8);
  SolveLimits limits;
  limits.choices = 3;
  const Solution s = solver({"s % 1024 == t % 640 + 300", "s >= 2000", "t >= 3"}, limits).smallest();
  ASSERT_TRUE(s.found());
  EXPECT_TRUE(s.by_z3);
  const auto value = [&](VarId v) -> std::optional<int64_t> { return s.values.at(v); };
  EXPECT_EQ(eval(env_.pool(), (*this)("s % 1024 == t % 640 + 300"), value), 1);
}

TEST_F(SolveTest, SamplesAreValidAndVary) {
  size("s", 8), size("t", 8), size("u", 8);
  const std::vector<std::string> conditions = {"s >= 2", "t % 4 == 0", "u == s*t//2", "s <= 200"};
  Solver s = solver(conditions);
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Solution found = s.sample(seed);
    ASSERT_TRUE(found.found());
    seen.insert(show(found));
    for (const std::string& text : conditions) {
      EXPECT_EQ(eval(env_.pool(), (*this)(text), [&](VarId v) { return std::optional(found.values.at(v)); }), 1)
          << text;
    }
  }
  EXPECT_GE(seen.size(), 15u);
}

TEST_F(SolveTest, ValidRanges) {
  const ExprId s = size("s", 8), t = size("t", 8);
  Solver solved = solver({"s >= 3", "s % 8 == 0", "s <= 500", "t*2 <= s"});
  const ValidRange rs = solved.valid_range(env_.pool().var_of(s));
  EXPECT_EQ(rs.ends, (Interval{8, 496}));
  EXPECT_TRUE(rs.exact_low && rs.exact_high);
  EXPECT_EQ(rs.step, 8);
  const ValidRange rt = solved.valid_range(env_.pool().var_of(t));
  EXPECT_EQ(rt.ends, (Interval{0, 248}));
  EXPECT_EQ(solver({"s >= 2"}).valid_range(env_.pool().var_of(s)).ends, (Interval{2, Interval::kPosInf}));
}

// Classes of f: n > 4 or not; n even or not. Each new sample lies outside all before; four cover everything.
TEST_F(SolveTest, WalksOverClassesUntilAllIsCovered) {
  size("n", 8);
  const std::vector<std::string> questions = {"n >= 5", "n % 2 == 0"};
  Solver walk = solver({});
  std::vector<std::string> met;
  for (int i = 0; i < 10; ++i) {
    const Solution next = walk.smallest();
    met.push_back(show(next));
    if (!next.found()) break;
    std::vector<ExprId> guards;  // what a capture at this sample would record
    for (const std::string& text : questions) {
      const ExprId question = (*this)(text);
      const auto held = eval(env_.pool(), question, [&](VarId v) { return std::optional(next.values.at(v)); });
      guards.push_back(*held != 0 ? question : env_.pool().logical_not(question));
    }
    walk.exclude(guards);
  }
  EXPECT_EQ(met, (std::vector<std::string>{"n=0", "n=1", "n=5", "n=6", Prover::available() ? "none" : "gave up"}));
}

}  // namespace
}  // namespace cresset::sym::testing
