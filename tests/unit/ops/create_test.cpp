#include <gmock/gmock.h>

#include "op_fixture.h"

namespace cresset::ops::testing {
namespace {

using ::testing::ElementsAre;

class CreateTest : public OpTest {
 protected:
  DType dtype(ValueId v) { return graph_.type(v).dtype; }
  // Options: dtype, layout, device, pin_memory.
  std::vector<Arg> with_options(std::vector<Arg> args, Arg dtype = None{}) {
    args.push_back(std::move(dtype));
    for (int i = 0; i < 3; ++i) args.push_back(None{});
    return args;
  }
};

TEST_F(CreateTest, NumbersGiveTheirDtypes) {
  const Arg shape = ints({2});
  EXPECT_EQ(dtype(call("aten::full", with_options({shape, true}))), DType::Bool);
  EXPECT_EQ(dtype(call("aten::full", with_options({shape, n(3)}))), DType::I64);
  EXPECT_EQ(dtype(call("aten::full", with_options({shape, 3.0}))), DType::F32);
  EXPECT_EQ(dtype(call("aten::scalar_tensor", with_options({n(3)}))), DType::F32);
  EXPECT_THAT(elements(call("aten::full", with_options({shape, n(3)}))), ElementsAre(3, 3));
  EXPECT_THAT(elements(call("aten::ones", with_options({shape}, DType::Bool))), ElementsAre(1, 1));
}

TEST_F(CreateTest, RangesStaySymbolic) {
  const ExprId s = size("s", 5);
  const ValueId whole = call("aten::arange", with_options({s}));
  EXPECT_EQ(sizes(whole), text({s}));
  EXPECT_EQ(dtype(whole), DType::I64);
  EXPECT_EQ(guards(), 0u);
  EXPECT_THAT(elements(call("aten::arange.start", with_options({n(2), s}))), ElementsAre(2, 3, 4));
  EXPECT_THAT(elements(call("aten::arange.start_step", with_options({n(7), n(0), n(-3)}))), ElementsAre(7, 4, 1));
  EXPECT_THAT(elements(call("aten::arange.start_step", with_options({n(0), n(2), 0.5}))), ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_EQ(refusal("aten::arange.start", with_options({n(3), n(1)})), FallbackReason::InvalidArguments);
}

TEST_F(CreateTest, Linspace) {
  EXPECT_THAT(elements(call("aten::linspace", with_options({n(0), n(1), n(5)}))), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_THAT(elements(call("aten::linspace", with_options({3.0, 1.0, n(1)}))), ElementsAre(3));
}

TEST_F(CreateTest, EyeAndLike) {
  EXPECT_THAT(elements(call("aten::eye.m", with_options({n(2), n(3)}))), ElementsAre(1, 0, 0, 0, 1, 0));
  const ValueId x = call("aten::t", {input({n(2), n(3)})});
  std::vector<Arg> args = with_options({x, n(4)});
  args.push_back(None{});
  const ValueId like = call("aten::full_like", args);
  EXPECT_EQ(strides(like), "[1, 3]");
  args.back() = graph::MemoryFormat::Contiguous;
  EXPECT_EQ(strides(call("aten::full_like", args)), "[2, 1]");
}

}  // namespace
}  // namespace cresset::ops::testing
