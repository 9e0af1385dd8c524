// What a backward program is given: the fewest bytes, and nothing drawn or folded twice.
#include "passes/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cresset::passes {
namespace {

using ::testing::ElementsAre;

struct Cut {
  std::vector<uint32_t> saved;
  std::vector<std::string> again;
};

// `needed`: values by number, as they stand in the text.
Cut cut(std::string_view body, const std::vector<uint32_t>& needed, const std::vector<uint32_t>& changing = {}) {
  constexpr std::string_view kInputs = R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 8][8, 1] = input "x"
%1: f32[8, 8][8, 1] = constant "w"
)crs";
  Result<std::unique_ptr<graph::Graph>> graph = graph::parse(std::string(kInputs) + std::string(body));
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : describe(graph.fallback()));
  if (!graph.ok()) return {};
  std::vector<graph::ValueId> values;
  for (const uint32_t n : needed) values.push_back(graph::ValueId{n});
  std::unordered_set<graph::ValueId> changed;
  for (const uint32_t n : changing) changed.insert(graph::ValueId{n});
  const Partition found = partition(**graph, values, changed);
  Cut out;
  for (const graph::ValueId v : found.saved) out.saved.push_back(v.index);
  for (const graph::NodeId n : found.recomputed) out.again.emplace_back(graph::op_name((*graph)->node(n).op));
  return out;
}

TEST(Partition, PointwiseChainsAreComputedAgainFromTheInput) {
  const Cut found = cut(R"crs(%2: f32[s0, 8][8, 1] = aten::sin(%0)
%3: f32[s0, 8][8, 1] = aten::exp(%2)
return %3
)crs",
                        {2, 3});
  EXPECT_THAT(found.saved, ElementsAre(0));
  EXPECT_THAT(found.again, ElementsAre("aten::sin", "aten::exp"));
}

TEST(Partition, WhatMayChangeIsNotReadAgain) {
  constexpr std::string_view kBody = R"crs(%2: f32[s0, 8][8, 1] = aten::sin(%0)
%3: f32[s0, 8][8, 1] = aten::exp(%2)
return %3
)crs";
  const Cut found = cut(kBody, {3}, {0});
  EXPECT_THAT(found.saved, ElementsAre(3));
  EXPECT_TRUE(found.again.empty());
}

TEST(Partition, AResultThatMayChangeIsNotReadAgain) {
  constexpr std::string_view kBody = R"crs(%2: f32[s0, 8][8, 1] = aten::mm(%0, %1)
%3: bool[s0, 8][8, 1] = aten::gt.Scalar(%2, 0)
%4: f32[s0, 8][8, 1] = aten::masked_fill.Scalar(%2, %3, 1)
return %4, %2
)crs";
  EXPECT_THAT(cut(kBody, {3}).saved, ElementsAre(2));
  EXPECT_THAT(cut(kBody, {3}, {2}).saved, ElementsAre(3));
}

TEST(Partition, ACopyOfWhatMayChangeIsSavedWhereItIsSmaller) {
  const Cut found = cut(R"crs(%2: f16[s0, 8][8, 1] = aten::_to_copy(%0, dtype:f16, none, none, none, false, none)
%3: f32[s0, 8][8, 1] = aten::_to_copy(%2, dtype:f32, none, none, none, false, none)
%4: f32[s0, 8][8, 1] = aten::exp(%3)
return %4
)crs",
                        {3, 4}, {0});
  EXPECT_THAT(found.saved, ElementsAre(2));
}

// The caller may write to the original before the backward pass.
TEST(Partition, AClonedInputIsSavedItself) {
  const Cut found = cut(R"crs(%2: f32[s0, 8][8, 1] = aten::clone(%0, none)
%3: f32[s0, 8][8, 1] = aten::sin(%2)
return %3
)crs",
                        {2, 3});
  EXPECT_THAT(found.saved, ElementsAre(2));
  EXPECT_THAT(found.again, ElementsAre("aten::sin"));
}

TEST(Partition, ProductsAreSavedAndViewsOfParametersAreNot) {
  const Cut found = cut(R"crs(%2: f32[8, 8][1, 8] = aten::t(%1)
%3: f32[s0, 8][8, 1] = aten::mm(%0, %2)
%4: f32[s0, 8][8, 1] = aten::tanh(%3)
%5: f32[s0, 8][8, 1] = aten::mul.Tensor(%4, %4)
return %5
)crs",
                        {0, 2, 4});
  EXPECT_THAT(found.saved, ElementsAre(0, 1, 4));  // of equal bytes, the one nearest to its use
  EXPECT_THAT(found.again, ElementsAre("aten::t"));
}

TEST(Partition, TheSmallerSideOfAReductionIsSaved) {
  const Cut found = cut(R"crs(%2: f32[s0, 8][8, 1] = aten::mm(%0, %1)
%3: f32[s0][1] = aten::sum.dim_IntList(%2, [1], false, none)
%4: f32[s0][1] = aten::exp(%3)
return %4
)crs",
                        {4});
  EXPECT_THAT(found.saved, ElementsAre(4));
  EXPECT_TRUE(found.again.empty());
}

TEST(Partition, RandomNumbersAreNotDrawnAgain) {
  const Cut found = cut(R"crs(%2: f32[s0, 8][8, 1] = aten::bernoulli.p(%0, 0.5, none)
%3: f32[s0, 8][8, 1] = aten::mul.Tensor(%0, %2)
return %3
)crs",
                        {0, 3});
  EXPECT_EQ(std::count(found.again.begin(), found.again.end(), "aten::bernoulli.p"), 0);
}

}  // namespace
}  // namespace cresset::passes
