// Canonical form: which texts are the same expression, what a rule makes of each, and where no rule may fire.
#include <random>

#include "sym_fixture.h"

namespace cresset::sym::testing {
namespace {

struct Case {
  const char* before;
  const char* after;
};

// Each row: equal ids, and equal values on samples. A row with two equal texts says that nothing fires.
const Case kCases[] = {
    // sums
    {"a + b", "b + a"},
    {"a + a", "2*a"},
    {"a - a", "0"},
    {"a + b - a", "b"},
    {"(a + 1) + (b + 2)", "a + b + 3"},
    {"3*a + 2*b - a", "2*(a + b)"},
    // products
    {"a*b", "b*a"},
    {"2*(a + 3)", "2*a + 6"},
    {"(a + b)*(a - b)", "a*a - b*b"},
    {"(a + b)*(a + b)", "a*a + 2*a*b + b*b"},
    {"0*a", "0"},
    {"a*b*3*2", "6*b*a"},
    // floor division by constants
    {"a//1", "a"},
    {"a//-1", "-a"},
    {"(4*a)//4", "a"},
    {"(4*a + 8)//4", "a + 2"},
    {"(4*a + b)//4", "a + b//4"},
    {"(6*a)//4", "a + a//2"},
    {"(6*a + 3)//4", "a + (2*a + 3)//4"},
    {"(7*a)//4", "a + (3*a)//4"},
    {"(a - 1)//2 + 1", "(a + 1)//2"},
    {"(a//2)//3", "a//6"},
    {"((a//2) + 1)//3", "(a + 2)//6"},
    {"(a//b)//2", "a//(2*b)"},
    {"a//-4", "(-a)//4"},
    {"(a % 8)//4", "(a//4) % 2"},
    {"-((-a)//4)", "(a + 3)//4"},
    {"(3 - a)//4", "-(a//4)"},
    {"(b - 2*a)//4 + (2*a + 3 - b)//4", "0"},
    {"7//2", "3"},
    {"-7//2", "-4"},
    // floor division by symbols: only what holds whatever the divisor
    {"(4*a)//(2*b)", "(2*a)//b"},
    {"a//(-b)", "(-a)//b"},
    {"(a*b)//b", "(a*b)//b"},
    {"a//a", "a//a"},
    {"0//a", "0//a"},
    // remainders
    {"a + (-a) % 4", "4*((a + 3)//4)"},
    {"a - a % 4", "4*(a//4)"},
    {"a*b - b*(a % 4)", "4*b*(a//4)"},
    {"2*a + b - (2*a + b + 1) % 8", "8*((2*a + b + 1)//8) - 1"},
    {"a - 2*(a % 4)", "a - 2*(a % 4)"},
    {"2*a - (a + b) % 4", "2*a - (a + b) % 4"},
    {"a % 1", "0"},
    {"(4*a) % 4", "0"},
    {"(4*a + b) % 4", "b % 4"},
    {"(5*a) % 4", "a % 4"},
    {"(2*a) % 4", "2*(a % 2)"},
    {"(2*a + 1) % 4", "2*(a % 2) + 1"},
    {"(a % 8) % 4", "a % 4"},
    {"(a % 8 + b) % 4", "(a + b) % 4"},
    {"(a % 4) % 8", "(a % 4) % 8"},
    {"7 % -4", "-1"},
    {"-7 % 4", "1"},
    {"(a*b) % b", "(a*b) % b"},
    // quotient and remainder joined
    {"4*(a//4) + a % 4", "a"},
    {"12*b*(a//4) + 3*b*(a % 4)", "3*a*b"},
    {"(-a) % 4 + 4*((-a)//4)", "-a"},
    {"8*(a//8) + 4*((a//4) % 2) + a % 4", "a"},
    {"4*((a//4) % 2) + a % 4", "a % 8"},
    {"4*(a//4) + b % 4", "4*(a//4) + b % 4"},
    {"b*(a//b) + a % b", "b*(a//b) + a % b"},
    // min and max
    {"min(a, a)", "a"},
    {"min(a, min(b, c))", "min(c, a, b)"},
    {"min(a, a + 1)", "a"},
    {"max(a, a + 1, 3, 5)", "max(a + 1, 5)"},
    {"max(3, min(a, b))", "max(min(b, a), 3)"},
    // relations
    {"a < b", "a + 1 <= b"},
    {"a > b", "b < a"},
    {"a + 1 == b + 1", "b == a"},
    {"2*a == 4", "a == 2"},
    {"2*a == 3", "0"},
    {"2*a != 3", "1"},
    {"2*a <= 5", "a <= 2"},
    {"2*a < 2*b + 1", "a <= b"},
    {"-a <= -3", "a >= 3"},
    {"a == a", "1"},
    {"a < a", "0"},
    {"a <= a + 1", "1"},
    {"not a < b", "a >= b"},
    {"not a == b", "a != b"},
    {"a//4 <= 3", "a <= 15"},
    {"a//4 >= 3", "a >= 12"},
    {"a//4 <= 9223372036854775807", "a//4 <= 9223372036854775807"},  // no bound that int64 has says the same
    {"(a < b) == 1", "a < b"},
    {"(a < b) == 0", "a >= b"},
    {"(a < b) <= 1", "1"},
    // connectives
    {"a < b and a < b", "a < b"},
    {"a < b and 1", "a < b"},
    {"a < b or 1", "1"},
    {"a < b and a >= b", "0"},
    {"a < b or a >= b", "1"},
    {"not (a < b and c < d)", "a >= b or c >= d"},
    {"a and b", "a != 0 and b != 0"},
    {"not a", "a == 0"},
};

class CanonicalForm : public PoolTest {};

TEST_F(CanonicalForm, EachRuleMeetsItsResultAndKeepsTheValue) {
  std::mt19937 random(7);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.before);
    const ExprId before = (*this)(c.before), after = (*this)(c.after);
    EXPECT_EQ(print(before), print(after));
    EXPECT_EQ(before, after);
    EXPECT_EQ((*this)(print(before)), before) << "reads back differently: " << print(before);
  }
}

