#include "sym/size_program.h"

#include "sym_fixture.h"

namespace cresset::sym::testing {
namespace {

class SizeProgramTest : public PoolTest {
 protected:
  SizeProgram compile(std::initializer_list<const char*> texts) {
    std::vector<ExprId> outputs;
    for (const char* text : texts) outputs.push_back((*this)(text));
    std::unordered_map<VarId, uint32_t> slots;
    for (const auto& [name, id] : ids_) slots[id] = static_cast<uint32_t>(name[0] - 'a');
    return SizeProgram::compile(pool_, outputs, slots);
  }
  std::vector<int64_t> run(const SizeProgram& program, std::vector<int64_t> slots) {
    std::vector<int64_t> out(program.output_count());
    program.run(slots.data(), out.data());
    return out;
  }
};

TEST_F(SizeProgramTest, EveryKind) {
  const SizeProgram p =
      compile({"a + 2*b - 3", "a*b", "a//b", "a % b", "min(a, b)", "max(a, b, 4)", "a == b", "a != b", "a < b",
               "a <= b", "a == b or a < 3", "a != b and b > 0", "12", "a", "-a", "-5*a - b"});
  EXPECT_EQ(run(p, {7, 2}), (std::vector<int64_t>{8, 14, 3, 1, 2, 7, 0, 1, 0, 0, 0, 1, 12, 7, -7, -37}));
  EXPECT_EQ(run(p, {-7, 2}), (std::vector<int64_t>{-6, -14, -4, 1, -7, 4, 0, 1, 1, 1, 1, 1, 12, -7, 7, 33}));
  EXPECT_EQ(run(p, {2, 2}), (std::vector<int64_t>{3, 4, 1, 0, 2, 4, 1, 0, 0, 1, 1, 0, 12, 2, -2, -12}));
}

TEST_F(SizeProgramTest, SharedPartsAreComputedOnce) {
  const SizeProgram p = compile({"a*b//3", "a*b//3 + 1", "2*a*b"});
  EXPECT_LE(p.instrs().size(), 9u);
}

TEST_F(SizeProgramTest, DivisionByZeroGivesZero) {
  EXPECT_EQ(run(compile({"a//b", "a % b"}), {5, 0}), (std::vector<int64_t>{0, 0}));
}

TEST_F(SizeProgramTest, AConditionWhoseNumbersLeave64BitsDoesNotHold) {
  const SizeProgram p = compile({"a >= 0", "a*a != 7", "3*a + b > 0"});
  const auto first_zero = [&](std::vector<int64_t> slots) { return p.first_zero(slots.data()); };
  EXPECT_EQ(first_zero({int64_t{1} << 31, 1}), -1);
  EXPECT_EQ(first_zero({int64_t{1} << 32, 1}), 1);
  EXPECT_EQ(first_zero({int64_t{3} << 29, std::numeric_limits<int64_t>::max() - 5}), 2);
  const SizeProgram sentinel = compile({"a <= b + 9223372036854775807"});  // a bound without end is compared exactly
  EXPECT_EQ(sentinel.first_zero(std::vector<int64_t>{7, 5}.data()), -1);
}

TEST_F(SizeProgramTest, FirstZero) {
  const SizeProgram p = compile({"a == b", "a % 8 == 0", "a*b < 100"});
  const auto first_zero = [&](std::vector<int64_t> slots) { return p.first_zero(slots.data()); };
  EXPECT_EQ(first_zero({8, 8}), -1);
  EXPECT_EQ(first_zero({8, 9}), 0);
  EXPECT_EQ(first_zero({9, 9}), 1);
  EXPECT_EQ(first_zero({16, 16}), 2);
}

TEST_F(SizeProgramTest, AVariableWithoutASlotIsOurBug) {
  const ExprId outputs[] = {(*this)("a")};
  EXPECT_THROW(SizeProgram::compile(pool_, outputs, {}), InternalError);
}

TEST_F(SizeProgramTest, AgreesWithTheEvaluator) {
  const char* const texts[] = {"(a*b + 3)//4 - b % 3", "max(a - b, b - a)//2", "a*a - 2*a*b + b*b == 0 or a > b",
                               "min(a, 3)*max(b, -2) - 7"};
  const SizeProgram p = compile({texts[0], texts[1], texts[2], texts[3]});
  for (int64_t a = -6; a <= 6; ++a) {
    for (int64_t b = -6; b <= 6; ++b) {
      const std::vector<int64_t> got = run(p, {a, b});
      for (size_t i = 0; i < std::size(texts); ++i) {
        const auto value =
            eval(pool_, (*this)(texts[i]), [&](VarId v) -> std::optional<int64_t> { return v == ids_["a"] ? a : b; });
        EXPECT_EQ(got[i], *value) << texts[i] << " at " << a << ", " << b;
      }
    }
  }
}

}  // namespace
}  // namespace cresset::sym::testing
