// Passes that serve the libraries: channels-last layouts, activations joined to calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/passes.h"

namespace cresset::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<graph::Graph> parse(std::string_view text) {
  Result<std::unique_ptr<graph::Graph>> graph = graph::parse(text);
  CRESSET_CHECK(graph.ok(), describe(graph.fallback()));
  return std::move(graph).value();
}

std::string after(std::string_view text, bool (*pass)(graph::Graph&)) {
  const auto graph = parse(text);
  pass(*graph);
  EXPECT_EQ(graph::verify(*graph), "");
  return graph::print(*graph);
}

constexpr std::string_view kTwoConvolutions = R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 3, 32, 32][3072, 1024, 32, 1] = input "x"
%1: f32[8, 3, 3, 3][27, 9, 3, 1] = constant "w1"
%2: f32[8, 8, 3, 3][72, 9, 3, 1] = constant "w2"
%3: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::convolution(%0, %1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%4: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::relu(%3)
%5: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::add.Tensor(%4, %3, 1)
%6: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::convolution(%5, %2, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%7: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::relu(%6)
return %7
)crs";

TEST(ChannelsLastPass, ConvertsOnceAndCarriesOn) {
  const std::string text = after(kTwoConvolutions, channels_last);
  EXPECT_THAT(text, HasSubstr("%3: f32[s0, 3, 32, 32][3072, 1, 96, 3] = aten::clone(%0*, format:channels_last)"));
  EXPECT_THAT(text, HasSubstr("%4: f32[s0, 8, 32, 32][8192, 1, 256, 8] = aten::convolution(%3*,"));
  EXPECT_THAT(text, HasSubstr("%6: f32[s0, 8, 32, 32][8192, 1, 256, 8] = aten::add.Tensor("));
  EXPECT_EQ(text.find("aten::clone"), text.rfind("aten::clone"));
}

TEST(ChannelsLastPass, WhatLeavesKeepsEagersStrides) {
  EXPECT_THAT(after(kTwoConvolutions, channels_last), HasSubstr("[8192, 1024, 32, 1] = aten::relu("));
}

// reshape() of an image in rows to tokens gives strides, which the converted image does not have.
TEST(ChannelsLastPass, AReshapeWithStridesTakesThoseOfTheImage) {
  const std::string text = after(R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 3, 32, 32][3072, 1024, 32, 1] = input "x"
%1: f32[8, 3, 3, 3][27, 9, 3, 1] = constant "w1"
%2: f32[8, 8, 3, 3][72, 9, 3, 1] = constant "w2"
%3: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::convolution(%0, %1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%4: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::convolution(%3, %2, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%5: f32[s0, 32, 32, 8][8192, 32, 1, 1024] = aten::permute(%4, [0, 2, 3, 1])
%6: f32[s0, 1024, 8][8192, 1, 1024] = aten::_reshape_alias(%5, [s0, 1024, 8], [8192, 1, 1024])
%7: f32[s0, 1024, 8][8192, 1, 1024] = aten::relu(%6)
%8: f32[s0, 1024, 8][8192, 1, 1024] = aten::add.Tensor(%7, %6, 1)
return %8
)crs",
                                 channels_last);
  EXPECT_THAT(text, HasSubstr("f32[s0, 1024, 8][8192, 8, 1] = aten::view("));
  EXPECT_THAT(text, HasSubstr("f32[s0, 1024, 8][8192, 8, 1] = aten::relu("));
  EXPECT_THAT(text, HasSubstr("f32[s0, 1024, 8][8192, 1, 1024] = aten::add.Tensor("));  // leaves
}

// A joint graph: what both programs read lies in one format, results of either are copies in eager mode's strides.
TEST(ChannelsLastPass, SavedImagesAreInsideOfAJointGraph) {
  const auto graph = parse(R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32@cuda:0[s0, 4, 8, 8][256, 64, 8, 1] = input "x"
%1: f32@cuda:0[s0, 4, 8, 8][256, 64, 8, 1] = input "tangent"
%2: f32@cuda:0[8, 4, 3, 3][36, 9, 3, 1] = constant "w1"
%3: f32@cuda:0[4, 8, 3, 3][72, 9, 3, 1] = constant "w2"
%4: f32@cuda:0[s0, 8, 8, 8][512, 64, 8, 1] = aten::convolution(%0, %2, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%5: f32@cuda:0[s0, 8, 8, 8][512, 64, 8, 1] = aten::relu(%4)
%6: f32@cuda:0[s0, 4, 8, 8][256, 64, 8, 1] = aten::convolution(%5, %3, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%7: f32@cuda:0[s0, 8, 8, 8][512, 64, 8, 1], %8: f32@cuda:0[4, 8, 3, 3][72, 9, 3, 1] = aten::convolution_backward(%1, %5, %3, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, bools(true, true, false))
%9: f32@cuda:0[s0, 8, 8, 8][512, 64, 8, 1] = aten::threshold_backward(%7, %5, 0)
return %6, %9, %8
)crs");
  const std::vector<graph::ValueId> results = graph->outputs;
  std::vector<graph::NodeId> backward(graph->order.begin() + 3, graph->order.end());
  graph->order.resize(3);
  graph->outputs.resize(1);
  ASSERT_TRUE(channels_last_joint(*graph, backward, {results[1], results[2]}));
  graph->order.insert(graph->order.end(), backward.begin(), backward.end());
  graph->outputs = results;
  EXPECT_EQ(graph::verify(*graph), "");
  const std::string text = graph::print(*graph);
  EXPECT_THAT(text, HasSubstr("[512, 1, 64, 8] = aten::relu("));
  EXPECT_THAT(text, HasSubstr("f32@cuda:0[s0, 8, 8, 8][512, 1, 64, 8], "));  // the gradient of the image
  EXPECT_THAT(text, HasSubstr("[256, 64, 8, 1] = aten::clone("));            // the forward result
  EXPECT_THAT(text, HasSubstr("[512, 64, 8, 1] = aten::clone("));            // a gradient
  EXPECT_THAT(text, HasSubstr("[72, 9, 3, 1] = aten::clone("));              // a filter's gradient
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(graph->outputs[i], results[i]);
}

// Between values that keep their strides: which order is faster is for the race of its call to say.
TEST(ChannelsLastPass, AConvolutionAloneIsLeftAsItIs) {
  constexpr std::string_view kOne = R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 3, 32, 32][3072, 1024, 32, 1] = input "x"
%1: f32[8, 3, 3, 3][27, 9, 3, 1] = constant "w"
%2: f32[s0, 3, 32, 32][3072, 1024, 32, 1] = aten::exp(%0)
%3: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::convolution(%2, %1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%4: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::exp(%3)
%5: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::sigmoid(%4)
return %5
)crs";
  const auto graph = parse(kOne);
  const std::string before = graph::print(*graph);
  EXPECT_FALSE(channels_last(*graph));
  EXPECT_EQ(graph::print(*graph), before);
}

// Nodes without results (assertions, checks of errors) stand in the order, too.
TEST(ChannelsLastPass, AConvolutionAloneBesideANodeWithoutResults) {
  const auto graph = parse(R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 3, 32, 32][3072, 1024, 32, 1] = input "x"
%1: f32[8, 3, 3, 3][27, 9, 3, 1] = constant "w"
%2: bool[][] = input "ok"
%3: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::convolution(%0, %1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
aten::_assert_async.msg(%2, "not ok")
return %3
)crs");
  const std::string before = graph::print(*graph);
  EXPECT_FALSE(channels_last(*graph));
  EXPECT_EQ(graph::print(*graph), before);
}

TEST(ChannelsLastPass, ConvolutionsOfOneImageAreNotAlone) {
  const std::string text = after(R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 3, 32, 32][3072, 1024, 32, 1] = input "x"
%1: f32[8, 3, 3, 3][27, 9, 3, 1] = constant "w1"
%2: f32[8, 3, 3, 3][27, 9, 3, 1] = constant "w2"
%3: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::convolution(%0, %1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%4: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::convolution(%0, %2, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%5: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::add.Tensor(%3, %4, 1)
return %5
)crs",
                                 channels_last);
  EXPECT_THAT(text, HasSubstr("aten::clone(%0*, format:channels_last)"));
}

TEST(ChannelsLastPass, AViewThatCannotBeTakenStaysAsItWas) {
  const std::string text = after(R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 3, 32, 32][3072, 1024, 32, 1] = input "x"
%1: f32[8, 3, 3, 3][27, 9, 3, 1] = constant "w"
%2: f32[s0, 8, 32, 32][8192, 1024, 32, 1] = aten::convolution(%0, %1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
%3: f32[s0, 8192][8192, 1] = aten::view(%2, [s0, 8192])
%4: f32[s0, 8192][8192, 1] = aten::relu(%3)
return %4
)crs",
                                 channels_last);
  EXPECT_THAT(text, HasSubstr("[s0, 8192][8192, 1] = aten::view("));
}

TEST(ChannelsLastPass, LeavesOtherGraphsAlone) {
  const auto graph = parse(R"crs(%0: f32[4, 8][8, 1] = input "x"
%1: f32[4, 8][8, 1] = aten::relu(%0)
return %1
)crs");
  EXPECT_FALSE(channels_last(*graph));
}

TEST(ExternEpiloguePass, JoinsAnActivationThroughAReshape) {
  const std::string text = after(R"crs(symbol s0 4 [0, inf] dynamic "x.size(0)"
%0: f32[s0, 8][8, 1] = input "x"
%1: f32[8, 16][1, 8] = input "w"
%2: f32[16][1] = input "b"
%3: f32[s0, 16][16, 1] = aten::addmm(%2, %0, %1, 1, 1)
%4: f32[s0, 4, 4][16, 4, 1] = aten::view(%3, [s0, 4, 4])
%5: f32[s0, 4, 4][16, 4, 1] = aten::gelu(%4, "none")
return %5
)crs",
                                 extern_epilogue);
  EXPECT_THAT(text, HasSubstr("prim::linear_epilogue(%2*, %0*, %1*, \"gelu\")"));
  EXPECT_THAT(text, Not(HasSubstr("aten::gelu")));
  EXPECT_THAT(text, HasSubstr("return %4"));
}