TEST_F(CanonicalForm, TheBuilderOfADifferentOrderGivesTheSameId) {
  const ExprId a = (*this)("a"), b = (*this)("b"), c = (*this)("c");
  const ExprId abc[] = {a, b, c}, cba[] = {c, b, a};
  EXPECT_EQ(pool_.sum(abc), pool_.sum(cba));
  EXPECT_EQ(pool_.product(abc), pool_.product(cba));
}

TEST_F(CanonicalForm, DivisionByZeroStays) {
  EXPECT_EQ(print((*this)("a//0")), "a//0");
  EXPECT_EQ(print((*this)("a % 0")), "a % 0");
}

TEST_F(CanonicalForm, LargeProductsOfSumsStayFactored) {
  ExprId left = (*this)("0"), right = (*this)("0");
  for (int i = 0; i < 20; ++i) {
    left = pool_.add(left, (*this)("a" + std::to_string(i)));
    right = pool_.add(right, (*this)("b" + std::to_string(i)));
  }
  const ExprId product = pool_.mul(left, right);
  EXPECT_EQ(pool_[product].kind, Kind::Mul);
  EXPECT_EQ(pool_.mul(right, left), product);
  EXPECT_EQ(pool_.sub(pool_.mul(product, pool_.constant(3)), pool_.mul(pool_.constant(3), product)), (*this)("0"));
}

