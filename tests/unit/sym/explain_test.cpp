#include "sym/explain.h"

#include <gmock/gmock.h>

#include "sym_fixture.h"

namespace cresset::sym::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ExplainTest : public EnvTest {
 protected:
  std::vector<std::string> causes_of(std::string_view text) {
    std::vector<std::string> out;
    for (const SizeGuard& guard : causes(env_, (*this)(text))) out.push_back(print(guard.condition));
    return out;
  }
};

TEST_F(ExplainTest, CausesAreTheFewestGuards) {
  size("a", 4), size("b", 4), size("c", 4), size("d", 7);
  ask("d >= 2"), ask("a >= 2"), ask("a == b"), ask("b == c"), ask("d % 7 == 0"), ask("c == 4"), ask("a*d >= 3");
  EXPECT_THAT(causes_of("a == 4"), ElementsAre("a == b", "b == c", "c == 4"));
  EXPECT_THAT(causes_of("c == 4"), ElementsAre("c == 4"));
  EXPECT_THAT(causes_of("d >= 2"), ElementsAre("d >= 2"));
  EXPECT_THAT(causes_of("d >= 0"), IsEmpty()) << "a size is";
  EXPECT_THAT(causes_of("d == 7"), IsEmpty()) << "does not follow";
}

TEST_F(ExplainTest, NoneOfTheCausesCanBeLeftOut) {
  size("s", 12), size("t", 12);
  ask("s <= 12"), ask("s != 3"), ask("s >= 11"), ask("s % 4 == 0"), ask("t == s");
  EXPECT_THAT(causes_of("t == 12"), ElementsAre("s <= 12", "s >= 11", "s % 4 == 0", "s == t"));
}

TEST_F(ExplainTest, AViolationNamesOperatorsLinesAndTheMark) {
  declare("x", env_.new_backed("x.size(0)", 8, Interval::size(), Policy::MarkedDynamic));
  declare("y", env_.new_backed("y.size(1)", 8));
  ask("y >= 2", "aten::add", "model.py:3 in forward");
  ask("x == y", "aten::mm", "model.py:12 in forward");
  ask("y == 8", "aten::view", "model.py:14 in forward");
  EXPECT_EQ(explain_violations(env_),
            "cresset: dimensions marked dynamic would have to be static:"
            "\n  x.size(0) would be specialized to 8 by"
            "\n    x.size(0) == y.size(1), asked by aten::mm at model.py:12 in forward"
            "\n    y.size(1) == 8, asked by aten::view at model.py:14 in forward"
            "\n  the weakest mark that would be accepted: cresset.mark_static(x, 0), which serves size 8 only"
            "\nremedy: change these lines so that they hold for any size, or use cresset.maybe_mark_dynamic, "
            "cresset.mark_static or no mark");
}

TEST_F(ExplainTest, ARangeThatPinsIsNotBlamedOnTheGuards) {
  declare("x", env_.new_backed("x.size(0)", 8, {8, 9}, Policy::MarkedDynamic));
  ask("x % 4 == 0", "aten::view", "model.py:3 in forward");
  EXPECT_THAT(explain_violations(env_), HasSubstr("x.size(0) % 4 == 0, asked by aten::view at model.py:3 in forward"
                                                  "\n    the range that its mark gives"
                                                  "\n  the weakest mark that would be accepted: "
                                                  "cresset.mark_dynamic(x, 0), without a range"));
}

TEST_F(ExplainTest, FixedSizesOfTheSameValueAreNamed) {
  declare("x", env_.new_backed("x.size(0)", 8, Interval::size(), Policy::MarkedDynamic));
  ask("x == 8", "aten::add", "model.py:3");
  EXPECT_THAT(explain_violations(env_, {{"y.size(0)", 8}, {"z.size(0)", 9}}),
              AllOf(HasSubstr("y.size(0) is static, and 8"), Not(HasSubstr("z.size(0)"))));
}

TEST_F(ExplainTest, DroppedSuggestionsAreToldWithTheirCauses) {
  declare("x", env_.new_backed("x.size(0)", 8, Interval::size(), Policy::Suggested));
  declare("y", env_.new_backed("y.size(0)", 9, Interval::size(), Policy::Suggested));
  ask("x == 8", "aten::view", "model.py:3");
  EXPECT_TRUE(env_.violations().empty());
  EXPECT_THAT(
      dropped_suggestions(env_),
      ElementsAre("the suggestion that x.size(0) varies is dropped: it is specialized to 8; x.size(0) == 8, asked by "
                  "aten::view at model.py:3"));
}

TEST_F(ExplainTest, AFailedGuardShowsValuesAndWhatItWasMadeOf) {
  const ExprId x = declare("x", env_.new_backed("x.size(0)", 8));
  declare("y", env_.new_backed("y.size(1)", 8));
  ask("x == y", "aten::mm", "model.py:12");
  ask("y == 8", "aten::view", "model.py:14");
  const SizeGuard checked{(*this)("x == 8"), {"aten::mm", "model.py:12"}};
  EXPECT_EQ(explain_failure(env_, checked, {{env_.pool().var_of(x), 9}}),
            "expected x.size(0) == 8, asked by aten::mm at model.py:12, got x.size(0) = 9; because of "
            "x.size(0) == y.size(1), asked by aten::mm at model.py:12 and y.size(1) == 8, asked by aten::view at "
            "model.py:14");
}

}  // namespace
}  // namespace cresset::sym::testing
