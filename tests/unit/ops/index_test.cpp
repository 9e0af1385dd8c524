#include <gmock/gmock.h>

#include "op_fixture.h"

namespace cresset::ops::testing {
namespace {

class IndexTest : public OpTest {
 protected:
  ValueId index(ValueId x, std::vector<graph::OptionalValue> indices) {
    return call("aten::index.Tensor", {x, indices});
  }
};

TEST_F(IndexTest, NeighbouringIndicesStayInPlace) {
  const ExprId b = size("b", 2), s = size("s", 3);
  const ValueId x = input({b, n(5), n(6), n(7)}), i = input({s, n(1)}, DType::I64), j = input({n(4)}, DType::I64);
  EXPECT_EQ(sizes(index(x, {std::nullopt, i, j})), text({b, s, n(4), n(7)}));
  EXPECT_EQ(sizes(index(x, {i, std::nullopt, j})), text({s, n(4), n(5), n(7)}));
  EXPECT_EQ(sizes(index(x, {std::nullopt, std::nullopt, j})), text({b, n(5), n(4), n(7)}));
}

TEST_F(IndexTest, MasksDependOnData) {
  const ValueId x = input({n(4)}), mask = input({n(4)}, DType::Bool);
  EXPECT_EQ(refusal("aten::index.Tensor", {x, std::vector<graph::OptionalValue>{mask}}), FallbackReason::DataDependent);
  EXPECT_EQ(refusal("aten::nonzero", {x}), FallbackReason::DataDependent);
}

TEST_F(IndexTest, EmbeddingGatherSort) {
  const ExprId b = size("b", 2), s = size("s", 3);
  const ValueId weight = input({n(100), n(16)}), ids = input({b, s}, DType::I64);
  EXPECT_EQ(sizes(call("aten::embedding", {weight, ids, n(-1), false, false})), text({b, s, n(16)}));
  EXPECT_EQ(sizes(call("aten::gather", {input({b, n(9)}), n(1), ids, false})), text({b, s}));
  EXPECT_EQ(refusal("aten::gather", {input({b, n(9)}), n(1), weight, false}), FallbackReason::InvalidArguments);
  const ValueId t = call("aten::t", {input({b, s})});
  EXPECT_EQ(strides(call_multi("aten::sort", {t, n(-1), false})[0]), strides(t));
  EXPECT_EQ(sizes(call_multi("aten::topk", {t, n(2), n(0), true, true})[1]), text({n(2), b}));
  EXPECT_EQ(graph_.type(call("aten::cumsum", {input({b}, DType::Bool), n(0), None{}})).dtype, DType::I64);
}

}  // namespace
}  // namespace cresset::ops::testing