TEST(ExternEpiloguePass, NotWhenAKernelReadsTheActivation) {
  const std::string text = after(R"crs(%0: f32[4, 8][8, 1] = input "x"
%1: f32[8, 16][16, 1] = input "w"
%2: f32[4, 16][16, 1] = aten::mm(%0, %1)
%3: f32[4, 16][16, 1] = aten::silu(%2)
%4: f32[4, 16][16, 1] = aten::exp(%3)
return %4
)crs",
                                 extern_epilogue);
  EXPECT_THAT(text, HasSubstr("aten::silu"));
}

TEST(ExternEpiloguePass, NotWhenTheProductIsReadElsewhere) {
  const std::string text = after(R"crs(%0: f32[4, 8][8, 1] = input "x"
%1: f32[8, 16][16, 1] = input "w"
%2: f32[4, 16][16, 1] = aten::mm(%0, %1)
%3: f32[4, 16][16, 1] = aten::relu(%2)
return %3, %2
)crs",
                                 extern_epilogue);
  EXPECT_THAT(text, HasSubstr("aten::relu"));
}

constexpr std::string_view kRepeated = R"crs(symbol s0 9 [0, inf] dynamic "k.size(2)"
%0: f32@cuda:0[2, 8, 4, 16][512, 64, 16, 1] = input "q"
%1: f32@cuda:0[2, 2, s0, 16][32*s0, 16*s0, 16, 1] = input "k"
%2: f32@cuda:0[2, 2, 1, s0, 16][32*s0, 16*s0, 16*s0, 16, 1] = aten::unsqueeze(%1, 2)
%3: f32@cuda:0[2, 2, 4, s0, 16][32*s0, 16*s0, 0, 16, 1] = aten::expand(%2, [2, 2, 4, s0, 16], false)
%4: f32@cuda:0[2, 2, 4, s0, 16][128*s0, 64*s0, 16*s0, 16, 1] = aten::clone(%3, format:contiguous)
%5: f32@cuda:0[2, 8, s0, 16][128*s0, 16*s0, 16, 1] = aten::_unsafe_view(%4, [2, 8, s0, 16])
)crs";

