#include "loop/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "loop/analysis.h"

namespace cresset::loop {
namespace {

// A kernel over `outer` x `inner` symbolic extents with a scalar builder.
struct Fixture {
  std::shared_ptr<sym::ShapeEnv> env = std::make_shared<sym::ShapeEnv>();
  Kernel kernel{env};
  ScalarBuilder b{kernel};
  sym::ExprPool& pool = env->pool();

  ExprId dim(ExprId extent, Dim::Kind kind) {
    const ExprId var = env->new_index_var(extent);
    kernel.dims.push_back({pool.var_of(var), extent, kind});
    return var;
  }
  BufferId buffer(DType dtype, bool written = false) {
    kernel.buffers.push_back({dtype, written, !written, ""});
    return {static_cast<uint32_t>(kernel.buffers.size() - 1)};
  }
};

TEST(LoopKernel, EqualScalarsAreOne) {
  Fixture f;
  const ScalarId x = f.b.constant(DType::F32, 2);
  EXPECT_EQ(x, f.b.constant(DType::F32, 2));
  EXPECT_NE(f.b.constant(DType::F32, 0.0), f.b.constant(DType::F32, -0.0));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(f.b.constant(DType::F32, nan), f.b.constant(DType::F32, nan));
}

TEST(LoopKernel, BuilderFolds) {
  Fixture f;
  const BufferId in = f.buffer(DType::F32), half = f.buffer(DType::BF16);
  const ScalarId x = f.b.load(in, f.pool.constant(0)), h = f.b.load(half, f.pool.constant(0));
  EXPECT_EQ(f.b.binary(Op::Mul, x, f.b.constant(DType::F32, 1)), x);
  EXPECT_EQ(f.b.binary(Op::Add, f.b.constant(DType::F32, 1), f.b.constant(DType::F32, 2)), f.b.constant(DType::F32, 3));
  EXPECT_EQ(f.b.cast(x, DType::F32), x);
  EXPECT_EQ(f.b.cast(f.b.cast(x, DType::F64), DType::F32), x);
  EXPECT_EQ(f.b.cast(h, DType::BF16), h);
  EXPECT_NE(f.b.cast(x, DType::BF16), x);
  EXPECT_EQ(f.b.select(f.b.constant_int(DType::Bool, 1), x, h), x);
  EXPECT_EQ(f.b.constant(DType::F32, 0.1), f.b.cast(f.b.constant(DType::F64, 0.1), DType::F32));
  EXPECT_EQ(f.b.size(f.pool.constant(7)), f.b.constant_int(DType::I64, 7));
}

TEST(LoopKernel, SoftmaxRuns) {
  Fixture f;
  const ExprId rows = f.env->new_backed("x.size(0)", 3), cols = f.env->new_backed("x.size(1)", 5);
  const ExprId i = f.dim(rows, Dim::Kind::Outer), j = f.dim(cols, Dim::Kind::Inner);
  const BufferId in = f.buffer(DType::F32), out = f.buffer(DType::F32, true);
  const ExprId address = f.pool.add(f.pool.mul(i, cols), j);
  const ScalarId x = f.b.load(in, address);
  const ScalarId e = f.b.unary(Op::Exp, f.b.binary(Op::Sub, x, f.b.reduce(Combine::Max, x)));
  const ScalarId y = f.b.binary(Op::Div, e, f.b.reduce(Combine::Sum, e));
  f.kernel.stores.push_back({out, address, y});
  EXPECT_EQ(verify(f.kernel), "");
  EXPECT_EQ(analyze(f.kernel).stages, 2);
  ASSERT_EQ(f.kernel.size_symbols().size(), 2u);

  std::vector<float> x_data(15), y_data(15);
  for (int k = 0; k < 15; ++k) x_data[k] = static_cast<float>(std::sin(k));
  void* buffers[] = {x_data.data(), y_data.data()};
  const int64_t symbols[] = {3, 5};
  interpret(f.kernel, buffers, symbols);
  for (int r = 0; r < 3; ++r) {
    double total = 0;
    for (int c = 0; c < 5; ++c) total += std::exp(static_cast<double>(x_data[r * 5 + c]));
    for (int c = 0; c < 5; ++c)
      EXPECT_NEAR(y_data[r * 5 + c], std::exp(static_cast<double>(x_data[r * 5 + c])) / total, 1e-6);
  }
}

TEST(LoopKernel, ArgMaxTakesTheFirstAndNaNWins) {
  Fixture f;
  const ExprId n = f.env->new_backed("x.size(0)", 4);
  const ExprId j = f.dim(n, Dim::Kind::Inner);
  const BufferId in = f.buffer(DType::F32), out = f.buffer(DType::I64, true);
  f.kernel.stores.push_back({out, f.pool.constant(0), f.b.reduce(Combine::ArgMax, f.b.load(in, j))});
  ASSERT_EQ(verify(f.kernel), "");
  int64_t result = -1;
  auto run = [&](std::vector<float> data) {
    void* buffers[] = {data.data(), &result};
    const int64_t size = static_cast<int64_t>(data.size());
    interpret(f.kernel, buffers, &size);
    return result;
  };
  EXPECT_EQ(run({1, 3, 3, 2}), 1);
  EXPECT_EQ(run({1, NAN, 3, NAN}), 1);
  EXPECT_EQ(run({-INFINITY, -INFINITY}), 0);
}

TEST(LoopKernel, IndirectLoadAndMask) {
  Fixture f;
  const ExprId n = f.env->new_backed("index.size(0)", 4);
  const ExprId i = f.dim(n, Dim::Kind::Outer);
  const BufferId index = f.buffer(DType::I64), table = f.buffer(DType::F32), out = f.buffer(DType::F32, true);
  const ScalarId at = f.b.load(index, i);
  const ScalarId valid = f.b.binary(Op::Ge, at, f.b.constant_int(DType::I64, 0));
  const ExprId address = f.pool.add(f.b.bind_index(at), f.pool.constant(1));
  f.kernel.stores.push_back({out, i, f.b.load(table, address, valid)});
  ASSERT_EQ(verify(f.kernel), "");
  int64_t indices[] = {2, -100, 0, 1};
  float values[] = {9, 10, 20, 30}, result[4];
  void* buffers[] = {indices, values, result};
  const int64_t size = 4;
  interpret(f.kernel, buffers, &size);
  EXPECT_THAT(result, testing::ElementsAre(30, 0, 10, 20));
}

TEST(LoopKernel, VerifierNamesWhatIsWrong) {
  Fixture f;
  const BufferId in = f.buffer(DType::F32);
  const ScalarId x = f.b.load(in, f.pool.var(f.pool.new_var()));
  EXPECT_THAT(verify(f.kernel), testing::HasSubstr("unknown variable"));
  Fixture g;
  const BufferId out = g.buffer(DType::F32, true);
  g.kernel.stores.push_back({out, g.pool.constant(0), g.b.constant_int(DType::I32, 1)});
  EXPECT_THAT(verify(g.kernel), testing::HasSubstr("store of another dtype"));
  (void)x;
}

// The same kernel in pools whose variables were numbered differently has one text.
TEST(LoopKernel, CanonicalTextIgnoresNumbering) {
  auto build = [](bool shifted) {
    Fixture f;
    if (shifted) {
      for (int k = 0; k < 5; ++k) f.env->new_backed("other", 100 + k);
    }
    ExprId cols, rows;
    if (shifted)
      cols = f.env->new_backed("x.size(1)", 5), rows = f.env->new_backed("x.size(0)", 3);
    else
      rows = f.env->new_backed("x.size(0)", 3), cols = f.env->new_backed("x.size(1)", 5);
    const ExprId i = f.dim(rows, Dim::Kind::Outer), j = f.dim(cols, Dim::Kind::Outer);
    const BufferId in = f.buffer(DType::F32), out = f.buffer(DType::F32, true);
    const ExprId address = f.pool.add(f.pool.mul(i, cols), j);
    f.kernel.stores.push_back({out, address, f.b.unary(Op::Exp, f.b.load(in, address))});
    return canonical_text(f.kernel);
  };
  EXPECT_EQ(build(false), build(true));
}

}  // namespace
}  // namespace cresset::loop
