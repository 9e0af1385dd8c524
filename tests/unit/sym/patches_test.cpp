// Indices of images that are taken apart into patches and put together again.
#include "sym_fixture.h"

namespace cresset::sym::testing {
namespace {

class PatchesTest : public EnvTest {
 protected:
  PatchesTest() {
    size("h", 16), size("w", 20), size("c", 24), size("n", 3);
    for (const char* even : {"2*((h + 1)//2) == h", "2*((w + 1)//2) == w"})
      env_.evaluate((*this)(even), [] { return Reason{}; });
  }
  std::string simple(std::string_view text) { return print(env_.simplify((*this)(text))); }
};

TEST_F(PatchesTest, QuotientsOfIndicesStayBelowQuotientsOfExtents) {
  index("y", "h"), index("x", "w");
  const std::string patch = "(((w + 1)//2)*(y//2) + x//2)", patches = "(((h + 1)//2)*((w + 1)//2))";
  EXPECT_EQ(simple(patch + "//" + patches), "0");
  EXPECT_EQ(simple(patch + " % " + patches), simple(patch));
}

TEST_F(PatchesTest, ExtentsMayBeMultiples) {
  index("y", "2*((h + 1)//2)"), index("x", "2*((w + 1)//2)");
  EXPECT_EQ(simple("(((w + 1)//2)*(y//2) + x//2)//(((h + 1)//2)*((w + 1)//2))"), "0");
}

TEST_F(PatchesTest, ExtentsAreNotZeroWhereTheirIndicesAre) {
  index("p", "((h + 1)//2)*((w + 1)//2)"), index("k", "c"), index("b", "4*n");
  EXPECT_EQ(simple("(k*((h + 1)//2) + c*((h + 1)//2)*(b//4) + p//((w + 1)//2))//(c*((h + 1)//2))"), "b//4");
}

TEST_F(PatchesTest, DivisorsMayBeZeroWhereTheDivisionStays) {
  index("p", "c*n");
  EXPECT_EQ(simple("(c*n + p) % n"), "p % n");
  EXPECT_EQ(simple("(h*n + p)//n"), simple("h + p//n"));
  EXPECT_EQ(simple("(c*n)//n"), print((*this)("(c*n)//n")));
}

TEST_F(PatchesTest, AnEquationOfAQuotientTellsMultiples) {
  index("d", "(h + 1)//2"), index("k", "c"), index("b", "4*n");
  EXPECT_EQ(simple("h % 2"), "0");
  EXPECT_EQ(simple("(2*((h + 1)//2)*k + 2*d + (b//2) % 2)//h"), "k");
  EXPECT_EQ(simple("(2*((h + 1)//2)*k + 2*d + (b//2) % 2) % h"), "2*d + (b//2) % 2");
}

// The height of an image after steps of stride 2: patches of it are counted by a greater divisor.
TEST_F(PatchesTest, AnEquationOfTwoQuotientsReplacesTheFiner) {
  size("t", 64);
  env_.evaluate((*this)("2*((t + 7)//8) == (t + 3)//4"), [] { return Reason{}; });
  EXPECT_EQ(simple("(t + 3)//4"), simple("2*((t + 7)//8)"));
  index("d", "(t + 7)//8"), index("k", "c"), index("b", "4*n");
  EXPECT_EQ(simple("(2*((t + 7)//8)*k + 2*d + (b//2) % 2)//((t + 3)//4)"), "k");
  EXPECT_EQ(simple("(2*((t + 7)//8)*k + 2*d + (b//2) % 2) % ((t + 3)//4)"), "2*d + (b//2) % 2");
}

// A size that is known as a multiple is written in its unit, which no equation of quotients replaces.
TEST_F(PatchesTest, AnEquationWithAUnitReplacesTheOtherQuotient) {
  size("m", 3);
  for (const char* guard : {"m % 3 == 0", "m//3 + m//6 == 1"}) env_.evaluate((*this)(guard), [] { return Reason{}; });
  EXPECT_EQ(simple("m//3"), "m//3");
  EXPECT_EQ(simple("m//6"), simple("1 - m//3"));
  EXPECT_EQ(env_.evaluate((*this)("m % 2 == 1"), [] { return Reason{}; }), true);
}

TEST_F(PatchesTest, ProductsOfPatchesAreMultiples) {
  index("b", "4*n"), index("p", "((h + 1)//2)*((w + 1)//2)"), index("k", "c");
  const std::string sum = "(((h + 1)//2)*((w + 1)//2)*k + p + c*((h + 1)//2)*((w + 1)//2)*(b//4))";
  EXPECT_EQ(simple(sum + " % ((w + 1)//2)"), simple("p % ((w + 1)//2)"));
  EXPECT_EQ(simple(sum + "//((w + 1)//2)"), simple("((h + 1)//2)*k + c*((h + 1)//2)*(b//4) + p//((w + 1)//2)"));
}

}  // namespace
}  // namespace cresset::sym::testing
