#include <gmock/gmock.h>

#include "op_fixture.h"

namespace cresset::ops::testing {
namespace {

using ::testing::ElementsAre;

class SliceTest : public OpTest {
 protected:
  ValueId slice(ValueId x, int64_t dim, Arg start, Arg end, int64_t step = 1) {
    return call("aten::slice.Tensor", {x, n(dim), std::move(start), std::move(end), n(step)});
  }
};

TEST_F(SliceTest, WholeIsFree) {
  const ExprId s = size("s", 5);
  const ValueId x = input({s, n(3)});
  EXPECT_EQ(sizes(slice(x, 0, n(0), n(INT64_MAX))), sizes(x));
  EXPECT_EQ(sizes(slice(x, 0, None{}, s)), sizes(x));
  EXPECT_EQ(guards(), 0u);
}

TEST_F(SliceTest, StaysSymbolic) {
  const ExprId s = size("s", 5);
  const ValueId x = input({s});
  EXPECT_EQ(sizes(slice(x, 0, n(1), n(INT64_MAX))), text({graph_.pool().sub(s, n(1))}));
  EXPECT_EQ(sizes(slice(x, 0, None{}, n(-1))), text({graph_.pool().sub(s, n(1))}));
  EXPECT_FALSE(env_->range(s).is_point());
}

TEST_F(SliceTest, ClampsAsEagerDoes) {
  const ValueId x = input({n(5)});
  EXPECT_THAT(elements(slice(x, 0, n(-3), n(100))), ElementsAre(2, 3, 4));
  EXPECT_THAT(elements(slice(x, 0, n(-100), n(2))), ElementsAre(0, 1));
  EXPECT_THAT(elements(slice(x, 0, n(0), n(5), 2)), ElementsAre(0, 2, 4));
  EXPECT_EQ(sizes(slice(x, 0, n(4), n(2))), "[0]");
  EXPECT_EQ(sizes(slice(x, 0, n(9), n(12))), "[0]");
  EXPECT_EQ(refusal("aten::slice.Tensor", {x, n(0), None{}, None{}, n(0)}), FallbackReason::InvalidArguments);
}

TEST_F(SliceTest, UnbackedEndIsClampedByExpression) {
  const ExprId u = env_->new_unbacked("u");
  const ValueId y = slice(input({n(5)}), 0, n(0), u);
  EXPECT_EQ(sizes(y), text({graph_.pool().min(u, n(5))}));
  EXPECT_EQ(guards(), 0u);
}

TEST_F(SliceTest, SelectsFromTheEnd) {
  const ExprId s = size("s", 4);
  const ValueId x = input({s, n(3)});
  EXPECT_THAT(elements(call("aten::select.int", {x, n(0), n(-1)})), ElementsAre(9, 10, 11));
  EXPECT_THAT(elements(call("aten::select.int", {x, n(1), n(1)})), ElementsAre(1, 4, 7, 10));
  EXPECT_EQ(refusal("aten::select.int", {x, n(1), n(3)}), FallbackReason::InvalidArguments);
}

TEST_F(SliceTest, SplitsWithARest) {
  const ExprId s = size("s", 5);
  const std::vector<ValueId> parts = call_multi("aten::split.Tensor", {input({s}), n(2), n(0)});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(sizes(parts[2]), text({graph_.pool().sub(s, n(4))}));
  EXPECT_THAT(elements(parts[2]), ElementsAre(4));
  EXPECT_FALSE(env_->range(s).is_point());  // 5 and 6 split alike
  const std::vector<ValueId> heads = call_multi("aten::split_with_sizes", {input({n(2), n(3)}), ints({1, 2}), n(-1)});
  EXPECT_THAT(elements(heads[1]), ElementsAre(1, 2, 4, 5));
  const std::vector<ValueId> rows = call_multi("aten::unbind.int", {input({n(2), n(3)}), n(0)});
  EXPECT_THAT(elements(rows[1]), ElementsAre(3, 4, 5));
}

TEST_F(SliceTest, DiagonalUnfoldAsStrided) {
  const ValueId x = input({n(3), n(4)});
  EXPECT_THAT(elements(call("aten::diagonal", {x, n(1), n(0), n(1)})), ElementsAre(1, 6, 11));
  EXPECT_THAT(elements(call("aten::diagonal", {x, n(-1), n(0), n(1)})), ElementsAre(4, 9));
  const ValueId windows = call("aten::unfold", {input({n(5)}), n(0), n(3), n(2)});
  EXPECT_EQ(strides(windows), "[2, 1]");
  EXPECT_THAT(elements(windows), ElementsAre(0, 1, 2, 2, 3, 4));
  EXPECT_THAT(elements(call("aten::as_strided", {x, ints({2, 3}), ints({1, 4}), n(1)})),
              ElementsAre(1, 5, 9, 2, 6, 10));
}

TEST_F(SliceTest, AsStridedWalksMemoryNotDimensions) {
  const ExprId b = size("b", 2);
  const ValueId last = strided_input({b, n(3), n(2), n(1)}, {n(6), n(1), n(3), n(3)});
  EXPECT_THAT(elements(call("aten::as_strided", {last, ints({5}), ints({1}), None{}})), ElementsAre(0, 1, 2, 3, 4));
}

}  // namespace
}  // namespace cresset::ops::testing
