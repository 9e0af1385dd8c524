#include <gmock/gmock.h>

#include "op_fixture.h"

namespace cresset::ops::testing {
namespace {

class ConvTest : public OpTest {
 protected:
  std::vector<Arg> conv(ValueId x, ValueId w, int64_t stride, int64_t padding, bool transposed = false,
                        int64_t groups = 1) {
    return {x, w, None{}, ints({stride}), ints({padding}), ints({1}), transposed, ints({0}), n(groups)};
  }
};

TEST_F(ConvTest, SizesStaySymbolic) {
  const ExprId b = size("b", 2), h = size("h", 32);
  const ValueId x = input({b, n(3), h, n(32)}), w = input({n(8), n(3), n(3), n(3)});
  EXPECT_EQ(sizes(call("aten::convolution", conv(x, w, 1, 1))), text({b, n(8), h, n(32)}));
  const ValueId half = call("aten::convolution", conv(x, w, 2, 1));
  EXPECT_EQ(hints(graph_.type(half).sizes), (std::vector<int64_t>{2, 8, 16, 16}));
  EXPECT_EQ(refusal("aten::convolution", conv(x, input({n(8), n(4), n(3), n(3)}), 1, 1)),
            FallbackReason::InvalidArguments);
  EXPECT_EQ(refusal("aten::convolution", conv(x, input({n(8), n(3), n(99), n(3)}), 1, 1)),
            FallbackReason::InvalidArguments);
}

TEST_F(ConvTest, TransposedAndGrouped) {
  const ExprId h = size("h", 5);
  const ValueId x = input({n(1), n(4), h}), w = input({n(4), n(2), n(3)});
  const ValueId y = call("aten::convolution", conv(x, w, 2, 0, true, 2));
  EXPECT_EQ(sizes(y), text({n(1), n(4), graph_.pool().add(graph_.pool().mul(h, n(2)), n(1))}));
}

TEST_F(ConvTest, ChannelsLastOfEitherOperandCarriesOver) {
  const ExprId b = size("b", 2), h = size("h", 32);
  sym::ExprPool& pool = graph_.pool();
  const ExprId row = n(32 * 3);
  const ValueId last = strided_input({b, n(3), h, n(32)}, {pool.mul(h, row), n(1), row, n(3)});
  const ValueId first = input({b, n(3), h, n(32)}), w = input({n(8), n(3), n(1), n(1)});
  EXPECT_EQ(strides(call("aten::convolution", conv(last, w, 1, 0))), text({pool.mul(h, n(256)), n(1), n(256), n(8)}));
  EXPECT_EQ(strides(call("aten::convolution", conv(first, w, 1, 0))),
            text({pool.mul(h, n(256)), pool.mul(h, n(32)), n(32), n(1)}));
  const ValueId w_last = strided_input({n(8), n(3), n(3), n(3)}, {n(27), n(1), n(9), n(3)});
  EXPECT_EQ(strides(call("aten::convolution", conv(first, w_last, 1, 1))),
            text({pool.mul(h, n(256)), n(1), n(256), n(8)}));
}

TEST_F(ConvTest, PoolsRoundAsEagerDoes) {
  const auto pooled = [&](int64_t in, bool ceil) {
    return sizes(call("aten::avg_pool2d",
                      {input({n(1), n(1), n(in), n(in)}), ints({3}), ints({2}), ints({1}), ceil, true, None{}}));
  };
  EXPECT_EQ(pooled(7, false), "[1, 1, 4, 4]");
  EXPECT_EQ(pooled(8, false), "[1, 1, 4, 4]");
  EXPECT_EQ(pooled(8, true), "[1, 1, 5, 5]");
  const std::vector<ValueId> both =
      call_multi("aten::max_pool2d_with_indices",
                 {input({size("b", 2), n(4), n(9), n(9)}), ints({2, 2}), ints({}), ints({0}), ints({1}), true});
  EXPECT_EQ(hints(graph_.type(both[0]).sizes), (std::vector<int64_t>{2, 4, 5, 5}));
  EXPECT_EQ(graph_.type(both[1]).dtype, DType::I64);
}

TEST_F(ConvTest, NearestUpsamplingCopiesElements) {
  const ExprId w = size("w", 2);
  const ValueId x = input({n(1), n(1), w});
  const ValueId twice = call("aten::upsample_nearest1d", {x, list({graph_.pool().mul(w, n(2))}), 2.0});
  EXPECT_EQ(elements(twice), (std::vector<double>{0, 0, 1, 1}));
  const Evaluator evaluator(graph_, twice);
  const loop::Kernel& kernel = evaluator.kernel();
  EXPECT_TRUE(kernel.bindings.empty());  // index / 2, with nothing computed
  EXPECT_EQ(elements(call("aten::upsample_nearest1d", {input({n(1), n(1), n(3)}), ints({5}), None{}})),
            (std::vector<double>{0, 0, 1, 1, 2}));
}

}  // namespace
}  // namespace cresset::ops::testing
