#include "ops/shape_memo.h"

#include "op_fixture.h"

namespace cresset::ops::testing {
namespace {

class ShapeMemoTest : public OpTest {
 protected:
  const ShapeMemo::Entry* find(std::string_view op, std::vector<Arg> args) {
    return memo_.find(graph_, graph::op_id(op), args);
  }
  // Whether the call is new; it is answered with `rank` dimensions of size 1 from then on.
  bool fresh(std::string_view op, std::vector<Arg> args, size_t rank = 0) {
    if (find(op, std::move(args)) != nullptr) return false;
    memo_.add({{{DType::F32, {}, std::vector<ExprId>(rank, n(1)), std::vector<ExprId>(rank, n(1))}}});
    return true;
  }
  ShapeMemo memo_;
};

TEST_F(ShapeMemoTest, AnswersForOtherValuesOfTheSameType) {
  const ExprId s = size("s", 5);
  EXPECT_TRUE(fresh("aten::relu", {input({s, n(3)})}, 2));
  const ShapeMemo::Entry* again = find("aten::relu", {input({s, n(3)})});
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->types[0].rank(), 2u);
}

TEST_F(ShapeMemoTest, TellsCallsApart) {
  const ExprId s = size("s", 5);
  const ValueId x = input({s, n(3)});
  EXPECT_TRUE(fresh("aten::relu", {x}));
  EXPECT_TRUE(fresh("aten::neg", {x}));
  EXPECT_TRUE(fresh("aten::relu", {input({s, n(4)})}));
  EXPECT_TRUE(fresh("aten::relu", {input({s, n(3)}, DType::F64)}));
  EXPECT_TRUE(fresh("aten::relu", {strided_input({s, n(3)}, {n(1), s})}));
  EXPECT_TRUE(fresh("aten::relu", {input({s})}));
  EXPECT_EQ(memo_.size(), 6u);
}

TEST_F(ShapeMemoTest, TellsArgumentsApart) {
  const ValueId x = input({n(3)});
  const std::vector<std::vector<Arg>> calls = {{},
                                               {None{}},
                                               {x},
                                               {x, None{}},
                                               {n(1)},
                                               {1.0},
                                               {true},
                                               {false},
                                               {graph::MemoryFormat::Contiguous},
                                               {graph::MemoryFormat::Preserve},
                                               {graph::StridedLayout{}},
                                               {DType::F32},
                                               {graph::Device{}},
                                               {std::string("floor")},
                                               {std::string("trunc")},
                                               {list({})},
                                               {list({n(1)})},
                                               {list({n(1), n(2)})},
                                               {list({n(1)}), list({n(2)})},
                                               {std::vector<double>{1.0}},
                                               {std::vector<bool>{true}},
                                               {std::vector<bool>{true, false}},
                                               {std::vector<graph::OptionalValue>{x}},
                                               {std::vector<graph::OptionalValue>{x, std::nullopt}},
                                               {std::vector<graph::OptionalValue>{std::nullopt, x}}};
  for (const std::vector<Arg>& args : calls) EXPECT_TRUE(fresh("aten::add.Tensor", args));
  for (const std::vector<Arg>& args : calls) EXPECT_FALSE(fresh("aten::add.Tensor", args));
}

// A miss is told by what differs from the operator's last call.
TEST_F(ShapeMemoTest, TellsWhyItMisses) {
  const ExprId s = size("s", 5);
  const auto misses = [&](MemoMiss why) { return memo_.misses()[static_cast<size_t>(why)]; };
  const auto call = [&](std::vector<Arg> args) { return fresh("aten::sum", std::move(args)); };
  EXPECT_TRUE(call({input({s, n(3)}), n(1)}));
  EXPECT_EQ(misses(MemoMiss::First), 1);
  EXPECT_FALSE(call({input({s, n(3)}), n(1)}));
  EXPECT_TRUE(call({input({s, n(3)}), n(0)}));
  EXPECT_EQ(misses(MemoMiss::Scalar), 1);
  EXPECT_TRUE(call({input({s, n(4)}), n(0)}));
  EXPECT_EQ(misses(MemoMiss::Size), 1);
  EXPECT_TRUE(call({strided_input({s, n(4)}, {n(1), s}), n(0)}));
  EXPECT_EQ(misses(MemoMiss::Stride), 1);
  EXPECT_TRUE(call({input({s, n(4)}, DType::F64), n(0)}));
  EXPECT_TRUE(call({input({s}), n(0)}));
  EXPECT_TRUE(call({input({s})}));
  EXPECT_EQ(misses(MemoMiss::Tensors), 3);
  EXPECT_TRUE(fresh("aten::neg", {input({s})}));
  EXPECT_EQ(misses(MemoMiss::First), 2);
}

TEST_F(ShapeMemoTest, KeepsThousands) {
  for (int64_t i = 0; i < 3000; ++i) EXPECT_TRUE(fresh("aten::relu", {input({n(i)})}, size_t(i % 5)));
  for (int64_t i = 0; i < 3000; ++i) {
    const ShapeMemo::Entry* known = find("aten::relu", {input({n(i)})});
    ASSERT_NE(known, nullptr);
    EXPECT_EQ(known->types[0].rank(), size_t(i % 5));
  }
}

}  // namespace
}  // namespace cresset::ops::testing
