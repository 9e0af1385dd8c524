#include "ops/verify_types.h"

#include <gtest/gtest.h>

namespace cresset::ops {
namespace {

std::string check(std::string_view result) {
  const std::string text =
      "symbol s0 8 [0, inf] dynamic \"x\"\n%0: f32[s0, 2][2, 1] = input \"x\"\n%1: " + std::string(result) +
      " = aten::isnan(%0)\nreturn %1\n";
  const Result<std::unique_ptr<graph::Graph>> graph = graph::parse(text);
  return graph.ok() ? verify_types(**graph) : describe(graph.fallback());
}

TEST(VerifyTypes, HoldsResultsToTheirRules) {
  EXPECT_EQ(check("bool[s0, 2][2, 1]"), "");
  EXPECT_EQ(check("f32[s0, 2][2, 1]"), "result 0 of aten::isnan is f32, its rule says bool");
  EXPECT_EQ(check("bool[s0][1]"), "result 0 of aten::isnan has 1 dimensions, its rule says 2");
  EXPECT_EQ(check("bool[s0, 3][3, 1]"), "result 0 of aten::isnan has size 3 in dimension 1, its rule says 2");
}

}  // namespace
}  // namespace cresset::ops
