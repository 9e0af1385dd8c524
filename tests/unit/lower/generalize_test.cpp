#include "lower/generalize.h"

#include <gtest/gtest.h>

#include <numeric>

namespace cresset::lower {
namespace {

using loop::Dim;
using loop::Kernel;
using sym::ExprId;

struct Sizes {
  int64_t rows, columns, offset;
};

// out[i, j] = in[i, j + offset] * scale[j], over [rows, columns]; `symbolic` leaves the rows a size symbol.
Kernel scaled_window(const Sizes& sizes, bool symbolic) {
  auto env = std::make_shared<sym::ShapeEnv>();
  sym::ExprPool& pool = env->pool();
  Kernel kernel(env);
  const ExprId rows = symbolic ? env->new_backed("x.size(0)", sizes.rows) : pool.constant(sizes.rows);
  const ExprId columns = pool.constant(sizes.columns);
  const ExprId i = env->new_index_var(rows), j = env->new_index_var(columns);
  kernel.dims = {{pool.var_of(i), rows, Dim::Kind::Outer}, {pool.var_of(j), columns, Dim::Kind::Outer}};
  kernel.buffers = {
      {DType::F32, false, true, "in"}, {DType::F32, false, true, "scale"}, {DType::F32, true, false, "out"}};
  loop::ScalarBuilder build(kernel);
  const ExprId width = pool.constant(sizes.columns + sizes.offset);
  const ExprId from = pool.add(pool.add(pool.mul(i, width), j), pool.constant(sizes.offset));
  const auto value = build.binary(loop::Op::Mul, build.load({0}, from), build.load({1}, j));
  kernel.stores = {{{2}, pool.add(pool.mul(i, columns), j), value}};
  return kernel;
}

std::vector<float> run(const Kernel& kernel, const std::vector<int64_t>& symbols, const Sizes& sizes) {
  const size_t width = static_cast<size_t>(sizes.columns + sizes.offset);
  std::vector<float> in(static_cast<size_t>(sizes.rows) * width), scale(static_cast<size_t>(sizes.columns));
  std::vector<float> out(static_cast<size_t>(sizes.rows * sizes.columns));
  std::iota(in.begin(), in.end(), 1.0f);
  std::iota(scale.begin(), scale.end(), 2.0f);
  void* buffers[] = {in.data(), scale.data(), out.data()};
  interpret(kernel, buffers, symbols.data());
  return out;
}

TEST(Generalize, KernelsThatDifferInSizesAreOne) {
  const GeneralKernel a = generalize(scaled_window({5, 96, 32}, true)),
                      b = generalize(scaled_window({7, 640, 128}, true));
  EXPECT_EQ(canonical_text(*a.kernel), canonical_text(*b.kernel)) << print(*a.kernel) << print(*b.kernel);
  EXPECT_EQ(verify(*a.kernel), "");
}

TEST(Generalize, ShortLoopsAndTinyStridesStayNumbers) {
  const GeneralKernel a = generalize(scaled_window({5, 3, 1}, true)), b = generalize(scaled_window({5, 7, 1}, true));
  EXPECT_NE(canonical_text(*a.kernel), canonical_text(*b.kernel));
}

TEST(Generalize, KernelsThatAreTheSameToTheLetterAreMadeOnce) {
  auto env = std::make_shared<sym::ShapeEnv>();
  const ExprId rows = env->new_backed("x.size(0)", 5), i = env->new_index_var(rows);
  const auto times = [&](double number) {
    auto kernel = std::make_shared<Kernel>(env);
    kernel->dims = {{env->pool().var_of(i), rows, Dim::Kind::Outer}};
    kernel->buffers = {{DType::F32, false, true, "in"}, {DType::F32, true, false, "out"}};
    loop::ScalarBuilder build(*kernel);
    const auto value = build.binary(loop::Op::Add, build.load({0}, i), build.constant(DType::F32, number));
    kernel->stores = {{{1}, i, value}};
    return kernel;
  };
  Generalized generalized;
  const auto first = generalized.of(times(2)).kernel;
  EXPECT_EQ(generalized.of(times(2)).kernel, first);
  EXPECT_NE(generalized.of(times(3)).kernel, first);
  EXPECT_NE(generalized.of(times(0.0)).kernel, generalized.of(times(-0.0)).kernel);
}

TEST(Generalize, TheArgumentsMakeItTheGivenKernel) {
  for (const Sizes& sizes : {Sizes{5, 96, 32}, Sizes{1, 17, 40}, Sizes{3, 3, 1}}) {
    const Kernel given = scaled_window(sizes, false);
    const GeneralKernel general = generalize(given);
    std::vector<int64_t> values;
    for (ExprId argument : general.arguments) values.push_back(given.env().pool().const_value(argument));
    EXPECT_EQ(run(*general.kernel, values, sizes), run(given, {}, sizes));
  }
}

}  // namespace
}  // namespace cresset::lower
