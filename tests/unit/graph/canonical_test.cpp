#include "graph/canonical.h"

#include <gtest/gtest.h>

namespace cresset::graph {
namespace {

// relu of x: f32[n, m]; `extra` symbols are made before m and pinned; m itself is a symbol that was pinned to 8, or 8.
std::string key(int extra, bool m_is_pinned, int64_t hint = 5) {
  auto env = std::make_shared<sym::ShapeEnv>();
  sym::ExprPool& pool = env->pool();
  const auto pin = [&](ExprId e) {
    env->evaluate(pool.eq(e, pool.constant(8)), [] { return sym::Reason{"aten::view", "model.py:3"}; });
  };
  const ExprId n = env->new_backed("x.size(0)", hint);
  for (int i = 0; i < extra; ++i) pin(env->new_backed("ints[" + std::to_string(i) + "]", 8));
  ExprId m = pool.constant(8);
  if (m_is_pinned) m = env->new_backed("x.size(1)", 8);
  const ExprId k = env->new_backed("y.size(0)", hint + 1);
  Graph graph(env);
  const ValueId x = graph.add_input({DType::F32, {}, {n, m}, {m, pool.constant(1)}}, m_is_pinned ? "x" : "other");
  const ValueId y = graph.add_input({DType::F32, {}, {k}, {pool.constant(1)}}, "y");
  graph.current_location = graph.add_location("model.py:" + std::to_string(extra));
  const NodeId relu = graph.add_node(op_id("aten::relu"), {x}, {{DType::F32, {}, {n, m}, {m, pool.constant(1)}}});
  if (m_is_pinned) pin(m);
  graph.outputs = {graph.node(relu).results[0], y};
  env->name_by_source();
  return canonical_text(graph);
}

TEST(Canonical, SymbolsThatWereTriedAndPinnedLeaveNoTrace) {
  EXPECT_EQ(key(0, false), key(3, false));
  EXPECT_EQ(key(0, false), key(0, true));
  EXPECT_EQ(key(0, false), key(3, true));
}

TEST(Canonical, HintsAndLinesAreNotPartOfIt) {
  EXPECT_EQ(key(0, false, 5), key(0, false, 700));
  EXPECT_EQ(key(0, false).find("model.py"), std::string::npos);
}

TEST(Canonical, WhatIsKnownOfSizesIsPartOfIt) {
  const auto with = [](std::vector<int> order, bool guards) {
    auto env = std::make_shared<sym::ShapeEnv>();
    sym::ExprPool& pool = env->pool();
    const ExprId a = env->new_backed("x.size(0)", 6), b = env->new_backed("x.size(1)", 9);
    for (const int which : order) {
      const ExprId condition = which == 0 ? pool.ge(a, pool.constant(2)) : pool.le(b, pool.constant(90));
      if (guards) env->evaluate(condition, [] { return sym::Reason{}; });
    }
    Graph graph(env);
    const ValueId x = graph.add_input({DType::F32, {}, {a, b}, {b, pool.constant(1)}}, "x");
    graph.outputs = {x};
    env->name_by_source();
    return canonical_text(graph);
  };
  EXPECT_EQ(with({0, 1}, true), with({1, 0}, true));
  EXPECT_NE(with({0, 1}, true), with({0}, true));
  EXPECT_NE(with({0, 1}, true), with({0, 1}, false));
}

}  // namespace
}  // namespace cresset::graph