TEST_F(CanonicalForm, NumbersStickAtTheEndsOfInt64) {
  const ExprId end = pool_.constant(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(pool_.add(end, pool_.constant(1)), end);
  EXPECT_EQ(pool_.mul(end, pool_.constant(2)), end);
}

TEST_F(CanonicalForm, AffineParts) {
  ExprPool::Affine parts;
  const ExprId i = (*this)("i");
  ASSERT_TRUE(pool_.affine_in((*this)("3*i*s + 2*i + t//2 + 1"), pool_.var_of(i), parts));
  EXPECT_EQ(parts.coefficient, (*this)("3*s + 2"));
  EXPECT_EQ(parts.rest, (*this)("t//2 + 1"));
  ASSERT_TRUE(pool_.affine_in((*this)("t + 1"), pool_.var_of(i), parts));
  EXPECT_EQ(parts.coefficient, (*this)("0"));
  EXPECT_FALSE(pool_.affine_in((*this)("i*i"), pool_.var_of(i), parts));
  EXPECT_FALSE(pool_.affine_in((*this)("i//2 + i"), pool_.var_of(i), parts));
}

TEST_F(CanonicalForm, SubstituteAndVariables) {
  const ExprId e = (*this)("(a + 3*b)//4 + max(a, c)");
  const ExprId replaced =
      pool_.substitute(e, {{pool_.var_of((*this)("a")), (*this)("4*d")}, {pool_.var_of((*this)("b")), (*this)("0")}});
  EXPECT_EQ(replaced, (*this)("d + max(4*d, c)"));
  std::vector<VarId> vars;
  pool_.collect_vars(e, vars);
  EXPECT_EQ(vars.size(), 3u);
  EXPECT_TRUE(pool_.uses_var(e, pool_.var_of((*this)("c"))));
  EXPECT_FALSE(pool_.uses_var(e, pool_.var_of((*this)("d"))));
}

TEST_F(CanonicalForm, PrintsLikePython) {
  EXPECT_EQ(print((*this)("2 * a - b // 3 + 1")), "2*a - b//3 + 1");
  EXPECT_EQ(print((*this)("-(a // 3)")), "-(a//3)");
  EXPECT_EQ(print((*this)("(a + b) // (c % 2)")), "(a + b)//(c % 2)");
  EXPECT_EQ(print((*this)("a < b")), "a < b");
  EXPECT_EQ(print((*this)("a >= 2")), "a >= 2");
  EXPECT_EQ(print((*this)("a + 2 <= b")), "a + 2 <= b");
  EXPECT_EQ(print((*this)("a != 1 and b % 8 == 0")), "b % 8 == 0 and a != 1");
}

TEST_F(CanonicalForm, TextDoesNotDependOnTheOrderOfBuilding) {
  const char* const texts[] = {"a*b + a//2 + b + 1", "max(a + b, a % 3, 4)",          "a*(b//2) + b*(a//2)", "b == a",
                               "b != 2*a + 1",       "a <= b and (b < 4 or a*a == b)"};
  for (const char* text : texts) {
    ExprPool other;
    const VarIds ids{{"a", other.new_var()}, {"b", other.new_var()}};
    ASSERT_TRUE(parse(other, "4*(b//2) + a*b*b + max(4, a % 3) + (a*b + b//2)//3", ids).ok());
    (*this)("a"), (*this)("b");
    EXPECT_EQ(print((*this)(text)),
              to_string(other, *parse(other, text, ids), {{ids.at("a"), "a"}, {ids.at("b"), "b"}}));
  }
}

TEST_F(CanonicalForm, ParserRejects) {
  const VarIds names;
  for (const char* text : {"", "1 +", "(1", "1)", "x", "min(1", "99999999999999999999", "1 2"}) {
    EXPECT_FALSE(parse(pool_, text, names).ok()) << text;
  }
  EXPECT_EQ(*parse(pool_, "-9223372036854775808", names), pool_.constant(std::numeric_limits<int64_t>::min()));
}

// Products of sizes may stick at the end of int64, whose negation is beyond it.
TEST_F(CanonicalForm, RelationsOfCoefficientsAtTheEndOfInt64) {
  const ExprId x = pool_.var(pool_.new_var()), y = pool_.var(pool_.new_var());
  const ExprId least = pool_.mul(pool_.constant(std::numeric_limits<int64_t>::min()), x);
  for (const ExprId relation : {pool_.eq(least, y), pool_.ne(y, least), pool_.le(least, y)})
    EXPECT_TRUE(pool_.is_boolean(relation));
}

}  // namespace
}  // namespace cresset::sym::testing
