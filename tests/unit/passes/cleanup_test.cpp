// Dead code, common subexpressions, no-ops, folding and decomposition: where they fire and where they must not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/passes.h"

namespace cresset::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kInputs = R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 8][8, 1] = input "x"
)crs";

std::string after(bool (*pass)(graph::Graph&), std::string_view body, bool* changed = nullptr) {
  Result<std::unique_ptr<graph::Graph>> graph = graph::parse(std::string(kInputs) + std::string(body));
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : describe(graph.fallback()));
  if (!graph.ok()) return "";
  const bool did = pass(**graph);
  if (changed != nullptr) *changed = did;
  EXPECT_EQ(graph::verify(**graph), "");
  return graph::print(**graph);
}

TEST(DeadCode, DropsWhatNobodyUsesAndKeepsRandomNumbers) {
  const std::string text = after(dead_code, R"crs(%1: f32[s0, 8][8, 1] = aten::relu(%0)
%2: f32[s0, 8][8, 1] = aten::bernoulli.p(%0, 0.5, none)
%3: f32[s0, 8][8, 1] = aten::neg(%0)
return %3
)crs");
  EXPECT_THAT(text, Not(HasSubstr("aten::relu")));
  EXPECT_THAT(text, HasSubstr("aten::bernoulli"));
}

TEST(DeadCode, ADerivativeOfRandomNumbersDrawsNone) {
  const std::string text = after(dead_code, R"crs(%1: f32[s0, 8][8, 1] = aten::_standard_gamma_grad(%0, %0)
%2: f32[s0, 8][8, 1] = aten::rrelu_with_noise_backward(%0, %0, %0, 0.1, 0.3, true, false)
%3: f32[s0, 8][8, 1] = aten::native_dropout_backward(%0, %0, 2)
%4: f32[s0, 8][8, 1] = library::shows(%0)
%5: f32[s0, 8][8, 1] = aten::neg(%0)
return %5
)crs");
  EXPECT_THAT(text, Not(HasSubstr("gamma_grad")));
  EXPECT_THAT(text, Not(HasSubstr("backward")));
  EXPECT_THAT(text, HasSubstr("library::shows"));
}

TEST(DeadCode, LeavesTheFirstResultAloneWhereTheOthersAreNotUsed) {
  const std::string pooled = R"crs(%1: f32[s0, 1, 4, 2][8, 8, 2, 1] = aten::view(%0, [s0, 1, 4, 2])
%2: f32[s0, 1, 2, 1][2, 2, 1, 1], %3: i64[s0, 1, 2, 1][2, 2, 1, 1] = aten::max_pool2d_with_indices(%1, [2], [2], [0], [1], false)
)crs";
  EXPECT_THAT(after(dead_code, pooled + "return %2\n"), HasSubstr("prim::max_pool2d"));
  EXPECT_THAT(after(dead_code, pooled + "return %2, %3\n"), HasSubstr("aten::max_pool2d_with_indices"));
}

TEST(CommonSubexpressions, MergesEqualNodes) {
  const std::string text = after(common_subexpressions, R"crs(%1: f32[s0, 8][8, 1] = aten::relu(%0)
%2: f32[s0, 8][8, 1] = aten::relu(%0)
%3: f32[s0, 8][8, 1] = aten::mul.Tensor(%1, %2)
return %3
)crs");
  EXPECT_THAT(text, HasSubstr("aten::mul.Tensor(%1*, %1*)"));
}

TEST(CommonSubexpressions, TwoOutputsStayTwoTensors) {
  bool changed = true;
  after(common_subexpressions, R"crs(%1: f32[s0, 8][8, 1] = aten::relu(%0)
%2: f32[s0, 8][8, 1] = aten::relu(%0)
%3: f32[8*s0][1] = aten::view(%2, [8*s0])
return %1, %3
)crs",
        &changed);
  EXPECT_FALSE(changed);
}

TEST(CommonSubexpressions, RandomNumbersAreDrawnTwice) {
  bool changed = true;
  after(common_subexpressions, R"crs(%1: f32[s0, 8][8, 1] = aten::bernoulli.p(%0, 0.5, none)
%2: f32[s0, 8][8, 1] = aten::bernoulli.p(%0, 0.5, none)
%3: f32[s0, 8][8, 1] = aten::mul.Tensor(%1, %2)
return %3
)crs",
        &changed);
  EXPECT_FALSE(changed);
}

std::string attention(std::string_view dropout) {
  constexpr std::string_view kCall =
      "f32[1, 2, 3, 4][24, 12, 4, 1], %{}: f32[1, 2, 3][6, 1, 2] = "
      "aten::_scaled_dot_product_flash_attention_for_cpu(%1, %1, %1, {}, false, none, none)\n";
  return "%1: f32[1, 2, 3, 4][24, 12, 4, 1] = aten::full([1, 2, 3, 4], 1.0, none, none, none, none)\n" +
         fmt::format(fmt::runtime("%2: " + std::string(kCall)), 3, dropout) +
         fmt::format(fmt::runtime("%4: " + std::string(kCall)), 5, dropout) +
         "%6: f32[1, 2, 3, 4][24, 12, 4, 1] = aten::mul.Tensor(%2, %4)\nreturn %6\n";
}

