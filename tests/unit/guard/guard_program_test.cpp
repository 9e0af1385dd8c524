#include "guard/guard_program.h"

#include <gtest/gtest.h>

namespace cresset::guard {
namespace {

using sym::ExprId;
using sym::Reason;

class GuardProgramTest : public ::testing::Test {
 protected:
  GuardProgramTest() {
    for (int i = 0; i < 3; ++i) {
      sizes_[i] = env_.new_backed("x.size(" + std::to_string(i) + ")", 8);
      slots_[env_.pool().var_of(sizes_[i])] = static_cast<uint32_t>(2 - i);  // slots are not in creation order
    }
    names_ = {"s2", "s1", "s0"};
  }
  void ask(ExprId condition, std::string op, std::string location) {
    env_.evaluate(condition, [&] { return Reason{op, location}; });
  }
  GuardProgram compiled() { return GuardProgram::compile(env_.pool(), env_.minimized_guards(), slots_); }

  sym::ShapeEnv env_;
  ExprId sizes_[3];
  std::unordered_map<sym::VarId, uint32_t> slots_;
  std::vector<std::string> names_;
};

TEST_F(GuardProgramTest, ChecksAndExplains) {
  sym::ExprPool& pool = env_.pool();
  ask(pool.eq(sizes_[0], sizes_[2]), "aten::add", "model.py:42");
  ask(pool.eq(pool.mod(sizes_[1], pool.constant(4)), pool.constant(0)), "aten::view", "");
  ask(pool.ne(sizes_[1], pool.constant(0)), "", "model.py:50");
  const GuardProgram guards = compiled();
  ASSERT_EQ(guards.size(), 3u);

  const int64_t good[] = {5, 12, 5};
  EXPECT_EQ(guards.first_failure(good), -1);

  const int64_t unequal[] = {4, 12, 3};
  const int64_t first = guards.first_failure(unequal);
  ASSERT_GE(first, 0);
  EXPECT_EQ(guards.explain(first, unequal, names_),
            "expected s2 == s0 (asked by aten::add at model.py:42), got s2 = 4, s0 = 3");

  const int64_t odd[] = {5, 7, 5};
  EXPECT_EQ(guards.explain(guards.first_failure(odd), odd, names_),
            "expected s1 % 4 == 0 (asked by aten::view), got s1 = 7");
  const int64_t none[] = {5, 0, 5};
  EXPECT_EQ(guards.explain(guards.first_failure(none), none, {}),
            "expected slot 1 >= 1 (asked by model.py:50), got slot 1 = 0");
}

TEST_F(GuardProgramTest, NoGuardsAlwaysPass) {
  const GuardProgram guards = compiled();
  EXPECT_TRUE(guards.empty());
  const int64_t anything[] = {1, 2, 3};
  EXPECT_EQ(guards.first_failure(anything), -1);
}

TEST_F(GuardProgramTest, ReadsBackEveryKindOfCondition) {
  sym::ExprPool& pool = env_.pool();
  const ExprId s0 = sizes_[0], s1 = sizes_[1];
  const sym::SizeGuard facts[] = {
      {pool.le(pool.mul(s0, s1), pool.constant(100)), {}},
      {pool.logical_or(pool.eq(s0, pool.constant(1)), pool.lt(s0, s1)), {}},
      {pool.ne(pool.floor_div(pool.add(s0, pool.constant(3)), s1), pool.constant(2)), {}},
      {pool.eq(pool.max(s0, pool.min(s1, pool.constant(9))), pool.constant(9)), {}},
      {pool.lt(pool.mul(pool.constant(2), s0), pool.add(s1, pool.constant(5))), {}},
  };
  const GuardProgram guards = GuardProgram::compile(pool, facts, slots_);
  const std::string names[] = {"s2", "s1", "s0"};
  // printed in slot order
  const char* const texts[] = {"s1*s0 <= 100", "s0 == 1 or s0 < s1", "(s0 + 3)//s1 != 2", "max(s0, min(s1, 9)) == 9",
                               "2*s0 <= s1 + 4"};
  for (size_t i = 0; i < std::size(texts); ++i) EXPECT_EQ(guards.condition(i, names), texts[i]);
  EXPECT_NE(guards.describe(names).find("s1*s0 <= 100\n"), std::string::npos);
}

}  // namespace
}  // namespace cresset::guard
