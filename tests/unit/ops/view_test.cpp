#include <gmock/gmock.h>

#include "op_fixture.h"
#include "ops/view_groups.h"

namespace cresset::ops::testing {
namespace {

using ::testing::ElementsAre;

class ViewTest : public OpTest {};

TEST_F(ViewTest, DividesPolynomials) {
  sym::ExprPool& pool = graph_.pool();
  const ExprId b = size("b", 8), s = size("s", 5);
  const ExprId product = pool.mul(pool.add(s, n(1)), pool.add(pool.mul(b, s), n(3)));
  EXPECT_EQ(divide_exactly(pool, product, pool.add(s, n(1))), pool.add(pool.mul(b, s), n(3)));
  EXPECT_EQ(divide_exactly(pool, pool.mul(n(32), pool.mul(b, s)), pool.mul(n(8), s)), pool.mul(n(4), b));
  EXPECT_EQ(divide_exactly(pool, pool.add(b, n(1)), s), std::nullopt);
  EXPECT_EQ(divide_exactly(pool, pool.mul(n(3), s), pool.mul(n(2), s)), std::nullopt);
  EXPECT_EQ(divide_exactly(pool, b, n(0)), std::nullopt);
}

TEST_F(ViewTest, SplitsHeadsWithoutGuards) {
  const ExprId b = size("b", 2), s = size("s", 3);
  const ValueId x = input({b, s, n(12)});
  const ValueId y = call("aten::view", {x, list({b, s, n(4), n(3)})});
  EXPECT_EQ(strides(y), text({graph_.pool().mul(s, n(12)), n(12), n(3), n(1)}));
  const ValueId back = call("aten::view", {y, list({b, s, n(12)})});
  EXPECT_EQ(guards(), 0u);
  EXPECT_EQ(elements(back), elements(call("aten::alias", {x})));
}

TEST_F(ViewTest, InfersMinusOne) {
  const ExprId b = size("b", 2), s = size("s", 3);
  const ValueId x = input({b, s, n(12)});
  EXPECT_EQ(sizes(call("aten::view", {x, list({n(-1), n(12)})})), text({graph_.pool().mul(b, s), n(12)}));
  EXPECT_EQ(sizes(call("aten::view", {x, list({b, s, n(-1), n(6)})})), text({b, s, n(2), n(6)}));
  EXPECT_EQ(refusal("aten::view", {x, list({n(-1), n(7)})}), FallbackReason::InvalidArguments);
  EXPECT_EQ(refusal("aten::view", {x, list({n(-1), n(-1)})}), FallbackReason::InvalidArguments);
}

TEST_F(ViewTest, BlocksOfADimensionAreWhole) {
  sym::ExprPool& pool = graph_.pool();
  const ExprId b = size("b", 2), h = size("h", 16), w = size("w", 6);
  const ExprId eighths = pool.floor_div(h, n(8)), halves = pool.floor_div(w, n(2));
  call("aten::view", {input({b, h, w}), list({b, eighths, n(8), halves, n(2)})});
  EXPECT_EQ(guards(), 2u);
  EXPECT_TRUE(env_->known_equal(pool.mul(eighths, n(8)), h));
  EXPECT_TRUE(env_->known_equal(pool.mul(halves, n(2)), w));
  EXPECT_EQ(refusal("aten::view", {input({b, w}), list({b, pool.floor_div(w, n(4)), n(4)})}),
            FallbackReason::InvalidArguments);
}

TEST_F(ViewTest, RefusesStridesThatDoNotMerge) {
  const ExprId b = size("b", 2), s = size("s", 3);
  const ValueId x = input({b, s, n(4), n(6)});
  const ValueId t = call("aten::transpose.int", {x, n(1), n(2)});
  EXPECT_EQ(refusal("aten::view", {t, list({b, n(4), graph_.pool().mul(s, n(6))})}), FallbackReason::InvalidArguments);
  // Splitting a dimension never needs a merge.
  const ValueId split = call("aten::view", {t, list({b, n(4), s, n(2), n(3)})});
  EXPECT_EQ(strides(split), text({graph_.pool().mul(s, n(24)), n(6), n(24), n(3), n(1)}));
}

TEST_F(ViewTest, ReshapeIndexOfHeadsIsAffine) {
  const ExprId b = size("b", 2), s = size("s", 3);
  const Index index{env_->new_index_var(b), env_->new_index_var(s), env_->new_index_var(n(4)),
                    env_->new_index_var(n(3))};
  const Index split = reshape_index(*env_, {b, s, n(12)}, {b, s, n(4), n(3)}, index);
  EXPECT_EQ(split[0], index[0]);
  EXPECT_EQ(split[1], index[1]);
  EXPECT_EQ(split[2], graph_.pool().add(graph_.pool().mul(index[2], n(3)), index[3]));
  // Flattening and splitting again is the identity.
  const ExprId rows = graph_.pool().mul(b, s);
  const Index flat = reshape_index(*env_, {rows, n(12)}, {b, s, n(12)}, {index[0], index[1], index[2]});
  EXPECT_EQ(reshape_index(*env_, {b, s, n(12)}, {rows, n(12)}, flat), (Index{index[0], index[1], index[2]}));
}

// Also where an extent may be 0: no element has a place then.
TEST_F(ViewTest, ReshapeIndexThereAndBackIsTheIdentity) {
  const ExprId rows = size("rows", 4), columns = size("columns", 6);
  const Index index{env_->new_index_var(rows), env_->new_index_var(columns)};
  const Index turned = reshape_index(*env_, {columns, rows}, {rows, columns}, index);
  EXPECT_EQ(reshape_index(*env_, {rows, columns}, {columns, rows}, turned), index);
}

TEST_F(ViewTest, PermutesAndTransposes) {
  const ValueId x = input({n(2), n(3), n(4)});
  const ValueId p = call("aten::permute", {x, ints({2, 0, -2})});
  EXPECT_EQ(sizes(p), "[4, 2, 3]");
  EXPECT_EQ(strides(p), "[1, 12, 4]");
  EXPECT_EQ(elements(p)[1 * 6 + 1 * 3 + 2], 1 * 12 + 2 * 4 + 1);
  EXPECT_EQ(refusal("aten::permute", {x, ints({0, 0, 1})}), FallbackReason::InvalidArguments);
  EXPECT_THAT(elements(call("aten::t", {input({n(2), n(3)})})), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(ViewTest, ExpandPrefersEqualityToPinning) {
  const ExprId s = size("s", 5), t = size("t", 5);
  const ValueId x = input({n(1), s});
  const ValueId y = call("aten::expand", {x, list({n(3), t}), false});
  EXPECT_EQ(strides(y), "[0, 1]");
  EXPECT_TRUE(env_->known_equal(s, t));
  EXPECT_FALSE(env_->range(s).is_point());
  EXPECT_THAT(elements(call("aten::expand", {input({n(1), n(2)}), ints({2, 2, -1}), false})),
              ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_EQ(refusal("aten::expand", {x, list({n(3), n(7)}), false}), FallbackReason::InvalidArguments);
}

TEST_F(ViewTest, SqueezesAndUnsqueezes) {
  const ExprId s = size("s", 5);
  const ValueId x = input({s, n(1), n(3)});
  EXPECT_EQ(sizes(call("aten::squeeze.dim", {x, n(1)})), text({s, n(3)}));
  EXPECT_EQ(guards(), 0u);
  EXPECT_EQ(sizes(call("aten::squeeze", {x})), text({s, n(3)}));
  EXPECT_EQ(guards(), 1u);  // s != 1
  const ValueId y = call("aten::unsqueeze", {x, n(-1)});
  EXPECT_EQ(sizes(y), text({s, n(1), n(3), n(1)}));
  EXPECT_EQ(strides(call("aten::unsqueeze", {x, n(0)})), text({graph_.pool().mul(s, n(3)), n(3), n(3), n(1)}));
}

}  // namespace
}  // namespace cresset::ops::testing
