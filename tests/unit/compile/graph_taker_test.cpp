// Another compiler takes the nodes of a graph: its values and symbols are the arguments, what leaves the graph the
// results.
#include "compile/graph_taker.h"

#include "harness.h"

namespace cresset::test {
namespace {

TEST(GraphTaker, ReplacesAllNodesByOne) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), h = f.number(4);
  const ValueId x = f.input({b, h}), unused = f.input({h});
  const ValueId product = f.call("aten::mul.Tensor", {x, x});
  const ValueId sum = f.call("aten::add.Tensor", {product, x, b});
  f.graph->outputs = {sum, x};
  f.graph->mutations.push_back({.input = 0, .value = product});

  const driver::Boundary boundary = driver::boundary(*f.graph);
  EXPECT_EQ(boundary.values, std::vector<ValueId>{x});
  EXPECT_EQ(boundary.symbols, std::vector<ExprId>{b});
  EXPECT_EQ(boundary.results, (std::vector<ValueId>{sum, product}));

  driver::replace_nodes(*f.graph, "test::run", 7, boundary);
  ASSERT_EQ(f.graph->order.size(), 1u);
  const graph::Node& node = f.graph->node(f.graph->order[0]);
  EXPECT_EQ(graph::op_name(node.op), "test::run");
  EXPECT_EQ(node.results, boundary.results);
  EXPECT_EQ(f.graph->value(product).node, f.graph->order[0]);
  EXPECT_EQ(f.graph->value(product).result, 1u);
  EXPECT_EQ(f.graph->outputs, (std::vector<ValueId>{sum, x}));
  EXPECT_EQ(graph::verify(*f.graph), "");
  EXPECT_EQ(f.graph->value(unused).kind, graph::Value::Kind::Input);
}

TEST(GraphTaker, StridesCountForPositionsInMemory) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), h = f.size("H", 4);
  const ValueId x = f.input({b, h});
  f.graph->outputs = {
      f.call("aten::as_strided", {x, std::vector{f.number(2)}, std::vector{f.number(1)}, graph::None{}})};
  EXPECT_EQ(driver::boundary(*f.graph).symbols, std::vector<ExprId>{h});
}

}  // namespace
}  // namespace cresset::test
