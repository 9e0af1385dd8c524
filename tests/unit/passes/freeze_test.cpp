// What weights alone decide: what is taken out of a graph, and what becomes part of a weight.
#include "passes/freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/passes.h"

namespace cresset::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kGiven = R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 8][8, 1] = input "x"
%1: f32[8, 8][8, 1] = constant "w"
%2: f32[8][1] = constant "v"
)crs";

struct Texts {
  std::string left, apart;
};

Texts after(std::unique_ptr<graph::Graph> (*change)(graph::Graph&), std::string_view body) {
  Result<std::unique_ptr<graph::Graph>> graph = graph::parse(std::string(kGiven) + std::string(body));
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : describe(graph.fallback()));
  if (!graph.ok()) return {};
  const std::unique_ptr<graph::Graph> apart = change(**graph);
  EXPECT_EQ(graph::verify(**graph), "");
  if (apart != nullptr) {
    EXPECT_EQ(graph::verify(*apart), "");
    EXPECT_EQ((*graph)->constants.size(), apart->constants.size() + apart->outputs.size());
  }
  return {graph::print(**graph), apart == nullptr ? "" : graph::print(*apart)};
}

std::unique_ptr<graph::Graph> split_all(graph::Graph& graph) { return split_unchanging(graph, {true, true}); }
std::unique_ptr<graph::Graph> split_first(graph::Graph& graph) { return split_unchanging(graph, {true, false}); }
std::unique_ptr<graph::Graph> scale_all(graph::Graph& graph) {
  scale_weights(graph, {true, true});
  return nullptr;
}

TEST(SplitUnchanging, TakesOutWhatConstantsAloneDecide) {
  const std::string_view body = R"crs(%3: f32[8, 8][8, 1] = aten::exp(%1)
%4: f32[8][1] = aten::sum.dim_IntList(%3, [1], false, none)
%5: f32[s0, 8][8, 1] = aten::mul.Tensor(%0, %4)
%6: f32[s0, 8][8, 1] = aten::add.Tensor(%5, %2, 1)
return %6
)crs";
  const Texts texts = after(split_all, body);
  EXPECT_THAT(texts.apart, HasSubstr("aten::exp"));
  EXPECT_THAT(texts.apart, HasSubstr("aten::sum"));
  EXPECT_THAT(texts.left, Not(HasSubstr("aten::exp")));
  EXPECT_THAT(texts.left, HasSubstr("constant \"frozen 2\""));
  EXPECT_THAT(texts.left, HasSubstr("aten::add.Tensor"));
}

TEST(SplitUnchanging, LeavesWhatMayChange) {
  const Texts texts = after(split_first, R"crs(%3: f32[8][1] = aten::exp(%2)
%4: f32[s0, 8][8, 1] = aten::mul.Tensor(%0, %3)
return %4
)crs");
  EXPECT_THAT(texts.apart, IsEmpty());
}

TEST(SplitUnchanging, ViewsAndNumbersAreLeft) {
  const Texts texts = after(split_all, R"crs(%3: f32[8, 8][1, 8] = aten::t(%1)
%4: f32[s0, 8][8, 1] = aten::mm(%0, %3)
%5: f32[8][1] = aten::full([8], 2.0, dtype:f32, none, device:cpu, none)
%6: f32[s0, 8][8, 1] = aten::mul.Tensor(%4, %5)
return %6
)crs");
  EXPECT_THAT(texts.apart, IsEmpty());
}

TEST(SplitUnchanging, ResultsAreTheCallers) {
  const Texts texts = after(split_all, R"crs(%3: f32[8, 8][8, 1] = aten::exp(%1)
%4: f32[8, 8][8, 1] = aten::neg(%3)
%5: f32[8, 8][1, 8] = aten::t(%4)
return %5
)crs");
  EXPECT_THAT(texts.apart, HasSubstr("aten::exp"));
  EXPECT_THAT(texts.apart, Not(HasSubstr("aten::neg")));
  EXPECT_THAT(texts.left, HasSubstr("aten::neg"));
}

TEST(SplitUnchanging, WhatGrowsIsComputedAgain) {
  const std::string_view body = R"crs(%3: f32[64, 8][0, 1] = aten::expand(%2, [64, 8], false)
%4: f32[64, 8][8, 1] = aten::exp(%3)
%5: f32[8, 64][1, 8] = aten::t(%4)
%6: f32[s0, 64][64, 1] = aten::mm(%0, %5)
return %6
)crs";
  EXPECT_THAT(after(split_all, body).apart, IsEmpty());
}

constexpr std::string_view kLinear = R"crs(%3: f32[8, 8][1, 8] = aten::t(%1)
%4: f32[s0, 8][8, 1] = aten::mm(%0, %3)
)crs";

TEST(ScaleWeights, FactorsAndSummandsOfColumns) {
  const Texts texts = after(scale_all, std::string(kLinear) + R"crs(%5: f32[s0, 8][8, 1] = aten::mul.Tensor(%4, %2)
%6: f32[s0, 8][8, 1] = aten::sub.Tensor(%5, %2, 1)
return %6
)crs");
  EXPECT_THAT(texts.left, HasSubstr("aten::addmm"));
  EXPECT_THAT(texts.left, Not(HasSubstr("f32[s0, 8][8, 1] = aten::mul")));
  EXPECT_THAT(texts.left, Not(HasSubstr("f32[s0, 8][8, 1] = aten::sub")));
}

TEST(ScaleWeights, NotWhereTheProductIsReadTwice) {
  const Texts texts = after(scale_all, std::string(kLinear) + R"crs(%5: f32[s0, 8][8, 1] = aten::mul.Tensor(%4, %2)
%6: f32[s0, 8][8, 1] = aten::add.Tensor(%5, %4, 1)
return %6
)crs");
  EXPECT_THAT(texts.left, HasSubstr("f32[s0, 8][8, 1] = aten::mul.Tensor"));
}

TEST(ScaleWeights, NotByRows) {
  const Texts texts = after(scale_all, std::string(kLinear) + R"crs(%5: f32[8, 1][1, 1] = aten::unsqueeze(%2, 1)
%6: f32[8, 8][8, 1] = aten::mm(%1, %1)
%7: f32[s0, 8][8, 1] = aten::mm(%0, %6)
%8: f32[s0, 1, 8][8, 8, 1] = aten::unsqueeze(%7, 1)
%9: f32[s0, 8, 8][64, 8, 1] = aten::mul.Tensor(%8, %5)
return %9, %4
)crs");
  EXPECT_THAT(texts.left, HasSubstr("f32[s0, 8, 8][64, 8, 1] = aten::mul.Tensor"));
}

}  // namespace
}  // namespace cresset::passes
