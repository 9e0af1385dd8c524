#include "ops/context.h"

#include <gtest/gtest.h>

#include "ops/strides.h"

namespace cresset::ops {
namespace {

using graph::MemoryFormat;
using graph::TensorType;
using sym::ExprId;
using Exprs = std::vector<ExprId>;

class OpsContext : public ::testing::Test {
 protected:
  ExprId c(int64_t v) { return graph.pool().constant(v); }
  Exprs cs(std::initializer_list<int64_t> vs) {
    Exprs out;
    for (const int64_t v : vs) out.push_back(c(v));
    return out;
  }
  ExprId symbol(int64_t hint) { return graph.env().new_backed("x", hint); }
  TensorType dense(Exprs sizes, std::vector<size_t> order) {
    Exprs strides = strides_in_order(graph.pool(), sizes, order);
    return {DType::F32, {}, std::move(sizes), std::move(strides)};
  }
  size_t guards() { return graph.env().guards().size(); }

  graph::Graph graph{std::make_shared<sym::ShapeEnv>()};
  ShapeContext shapes{graph, "test::op"};
};

TEST_F(OpsContext, BroadcastPrefersWhatIsKnown) {
  const ExprId n = symbol(5), m = symbol(5);
  EXPECT_EQ(*shapes.broadcast({n, c(1)}, {c(4)}), (Exprs{n, c(4)}));
  EXPECT_EQ(*shapes.broadcast({c(1)}, {n}), (Exprs{n}));
  EXPECT_EQ(*shapes.broadcast({n}, {n}), (Exprs{n}));
  EXPECT_EQ(guards(), 0u);
  EXPECT_TRUE(shapes.broadcast({n}, {m}).ok());
  EXPECT_EQ(guards(), 1u);
  EXPECT_TRUE(graph.env().known_equal(n, m));
}

TEST_F(OpsContext, BroadcastPinsASizeToOneOnlyWhenItMust) {
  const ExprId one = symbol(1), also_one = symbol(1), n = symbol(5);
  ASSERT_TRUE(shapes.broadcast({one}, {also_one}).ok());
  EXPECT_FALSE(graph.env().known_equal(one, c(1)));
  EXPECT_EQ(*shapes.broadcast({one}, {n}), (Exprs{n}));
  EXPECT_TRUE(graph.env().known_equal(one, c(1)));
  EXPECT_FALSE(shapes.broadcast({n}, {c(4)}).ok());
  EXPECT_EQ(shapes.broadcast({n}, {c(4)}).fallback().reason, FallbackReason::InvalidArguments);
}

TEST_F(OpsContext, DataDependentSizesBecomeAssertions) {
  const ExprId u = graph.env().new_unbacked("nonzero"), v = graph.env().new_unbacked("unique"), n = symbol(5);
  EXPECT_FALSE(shapes.decide(graph.pool().eq(u, n)));  // taken to be false, which is checked when the size is known
  EXPECT_EQ(graph.env().assertions().size(), 1u);
  EXPECT_TRUE(shapes.broadcast({v}, {n}).ok());
  EXPECT_EQ(graph.env().assertions().size(), 2u);
  EXPECT_FALSE(shapes.broadcast({u}, {n}).ok());  // contradicts what was taken
  EXPECT_EQ(guards(), 0u);
}

TEST_F(OpsContext, WrapsDimensions) {
  EXPECT_EQ(*shapes.wrap_dim(c(-1), 3), 2);
  EXPECT_EQ(*shapes.wrap_dim(c(0), 0), 0);
  EXPECT_EQ(*shapes.wrap_dim(c(-1), 0), 0);
  EXPECT_FALSE(shapes.wrap_dim(c(3), 3).ok());
  EXPECT_FALSE(shapes.wrap_dim(c(1), 0).ok());
}

TEST_F(OpsContext, PointwiseStridesKeepDenseLayoutsWithoutGuards) {
  const ExprId b = symbol(2), s = symbol(7);
  const TensorType row_major = dense({b, s, c(64)}, {2, 1, 0});
  const TensorType permuted = dense({b, s, c(64)}, {2, 0, 1});
  EXPECT_EQ(shapes.pointwise_strides(row_major.sizes, {&row_major, &row_major}), row_major.strides);
  EXPECT_EQ(shapes.pointwise_strides(permuted.sizes, {&permuted, &permuted}), permuted.strides);
  EXPECT_EQ(shapes.pointwise_strides(permuted.sizes, {&permuted, nullptr}), permuted.strides);
  EXPECT_EQ(shapes.pointwise_strides(permuted.sizes, {&permuted, &row_major}), permuted.strides);
  EXPECT_EQ(shapes.pointwise_strides(permuted.sizes, {&row_major, &permuted}), row_major.strides);
  EXPECT_EQ(guards(), 0u);
}

TEST_F(OpsContext, BroadcastOperandsDoNotDecideTheOrder) {
  const ExprId n = symbol(2), h = symbol(9), w = symbol(11);
  const TensorType image = dense({n, c(3), h, w}, {1, 3, 2, 0});
  const TensorType bias = dense(cs({3, 1, 1}), {2, 1, 0});
  EXPECT_EQ(shapes.pointwise_strides(image.sizes, {&bias, &image}), image.strides);
  EXPECT_EQ(shapes.pointwise_strides(image.sizes, {&image, &bias}), image.strides);
  EXPECT_EQ(guards(), 0u);
}

TEST_F(OpsContext, HintsOfOneDoNotDisturbTheOrder) {
  const ExprId b = symbol(1), s = symbol(1);
  const TensorType x = dense({b, c(12), s, c(64)}, {3, 1, 2, 0});
  EXPECT_EQ(shapes.pointwise_strides(x.sizes, {&x, nullptr}), x.strides);
  EXPECT_EQ(guards(), 0u);
}

TEST_F(OpsContext, FreeStridesAreGuarded) {
  const ExprId n = symbol(5), stride = symbol(1000);
  const TensorType x{DType::F32, {}, {n, c(8)}, {stride, c(16)}};
  EXPECT_EQ(shapes.pointwise_strides(x.sizes, {&x, nullptr}), (Exprs{c(8), c(1)}));
  EXPECT_EQ(guards(), 1u);  // 16 < stride: another call may have it the other way round
}

TEST_F(OpsContext, LikeStridesCloseGaps) {
  const ExprId n = symbol(5);
  const TensorType sliced{DType::F32, {}, {n, c(4)}, {c(16), c(2)}};
  EXPECT_EQ(shapes.like_strides(sliced), (Exprs{c(4), c(1)}));
  const TensorType expanded{DType::F32, {}, {n, c(4)}, {c(0), c(1)}};
  EXPECT_EQ(shapes.like_strides(expanded), (Exprs{c(4), c(1)}));
  const TensorType transposed = dense({n, c(4)}, {0, 1});
  EXPECT_EQ(shapes.like_strides(transposed), transposed.strides);
}

TEST_F(OpsContext, SuggestsAFormat) {
  const ExprId n = symbol(2), h = symbol(9), w = symbol(11);
  EXPECT_EQ(shapes.suggest_format(dense({n, c(3), h, w}, {1, 3, 2, 0})), MemoryFormat::ChannelsLast);
  EXPECT_EQ(shapes.suggest_format(dense({n, c(3), h, w}, {3, 2, 1, 0})), MemoryFormat::Contiguous);
  EXPECT_EQ(shapes.suggest_format(dense(cs({4, 3, 1, 1}), {3, 2, 1, 0})), MemoryFormat::Contiguous);
  EXPECT_EQ(shapes.suggest_format(dense({n, c(3), h, w, w}, {1, 4, 3, 2, 0})), MemoryFormat::ChannelsLast3d);
  EXPECT_EQ(shapes.suggest_format(dense({n, c(3)}, {1, 0})), MemoryFormat::Contiguous);
  EXPECT_EQ(guards(), 0u);
}

TEST_F(OpsContext, BuilderAppendsThroughShapeRules) {
  const graph::ValueId x = graph.add_input(dense({symbol(3), c(4)}, {1, 0}), "x");
  GraphBuilder builder(graph);
  EXPECT_EQ(builder.cast(x, DType::F32), x);
  const graph::ValueId wide = builder.cast(x, DType::F64);
  EXPECT_EQ(graph.type(wide).dtype, DType::F64);
  EXPECT_EQ(graph.type(wide).sizes, graph.type(x).sizes);
  EXPECT_EQ(builder.appended().size(), 1u);
  EXPECT_THROW(builder.call("aten::no_such_operator", {}), InternalError);
}

}  // namespace
}  // namespace cresset::ops
