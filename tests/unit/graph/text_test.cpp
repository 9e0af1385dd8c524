#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "graph/graph.h"

namespace cresset::graph {
namespace {

TensorType matrix(Graph& graph, ExprId rows, int64_t columns, DType dtype = DType::F32) {
  sym::ExprPool& pool = graph.pool();
  return {dtype, {}, {rows, pool.constant(columns)}, {pool.constant(columns), pool.constant(1)}};
}

std::string reprinted(const std::string& text) {
  const auto graph = parse(text);
  return graph.ok() ? print(**graph) : describe(graph.fallback());
}

TEST(GraphText, PrintsANodeALine) {
  Graph graph(std::make_shared<sym::ShapeEnv>());
  const ExprId rows = graph.env().new_backed("x.size(0)", 8);
  const ValueId x = graph.add_input(matrix(graph, rows, 64), "x");
  graph.current_location = graph.add_location("model.py:42 in forward");
  const NodeId relu = graph.add_node(op_id("aten::relu"), {x}, {matrix(graph, rows, 64)});
  graph.outputs = {graph.node(relu).results[0]};
  EXPECT_EQ(print(graph),
            "symbol s0 8 [0, inf] dynamic \"x.size(0)\"\n"
            "%0: f32[s0, 64][64, 1] = input \"x\"\n"
            "# model.py:42 in forward\n"
            "%1: f32[s0, 64][64, 1] = aten::relu(%0*)\n"
            "return %1\n");
  EXPECT_EQ(verify(graph), "");
  EXPECT_EQ(reprinted(print(graph)), print(graph));
}

// The line of the program stands above what came from it, once; where it is not known, nothing is claimed.
TEST(GraphText, ShowsTheProgramsLines) {
  const std::string file = testing::TempDir() + "shows the: lines.py";
  std::ofstream(file) << "def f(x):\n    y = x.abs().neg()\n    return y\n";
  Graph graph(std::make_shared<sym::ShapeEnv>());
  const ValueId x = graph.add_input(matrix(graph, graph.pool().constant(2), 2), "x");
  const auto add = [&](std::string_view op, ValueId v) {
    return graph.node(graph.add_node(op_id(op), {v}, {graph.type(v)})).results[0];
  };
  graph.current_location = graph.add_location(file + ":2 in f");
  const ValueId y = add("aten::neg", add("aten::abs", x));
  graph.current_location = graph.add_location(file + ":9 in f");
  const ValueId z = add("aten::exp", y);
  graph.current_location = 0;
  graph.outputs = {add("aten::add", z), z};
  const std::string text = print(graph);
  EXPECT_NE(text.find("# " + file +
                      ":2 in f\n"
                      "#   y = x.abs().neg()\n"
                      "%1: f32[2, 2][2, 1] = aten::abs(%0*)\n"
                      "%2: f32[2, 2][2, 1] = aten::neg(%1*)\n"
                      "# " +
                      file +
                      ":9 in f\n"
                      "%3: f32[2, 2][2, 1] = aten::exp(%2*)\n"
                      "#\n"
                      "%4: f32[2, 2][2, 1] = aten::add(%3)\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(reprinted(text), text);
  const auto back = parse(text);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ((*back)->locations[(*back)->node((*back)->order[1]).location], file + ":2 in f");
  EXPECT_EQ((*back)->node((*back)->order[3]).location, 0);
}

TEST(GraphText, LastUsesKnowWhatLivesOn) {
  Graph graph(std::make_shared<sym::ShapeEnv>());
  const ValueId x = graph.add_input(matrix(graph, graph.pool().constant(2), 2), "x");
  const ValueId w = graph.add_input(matrix(graph, graph.pool().constant(2), 2), "w");
  const auto add = [&](std::vector<Arg> args) {
    return graph.node(graph.add_node(op_id("aten::add"), std::move(args), {graph.type(x)})).results[0];
  };
  const ValueId a = add({x, x});
  const ValueId b = add({a, w});
  const ValueId c = add({a, b});
  graph.outputs = {c};
  graph.mutations = {{0, false, b}};
  const std::vector<Arg> between{c, a};
  const std::string text = print(graph, std::vector<CallBetween>{{3, op_id("aten::nonzero"), &between, {w}}});
  EXPECT_NE(text.find("= aten::add(%0*, %0*)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("= aten::add(%2, %1*)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("= aten::add(%2, %3)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#   %1 = aten::nonzero(%4, %2*), then the rest\n"), std::string::npos) << text;
  EXPECT_TRUE(parse(text).ok());
}

TEST(GraphText, EveryArgumentKindSurvives) {
  Graph graph(std::make_shared<sym::ShapeEnv>());
  sym::ExprPool& pool = graph.pool();
  const ExprId rows = graph.env().new_backed("x.size(0)", 8, {2, 100}, sym::Policy::MarkedDynamic);
  const ExprId found = graph.env().new_unbacked("nonzero");
  graph.env().state_typical(graph.pool().var_of(rows), 64);
  const ValueId x = graph.add_input(matrix(graph, rows, 4), "x \"quoted\"");
  const ValueId w = graph.add_constant(matrix(graph, found, 4, DType::BF16), "layer.0.weight");
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<Arg> args{None{},
                        x,
                        std::vector<OptionalValue>{w, std::nullopt},
                        std::vector<OptionalValue>{},
                        pool.add(pool.mul(rows, found), pool.constant(-1)),
                        pool.constant(-3),
                        std::vector<ExprId>{rows, pool.floor_div(rows, pool.constant(2)), pool.min(rows, found)},
                        std::vector<ExprId>{},
                        0.1,
                        1.0,
                        -1e300,
                        -inf,
                        true,
                        std::vector<double>{2.0, inf},
                        std::vector<bool>{true, false},
                        std::string("line\nand \"quote\", \\ and ) ]"),
                        DType::F64,
                        Device{DeviceKind::Cuda, 1},
                        Device{},
                        MemoryFormat::ChannelsLast,
                        StridedLayout{}};
  TensorType on_cuda = matrix(graph, rows, 4);
  on_cuda.device = {DeviceKind::Cuda, 0};
  const NodeId node = graph.add_node(op_id("prim::everything"), std::move(args), {on_cuda, {}});
  graph.add_node(op_id("prim::nothing"), {}, {});
  graph.outputs = {graph.node(node).results[1], x};
  graph.mutations = {{0, false, x}, {0, true, w}};
  ASSERT_EQ(verify(graph), "");
  const std::string text = print(graph);
  EXPECT_EQ(reprinted(text), text);
  const auto back = parse(text);
  ASSERT_TRUE(back.ok());
  const Node& parsed = (*back)->node((*back)->order[0]);
  EXPECT_EQ(std::get<std::string>(parsed.args[15]), "line\nand \"quote\", \\ and ) ]");
  EXPECT_EQ(std::get<double>(parsed.args[8]), 0.1);
  EXPECT_TRUE(std::holds_alternative<double>(parsed.args[9]));
  EXPECT_TRUE(std::holds_alternative<ExprId>(parsed.args[5]));
  EXPECT_EQ((*back)->env().symbols()[0].policy, sym::Policy::MarkedDynamic);
  EXPECT_EQ((*back)->env().symbols()[0].typical, 64);
}

TEST(GraphText, NumbersDoNotDependOnWhatPassesLeftBehind) {
  Graph graph(std::make_shared<sym::ShapeEnv>());
  const ValueId x = graph.add_input(matrix(graph, graph.pool().constant(2), 2), "x");
  graph.add_node(op_id("aten::neg"), {x}, {graph.type(x)});
  const NodeId kept = graph.add_node(op_id("aten::abs"), {x}, {graph.type(x)});
  graph.order = {kept};
  graph.outputs = {graph.node(kept).results[0]};
  EXPECT_NE(print(graph).find("%1: f32[2, 2][2, 1] = aten::abs(%0*)"), std::string::npos);
}

TEST(GraphText, ErrorsNameTheLine) {
  const auto error = [](std::string_view text) { return parse(text).fallback().attempted; };
  EXPECT_EQ(error("%0: f32[2][1] = input \"x\"\n%1: f99[2][1] = aten::abs(%0)\nreturn %1\n"),
            "graph text, line 2, column 8: expected a dtype");
  EXPECT_EQ(error("return %0\n"), "graph text, line 1, column 10: expected a defined value");
  EXPECT_EQ(error("%0: f32[s9][1] = input \"x\"\n"), "graph text, line 1, column 11: expected an expression");
  EXPECT_NE(error("%0: f32[2][1] = input \"x\"\n").find("expected a return line"), std::string::npos);
}

TEST(GraphVerify, FindsUseBeforeDefinition) {
  Graph graph(std::make_shared<sym::ShapeEnv>());
  const ValueId x = graph.add_input(matrix(graph, graph.pool().constant(2), 2), "x");
  const NodeId a = graph.add_node(op_id("aten::neg"), {x}, {graph.type(x)});
  const NodeId b = graph.add_node(op_id("aten::abs"), {graph.node(a).results[0]}, {graph.type(x)});
  graph.outputs = {graph.node(b).results[0]};
  EXPECT_EQ(verify(graph), "");
  graph.order = {b, a};
  EXPECT_EQ(verify(graph), "aten::abs uses value 1 before its definition");
  graph.order = {a};
  EXPECT_EQ(verify(graph), "output 0 is not defined");
}

TEST(GraphVerify, FindsBadTypesAndMutations) {
  Graph graph(std::make_shared<sym::ShapeEnv>());
  const ValueId x = graph.add_input(matrix(graph, graph.pool().constant(2), 2), "x");
  const ValueId y = graph.add_input(matrix(graph, graph.pool().constant(3), 2), "y");
  graph.mutations = {{0, false, y}};
  EXPECT_EQ(verify(graph), "the mutation of leaf 0 changes its size in dimension 0");
  graph.mutations.clear();
  graph.value(x).type.strides.pop_back();
  EXPECT_EQ(verify(graph), "input 0 has 2 sizes and 1 strides");
}

TEST(OpNames, AreInterned) {
  EXPECT_EQ(op_id("aten::add.Tensor"), op_id(std::string("aten::add") + ".Tensor"));
  EXPECT_NE(op_id("aten::add.Tensor"), op_id("aten::add.Scalar"));
  EXPECT_EQ(op_name(op_id("aten::add.Scalar")), "aten::add.Scalar");
}

TEST(GraphHelpers, ContiguityIsProvedNotGuarded) {
  Graph graph(std::make_shared<sym::ShapeEnv>());
  sym::ExprPool& pool = graph.pool();
  const ExprId n = graph.env().new_backed("n", 1), m = graph.env().new_backed("m", 5);
  TensorType type{DType::F32, {}, {n, m, pool.constant(4)}, {}};
  type.strides = contiguous_strides(pool, type.sizes);
  EXPECT_EQ(type.strides[0], pool.mul(m, pool.constant(4)));
  EXPECT_TRUE(is_contiguous(graph.env(), type));
  EXPECT_EQ(numel(pool, type.sizes), pool.product(type.sizes));
  type.strides[0] = pool.constant(7);  // contiguous when n == 1, which is not known
  EXPECT_FALSE(is_contiguous(graph.env(), type));
  type.sizes[0] = pool.constant(1);
  EXPECT_TRUE(is_contiguous(graph.env(), type));
  EXPECT_TRUE(graph.env().guards().empty());
}

}  // namespace
}  // namespace cresset::graph
