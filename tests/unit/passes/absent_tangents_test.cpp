// What is left of a backward program where some results have no gradients.
#include "passes/absent_tangents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cresset::passes {
namespace {

using ::testing::ElementsAre;

struct Left {
  std::vector<std::string> operators;
  std::vector<bool> absent;
};

// Of a program of two tangents, %0 and %1, of which the first is there.
Left left(std::string_view body) {
  constexpr std::string_view kInputs = R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0][1] = input "gradient"
%1: f32[s0][1] = input "gradient"
%2: f32[s0][1] = input "x"
)crs";
  Result<std::unique_ptr<graph::Graph>> parsed = graph::parse(std::string(kInputs) + std::string(body));
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : describe(parsed.fallback()));
  if (!parsed.ok()) return {};
  graph::Graph& graph = **parsed;
  const std::vector<graph::ValueId> tangents{graph.inputs[0], graph.inputs[1]};
  Left out;
  out.absent = without_tangents(graph, graph.order, graph.outputs, tangents, {true, false});
  std::vector<graph::ValueId> there;
  for (size_t i = 0; i < out.absent.size(); ++i)
    if (!out.absent[i]) there.push_back(graph.outputs[i]);
  graph.outputs = there;
  EXPECT_EQ(graph::verify(graph), "");
  for (const graph::NodeId n : graph.order) out.operators.emplace_back(graph::op_name(graph.node(n).op));
  return out;
}

TEST(AbsentTangents, WhatComesOfThemAloneIsNotThere) {
  const Left found = left(R"crs(%3: f32[s0][1] = aten::mul.Tensor(%1, %2)
%4: f32[s0][1] = aten::neg(%3)
%5: f32[s0][1] = aten::mul.Tensor(%0, %2)
return %4, %5
)crs");
  EXPECT_THAT(found.operators, ElementsAre("aten::mul.Tensor"));
  EXPECT_THAT(found.absent, ElementsAre(true, false));
}

TEST(AbsentTangents, ASumIsItsOtherTerm) {
  const Left found = left(R"crs(%3: f32[s0][1] = aten::mul.Tensor(%1, %2)
%4: f32[s0][1] = aten::mul.Tensor(%0, %2)
%5: f32[s0][1] = aten::add.Tensor(%3, %4, 1)
%6: f32[s0][1] = aten::add.Tensor(%5, %3, 1)
return %6
)crs");
  EXPECT_THAT(found.operators, ElementsAre("aten::mul.Tensor"));
}

TEST(AbsentTangents, OtherOperatorsAreGivenZeros) {
  const Left found = left("%3: f32[s0][1] = aten::atan2(%1, %0)\nreturn %3\n");
  EXPECT_THAT(found.operators, ElementsAre("aten::empty_strided", "aten::fill.Scalar", "aten::atan2"));
}

TEST(AbsentTangents, OutputsAreResultsOfTheirOwn) {
  const Left found = left(R"crs(%3: f32[s0][1] = aten::add.Tensor(%0, %1, 1)
%4: f32[s0][1] = aten::neg(%0)
%5: f32[s0][1] = aten::add.Tensor(%4, %1, 1)
return %3, %4, %5
)crs");
  EXPECT_THAT(found.operators, ElementsAre("aten::neg", "aten::clone", "aten::clone"));
}

}  // namespace
}  // namespace cresset::passes