TEST(GroupedAttentionPass, ReadsRepeatedKeysWhereTheyLie) {
  const std::string text = after(std::string(kRepeated) +
                                     "%6: f32@cuda:0[2, 8, 4, 16][512, 64, 16, 1] = cresset::attention(%0, %5, %5, "
                                     "none, false, none, false)\nreturn %6\n",
                                 grouped_attention);
  EXPECT_THAT(text, Not(HasSubstr("aten::clone")));
  EXPECT_THAT(text, HasSubstr("f32@cuda:0[2, 2, s0, 16][32*s0, 16*s0, 16, 1] = aten::squeeze.dim("));
  EXPECT_THAT(text, HasSubstr("none, false, none, true)"));
}

TEST(GroupedAttentionPass, LeavesKeysWithOtherValuesAlone) {
  const auto graph = parse(std::string(kRepeated) +
                           "%6: f32@cuda:0[2, 8, s0, 16][128*s0, 16*s0, 16, 1] = aten::sin(%5)\n"
                           "%7: f32@cuda:0[2, 8, 4, 16][512, 64, 16, 1] = cresset::attention(%0, %5, %6, none, false, "
                           "none, false)\nreturn %7\n");
  EXPECT_FALSE(grouped_attention(*graph));
}

}  // namespace
}  // namespace cresset::passes
