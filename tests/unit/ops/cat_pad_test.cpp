#include <gmock/gmock.h>

#include "op_fixture.h"

namespace cresset::ops::testing {
namespace {

using ::testing::ElementsAre;

class PadTest : public OpTest {};

TEST_F(PadTest, CatSumsSizesAndPassesOverEmptyVectors) {
  const ExprId s = size("s", 3), t = size("t", 4);
  const ValueId a = input({n(2), s}), b = input({n(2), t}), empty = input({n(0)});
  const auto cat = [&](std::vector<graph::OptionalValue> parts, int64_t dim) {
    return call("aten::cat", {parts, n(dim)});
  };
  EXPECT_EQ(sizes(cat({empty, a, b}, -1)), text({n(2), graph_.pool().add(s, t)}));
  EXPECT_EQ(sizes(cat({empty}, 0)), "[0]");
  EXPECT_EQ(graph_.type(cat({a, input({n(2), s}, DType::F64)}, 0)).dtype, DType::F64);
  EXPECT_EQ(refusal("aten::cat", {std::vector<graph::OptionalValue>{a, input({n(3), n(3), n(3)})}, n(0)}),
            FallbackReason::InvalidArguments);
}

TEST_F(PadTest, CatKeepsChannelsLastOnlyWhenAllAre) {
  const std::vector<ExprId> shape{size("b", 2), n(3), n(4), n(5)};
  sym::ExprPool& pool = graph_.pool();
  const ValueId last = strided_input(shape, {n(60), n(1), n(15), n(3)}), first = input(shape);
  const std::vector<graph::OptionalValue> same{last, last}, mixed{last, first};
  EXPECT_EQ(strides(call("aten::cat", {same, n(1)})), text({n(120), n(1), n(30), n(6)}));
  EXPECT_EQ(strides(call("aten::cat", {mixed, n(1)})), text({n(120), pool.constant(20), n(5), n(1)}));
}

TEST_F(PadTest, StackDecomposes) {
  const ValueId a = input({n(2), n(3)});
  const std::vector<graph::OptionalValue> parts{a, a};
  const ValueId stacked = call("aten::stack", {parts, n(-1)});
  EXPECT_EQ(sizes(stacked), "[2, 3, 2]");
  const OpDef* def = find("aten::stack");
  const auto values = def->decompose(graph_, OpArgs(graph_, graph_.node(graph_.value(stacked).node).args));
  EXPECT_EQ(sizes(values.value()[0]), "[2, 3, 2]");
}

TEST_F(PadTest, PadsAndCuts) {
  const ExprId s = size("s", 3);
  const ValueId x = input({s});
  EXPECT_THAT(elements(call("aten::constant_pad_nd", {x, ints({2, 1}), 7.5})), ElementsAre(7.5, 7.5, 0, 1, 2, 7.5));
  EXPECT_THAT(elements(call("aten::constant_pad_nd", {x, ints({-1, 2}), n(9)})), ElementsAre(1, 2, 9, 9));
  EXPECT_THAT(elements(call("aten::constant_pad_nd", {input({n(1), n(2)}), ints({0, 1, 1, 0}), n(5)})),
              ElementsAre(5, 5, 5, 0, 1, 5));
  EXPECT_FALSE(env_->range(s).is_point());
}

TEST_F(PadTest, PadOfNothingReadsWithoutConditions) {
  const ValueId x = input({size("b", 2), n(3)});
  const ValueId y = call("aten::constant_pad_nd", {x, ints({0, 0, 0, 0}), 0.0});
  const Evaluator evaluator(graph_, y);
  const loop::Kernel& kernel = evaluator.kernel();
  for (const loop::Scalar& scalar : kernel.scalars) EXPECT_NE(scalar.op, loop::Op::Select);
}

TEST_F(PadTest, RollsFlipsRepeats) {
  const ExprId s = size("s", 4);
  const ValueId x = input({s});
  EXPECT_THAT(elements(call("aten::roll", {x, ints({1}), ints({0})})), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(elements(call("aten::roll", {x, ints({-9}), ints({0})})), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(elements(call("aten::flip", {x, ints({-1})})), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(elements(call("aten::repeat", {input({n(2)}), ints({2, 2})})), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_EQ(sizes(call("aten::repeat", {x, ints({3})})), text({graph_.pool().mul(s, n(3))}));
}

TEST_F(PadTest, Triangles) {
  const ValueId x = input({n(2), n(3)});
  EXPECT_THAT(elements(call("aten::tril", {x, n(0)})), ElementsAre(0, 0, 0, 3, 4, 0));
  EXPECT_THAT(elements(call("aten::triu", {x, n(1)})), ElementsAre(0, 1, 2, 0, 0, 5));
}

TEST_F(PadTest, Scatters) {
  const ValueId x = input({n(5)}), src = input({n(2)});
  EXPECT_THAT(elements(call("aten::slice_scatter", {x, src, n(0), n(1), n(5), n(2)})), ElementsAre(0, 0, 2, 1, 4));
  EXPECT_THAT(elements(call("aten::slice_scatter", {x, src, n(0), n(-2), None{}, n(1)})), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(elements(call("aten::select_scatter", {input({n(2), n(3)}), input({n(2)}), n(1), n(-1)})),
              ElementsAre(0, 1, 0, 3, 4, 1));
  EXPECT_EQ(refusal("aten::slice_scatter", {x, src, n(0), n(0), n(5), n(1)}), FallbackReason::InvalidArguments);
}

}  // namespace
}  // namespace cresset::ops::testing