TEST(CommonSubexpressions, AttentionDrawsNumbersForDropoutAlone) {
  EXPECT_THAT(after(common_subexpressions, attention("0.0")), HasSubstr("aten::mul.Tensor(%2*, %2*)"));
  EXPECT_THAT(after(common_subexpressions, attention("0.5")), HasSubstr("aten::mul.Tensor(%2*, %4*)"));
}

std::string range_and(std::string_view test) {
  return "%1: i64[s0][1] = aten::arange(s0, dtype:i64, none, none, none)\n" + std::string(test) + "return %2\n";
}

TEST(FoldConstants, AComparisonOfAllPositionsHasOneAnswer) {
  const auto folded = [](std::string_view test) { return after(fold_constants, range_and(test)); };
  EXPECT_THAT(folded("%2: bool[s0][1] = aten::ge.Scalar(%1, 0)\n"), HasSubstr("aten::full([s0], true"));
  EXPECT_THAT(folded("%2: bool[s0][1] = aten::lt.Scalar(%1, s0)\n"), HasSubstr("aten::full([s0], true"));
  EXPECT_THAT(folded("%2: bool[s0][1] = aten::gt.Scalar(%1, s0 + 3)\n"), HasSubstr("aten::full([s0], false"));
  EXPECT_THAT(folded("%2: bool[s0][1] = aten::ne.Scalar(%1, -1)\n"), HasSubstr("aten::full([s0], true"));
  EXPECT_THAT(folded("%2: bool[s0][1] = aten::gt.Scalar(%1, 0)\n"), HasSubstr("aten::gt.Scalar"));
  EXPECT_THAT(folded("%2: bool[s0][1] = aten::ge.Scalar(%1, 0.0)\n"), HasSubstr("aten::ge.Scalar"));
}

TEST(FoldConstants, ComparisonsOfOtherIntegersStay) {
  bool changed = true;
  after(fold_constants, R"crs(%1: i32[s0][1] = aten::arange(s0, dtype:i32, none, none, none)
%2: bool[s0][1] = aten::ge.Scalar(%1, 0)
return %2
)crs",
        &changed);
  EXPECT_FALSE(changed);
  after(fold_constants,
        range_and("%3: i64[s0][1] = aten::mul.Tensor(%1, %1)\n"
                  "%2: bool[s0][1] = aten::ge.Scalar(%3, 0)\n"),
        &changed);
  EXPECT_FALSE(changed);
}

TEST(FoldConstants, LongChainsOfSumsEnd) {
  std::string chain;
  for (int i = 2; i < 2000; ++i)
    chain += fmt::format("%{}: i64[s0][1] = aten::add.Tensor(%{}, %{}, 1)\n", i + 1, i == 2 ? 1 : i, i == 2 ? 1 : i);
  const std::string text = after(fold_constants, range_and(chain + "%2: bool[s0][1] = aten::ge.Scalar(%2000, 0)\n"));
  EXPECT_THAT(text, HasSubstr("aten::ge.Scalar"));
}

TEST(RemoveNoOps, MultiplicationByOneAndIdentityViewsGo) {
  const std::string text = after(remove_no_ops, R"crs(%1: f32[s0, 8][8, 1] = aten::mul.Tensor(%0, 1)
%2: f32[s0, 8][8, 1] = aten::view(%1, [s0, 8])
%3: f32[s0, 8][8, 1] = aten::permute(%2, [0, 1])
%4: f32[s0, 8][8, 1] = aten::relu(%3)
return %4
)crs");
  EXPECT_THAT(text, HasSubstr("aten::relu(%0*)"));
  EXPECT_THAT(text, Not(HasSubstr("aten::view")));
}

TEST(RemoveNoOps, AFloatPlusZeroStaysForTheSakeOfMinusZero) {
  bool changed = true;
  after(remove_no_ops, R"crs(%1: f32[s0, 8][8, 1] = aten::add.Tensor(%0, 0, 1)
%2: f32[s0, 8][8, 1] = aten::relu(%1)
return %2
)crs",
        &changed);
  EXPECT_FALSE(changed);
}

TEST(RemoveNoOps, AnOutputNeverBecomesAnInput) {
  bool changed = true;
  after(remove_no_ops, R"crs(%1: f32[s0, 8][8, 1] = aten::mul.Tensor(%0, 1)
return %1
)crs",
        &changed);
  EXPECT_FALSE(changed);
}

TEST(RemoveNoOps, ACopyOfWhatMayBeAViewStays) {
  bool changed = true;
  after(remove_no_ops, R"crs(%1: f32[s0, 8][8, 1] = aten::view.dtype(%0, dtype:f32)
%2: f32[s0, 8][8, 1] = aten::clone(%1, none)
return %2
)crs",
        &changed);
  EXPECT_FALSE(changed);
}

TEST(Decompose, ReachesPrimitivesInPlace) {
  const std::string text = after(decompose, R"crs(%1: f32[s0, 8][8, 1] = aten::_softmax(%0, -1, false)
%2: f32[s0, 8][8, 1] = aten::relu(%1)
return %2
)crs");
  EXPECT_THAT(text, Not(HasSubstr("_softmax")));
  EXPECT_THAT(text, HasSubstr("prim::greatest"));
  EXPECT_LT(text.find("aten::exp"), text.find("aten::relu"));
}

}  // namespace
}  // namespace cresset::passes
