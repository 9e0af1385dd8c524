// Extern calls: each kind of argument, out-variants, several results, lists, matrix products and convolutions.
#include "bridge/extern_kernels/extern_call.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <utility>

#include "bridge/program_builder.h"

namespace cresset::bridge {
namespace {

using runtime::ExternArg;
using runtime::Home;
using runtime::TensorId;
using TensorList = std::vector<std::optional<TensorId>>;

// A program of one operator over inputs of fixed sizes, with one Fresh (or Extern) result of the expected geometry.
struct OneCall {
  ProgramBuilder b;
  std::vector<at::Tensor> inputs;
  std::vector<TensorId> ids;

  TensorId in(const at::Tensor& t, DType dtype = DType::F32) {
    std::vector<sym::ExprId> sizes, strides;
    for (const int64_t n : t.sizes()) sizes.push_back(b.c(n));
    for (const int64_t n : t.strides()) strides.push_back(b.c(n));
    inputs.push_back(t);
    return b.input(sizes, strides, dtype);
  }
  TensorId result(const at::Tensor& like, DType dtype, Home home) {
    std::vector<sym::ExprId> sizes, strides;
    for (const int64_t n : like.sizes()) sizes.push_back(b.c(n));
    for (const int64_t n : like.strides()) strides.push_back(b.c(n));
    return b.slot(home, sizes, strides, dtype);
  }
  void expect(std::string_view op, std::vector<ExternArg> args, const at::Tensor& expected, DType dtype = DType::F32,
              double tolerance = 1e-5) {
    const TensorId fresh = result(expected, dtype, Home::Fresh);
    const TensorId returned = result(expected, dtype, Home::Extern);
    b.call(op, args, {fresh});
    b.call(op, args, {returned});
    const auto executor = b.build({fresh, returned});
    for (int round = 0; round < 40; ++round)  // every candidate of a race, and what follows it
      for (const at::Tensor& got : executor->run(inputs, {})) {
        EXPECT_EQ(got.strides(), expected.strides()) << op;
        EXPECT_TRUE(at::allclose(got, expected, tolerance, tolerance)) << op << " round " << round;
      }
  }
};

TEST(ExternCall, ScalarsOfEveryKind) {
  const at::Tensor x = at::randn({3});
  OneCall a;
  const TensorId ax = a.in(x);
  a.expect("aten::add.Scalar", {ax, 2.5, a.b.ref(2)}, at::add(x, 2.5, 2));
  OneCall c;
  const TensorId cx = c.in(x);
  c.expect("aten::clamp", {cx, graph::None{}, c.b.ref(0)}, at::clamp_max(x, 0));
  OneCall d;
  const TensorId dx = d.in(x);
  d.expect("aten::eq.Scalar", {dx, true}, at::eq(x, true), DType::Bool);
}

TEST(ExternCall, IntegerListsFlagsAndDtypes) {
  const at::Tensor x = at::randn({2, 3, 4});
  OneCall a;
  const TensorId ax = a.in(x);
  a.expect("aten::sum.dim_IntList", {ax, a.b.refs({0, 2}), true, DType::F64},
           at::sum(x, at::IntArrayRef({0, 2}), true, at::kDouble), DType::F64);
  OneCall b;
  const TensorId bx = b.in(x);
  b.expect("aten::sum.dim_IntList", {bx, graph::None{}, false, graph::None{}}, at::sum(x));
  OneCall c;
  const TensorId cx = c.in(x);
  c.expect("aten::mean.dim", {cx, c.b.refs({1}), false, graph::None{}}, at::mean(x, {1}));
}

TEST(ExternCall, DeviceLayoutAndMemoryFormat) {
  OneCall a;
  const TensorId ax = a.in(at::randn({2, 3, 4, 5}));
  const at::Tensor expected = a.inputs[0].to(at::kDouble).contiguous(at::MemoryFormat::ChannelsLast);
  a.expect("aten::_to_copy",
           {ax, DType::F64, graph::StridedLayout{}, graph::Device{}, false, false, graph::MemoryFormat::ChannelsLast},
           expected, DType::F64);
  OneCall b;
  b.expect("aten::full", {b.b.refs({2, 3}), 1.5, DType::F32, graph::StridedLayout{}, graph::Device{}, graph::None{}},
           at::full({2, 3}, 1.5));
}

TEST(ExternCall, StringsAndFloatLists) {
  OneCall a;
  const TensorId ax = a.in(at::randn({9}));
  a.expect("aten::gelu", {ax, std::string("tanh")}, at::gelu(a.inputs[0], "tanh"));
  OneCall b;
  const TensorId bx = b.in(at::randn({1, 2, 4, 4}));
  b.expect("aten::upsample_nearest2d.vec", {bx, graph::None{}, std::vector<double>{2.0, 2.0}},
           at::upsample_nearest2d(b.inputs[0], c10::OptionalArrayRef<int64_t>(),
                                  c10::optional<c10::ArrayRef<double>>(std::vector<double>{2.0, 2.0})));
}

TEST(ExternCall, ListsOfTensors) {
  const at::Tensor x = at::randn({2, 3});
  const at::Tensor y = at::randn({1, 3});
  OneCall a;
  const TensorId ax = a.in(x), ay = a.in(y);
  a.expect("aten::cat", {TensorList{ax, ay, ax}, a.b.ref(0)}, at::cat({x, y, x}));
  OneCall b;
  const at::Tensor index = at::tensor({1, 0, 1}, at::kLong);
  const TensorId bx = b.in(x), bi = b.in(index, DType::I64);
  const c10::List<std::optional<at::Tensor>> indices({std::nullopt, index});
  b.expect("aten::index.Tensor", {bx, TensorList{std::nullopt, bi}}, at::index(x, indices));
}

TEST(ExternCall, SeveralResultsSomeUnused) {
  ProgramBuilder b;
  const TensorId x = b.input({b.c(3), b.c(5)});
  const TensorId values = b.slot(Home::Fresh, {b.c(3)});
  const TensorId indices = b.slot(Home::Extern, {b.c(3)}, {}, DType::I64);
  b.call("aten::max.dim", {x, b.ref(1), false}, {values, TensorId{}});
  b.call("aten::max.dim", {x, b.ref(1), false}, {TensorId{}, indices});
  const auto executor = b.build({values, indices});
  const at::Tensor value = at::randn({3, 5});
  const auto results = executor->run({value}, {});
  const auto expected = at::max(value, 1);
  EXPECT_TRUE(at::equal(results[0], std::get<0>(expected)));
  EXPECT_TRUE(at::equal(results[1], std::get<1>(expected)));
}

TEST(ExternCall, AListResultIsOneTensorAnElement) {
  ProgramBuilder b;
  const TensorId x = b.input({b.c(4)});
  const TensorId first = b.slot(Home::Fresh, {b.c(2)});
  const TensorId second = b.slot(Home::Extern, {b.c(2)});
  b.call("aten::split_copy.Tensor", {x, b.ref(2), b.ref(0)}, {first, second});
  const auto executor = b.build({first, second});
  const at::Tensor value = at::randn({4});
  const auto results = executor->run({value}, {});
  EXPECT_TRUE(at::equal(results[0], value.slice(0, 0, 2)));
  EXPECT_TRUE(at::equal(results[1], value.slice(0, 2, 4)));
}

TEST(ExternCall, FindsRealOutVariantsOnly) {
  EXPECT_TRUE(AtenOp::find(graph::op_id("aten::add.Tensor")).out.has_value());
  EXPECT_TRUE(AtenOp::find(graph::op_id("aten::sum.dim_IntList")).out.has_value());
  EXPECT_TRUE(AtenOp::find(graph::op_id("aten::max.dim")).out.has_value());
  // Its out-variant is generated: it computes elsewhere and copies.
  EXPECT_FALSE(AtenOp::find(graph::op_id("aten::convolution")).out.has_value());
  EXPECT_EQ(AtenOp::find_or_null(graph::op_id("aten::no_such_operator")), nullptr);
}

TEST(ExternCall, MatrixProductsThroughEveryLibrary) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const DType type = dtype == at::kFloat ? DType::F32 : DType::BF16;
    const double tolerance = dtype == at::kFloat ? 1e-3 : 5e-2;
    const at::Tensor x = at::randn({96, 128}).to(dtype) * 0.2;
    const at::Tensor w = at::randn({80, 128}).to(dtype) * 0.2;
    const at::Tensor bias = at::randn({80}).to(dtype);
    OneCall a;
    const TensorId ax = a.in(x, type), aw = a.in(w.t(), type);
    a.expect("aten::mm", {ax, aw}, at::mm(x, w.t()), type, tolerance);
    OneCall b;
    const TensorId bb = b.in(bias, type), bx = b.in(x, type), bw = b.in(w.t(), type);
    b.expect("aten::addmm", {bb, bx, bw, b.b.ref(1), b.b.ref(1)}, at::addmm(bias, x, w.t()), type, tolerance);
    OneCall c;
    const TensorId cb = c.in(bias, type), cx = c.in(x, type), cw = c.in(w.t().contiguous(), type);
    c.expect("aten::addmm", {cb, cx, cw, 0.5, c.b.ref(2)}, at::addmm(bias, x, w.t(), 0.5, 2), type, tolerance);
    OneCall d;
    const at::Tensor p = at::randn({6, 64, 70}).to(dtype) * 0.2, q = at::randn({6, 65, 70}).to(dtype) * 0.2;
    const TensorId dp = d.in(p, type), dq = d.in(q.transpose(1, 2), type);
    d.expect("aten::bmm", {dp, dq}, at::bmm(p, q.transpose(1, 2)), type, tolerance);
    OneCall e;
    const at::Tensor s = at::randn({6, 64, 65}).to(dtype);
    const TensorId es = e.in(s, type), ep = e.in(p, type), eq = e.in(q.transpose(1, 2), type);
    e.expect("aten::baddbmm", {es, ep, eq, e.b.ref(1), e.b.ref(1)}, at::baddbmm(s, p, q.transpose(1, 2)), type,
             tolerance);
  }
}

TEST(ExternCall, ProductsOfOneRowOrColumn) {
  for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1000}, {700, 1}, {2, 1000}}) {
    const at::Tensor x = at::randn({m, 2048}), w = at::randn({n, 2048}) * 0.1, bias = at::randn({n});
    for (const at::Tensor& b : {w.t(), w.t().contiguous()}) {
      OneCall a;
      const TensorId ab = a.in(bias), ax = a.in(x), aw = a.in(b);
      a.expect("aten::addmm", {ab, ax, aw, a.b.ref(1), a.b.ref(1)}, at::addmm(bias, x, b), DType::F32, 1e-3);
    }
  }
}

TEST(ExternCall, SmallProductsOfEveryLayout) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {1, 16, 16}, {3, 17, 33}, {5, 1, 7}, {2, 70, 9}, {1, 64, 64}, {4, 3, 1}, {0, 4, 4}, {3, 4, 0}}) {
    const at::Tensor x = at::randn({m, k}), w = at::randn({k, n}), bias = at::randn({n});
    if (k > 20) w.select(0, k - 10).select(0, 0).fill_(infinity);
    for (const at::Tensor& b : {w, w.t().contiguous().t()}) {
      OneCall plain;
      const TensorId px = plain.in(x), pw = plain.in(b);
      plain.expect("aten::mm", {px, pw}, at::mm(x, b), DType::F32, 1e-4);
      OneCall biased;
      const TensorId bb = biased.in(bias), bx = biased.in(x), bw = biased.in(b);
      biased.expect("aten::addmm", {bb, bx, bw, biased.b.ref(1), biased.b.ref(1)}, at::addmm(bias, x, b), DType::F32,
                    1e-4);
    }
  }
}

// Whole rows, at places that an index names for all of a row; and what only looks so.
TEST(ExternCall, GatherOfRows) {
  const at::Tensor x = at::randn({3, 5, 4, 16}), index = at::randint(0, 5, {3, 7, 1, 1}, at::kLong);
  const auto expect = [](const at::Tensor& self, int64_t dim, const at::Tensor& chosen) {
    OneCall one;
    const TensorId s = one.in(self), i = one.in(chosen, DType::I64);
    one.expect("aten::gather", {s, one.b.ref(dim), i, false}, at::gather(self, dim, chosen));
  };
  expect(x, 1, index.expand({3, 7, 4, 16}));
  expect(x, -3, index.expand({3, 7, 4, 16}));
  expect(x, 1, index.expand({3, 7, 4, 16}).contiguous());
  expect(x, 1, index.expand({3, 7, 4, 9}));
  expect(x, 1, index.slice(0, 0, 2).expand({2, 7, 4, 16}));
  expect(x.transpose(0, 1), 0, index.transpose(0, 1).expand({7, 3, 4, 16}));
  expect(x.transpose(2, 3), 1, index.expand({3, 7, 16, 4}));
  expect(x, 0, at::randint(0, 3, {8, 1, 1, 1}, at::kLong).expand({8, 5, 4, 16}));
  expect(at::randn({4, 6, 1, 32}), 1, at::randint(0, 6, {4, 2, 1, 1}, at::kLong).expand({4, 2, 1, 32}));
  expect(x, 3, at::randint(0, 16, {3, 5, 4, 1}, at::kLong));
}

TEST(ExternCall, GatherOutOfRangeRaises) {
  const at::Tensor x = at::randn({5, 32});
  for (const int64_t wrong : {5, -1}) {
    OneCall one;
    const TensorId s = one.in(x), i = one.in(at::full({2, 1}, wrong, at::kLong).expand({2, 32}), DType::I64);
    const TensorId out = one.result(x.slice(0, 0, 2), DType::F32, Home::Fresh);
    one.b.call("aten::gather", {s, one.b.ref(0), i, false}, {out});
    const auto executor = one.b.build({out});
    EXPECT_THROW(executor->run(one.inputs, {}), c10::Error);
  }
}

// Single elements in lines longer than what is looked at together: from the front, from the end, and at other steps.
TEST(ExternCall, IndexedElementsOfLongLines) {
  const at::Tensor x = at::randn({40, 3}), front = at::randint(0, 40, {1100, 3}, at::kLong);
  const auto expect = [](const at::Tensor& self, int64_t dim, const at::Tensor& chosen) {
    OneCall gathered, added;
    const TensorId s = gathered.in(self), i = gathered.in(chosen, DType::I64);
    gathered.expect("aten::gather", {s, gathered.b.ref(dim), i, false}, at::gather(self, dim, chosen));
    const at::Tensor source = at::randint(-9, 9, chosen.sizes()).to(at::kFloat);
    const TensorId to = added.in(self), at = added.in(chosen, DType::I64), from = added.in(source);
    added.expect("aten::scatter_add", {to, added.b.ref(dim), at, from}, at::scatter_add(self, dim, chosen, source));
  };
  expect(x, 0, front);
  expect(x, 0, front.t().contiguous().t());
  expect(x, 0, front.slice(0, 0, 1100, 2));
  expect(x.t().contiguous(), 1, front.t().contiguous());
  expect(x.t(), 1, front.t());
  expect(x, 0, front.select(1, 0).unsqueeze(1).expand({1100, 3}));
  expect(x.select(1, 0), 0, front.select(1, 1));
  for (const at::Tensor& both : {front.select(1, 0) - 20, front.select(1, 1) % 20 - 20}) {
    OneCall one;
    const TensorId s = one.in(x.select(1, 0)), i = one.in(both, DType::I64);
    one.expect("aten::index.Tensor", {s, std::vector<std::optional<TensorId>>{i}}, x.select(1, 0).index({both % 40}));
  }
}

// Wherever in a line the wrong place is, and whatever its bits are.
TEST(ExternCall, OnePlaceOutOfRangeRaises) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  const at::Tensor x = at::randn({40});
  const auto raises = [&](bool wraps, int64_t where, int64_t wrong) {
    const at::Tensor index = at::randint(0, 40, {1100}, at::kLong);
    index[where].fill_(wrong);
    OneCall one;
    const TensorId s = one.in(x), i = one.in(index, DType::I64);
    const TensorId out = one.result(at::empty({1100}), DType::F32, Home::Fresh);
    if (wraps)
      one.b.call("aten::index.Tensor", {s, std::vector<std::optional<TensorId>>{i}}, {out});
    else
      one.b.call("aten::gather", {s, one.b.ref(0), i, false}, {out});
    const auto executor = one.b.build({out});
    EXPECT_ANY_THROW(executor->run(one.inputs, {})) << where << ": " << wrong;
  };
  for (const int64_t where : {0, 511, 512, 700, 1099}) {
    for (const int64_t wrong : {int64_t{40}, kMost, kMost - 39, kLeast, kLeast + 39}) {
      raises(false, where, wrong);
      raises(true, where, wrong);
    }
    raises(false, where, -1);
    raises(true, where, -41);
  }
}

TEST(ExternCall, ConvolutionsThroughEveryLibrary) {
  for (const at::MemoryFormat format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = at::randn({2, 8, 14, 14}).contiguous(format);
    const at::Tensor w = at::randn({12, 4, 3, 3}) * 0.2, bias = at::randn({12});
    const at::Tensor expected = at::convolution(x, w, bias, {2, 2}, {1, 1}, {1, 1}, false, {0, 0}, 2);
    OneCall a;
    const TensorId ax = a.in(x), aw = a.in(w), ab = a.in(bias);
    a.expect("aten::convolution",
             {ax, aw, ab, a.b.refs({2, 2}), a.b.refs({1, 1}), a.b.refs({1, 1}), false, a.b.refs({0, 0}), a.b.ref(2)},
             expected, DType::F32, 1e-3);
  }
}

// The image and the result in either order of memory, one as large beside its weight as the other is small.
TEST(ExternCall, ConvolutionsBetweenOrdersOfMemory) {
  constexpr at::MemoryFormat kFirst = at::MemoryFormat::Contiguous, kLast = at::MemoryFormat::ChannelsLast;
  for (const int64_t side : {3, 20})
    for (const at::MemoryFormat from : {kFirst, kLast})
      for (const at::MemoryFormat to : {kFirst, kLast})
        for (const bool relu : {false, true}) {
          const at::Tensor x = at::randn({2, 16, side, side + 1}).contiguous(from);
          const at::Tensor w = at::randn({24, 16, 3, 3}) * 0.2, bias = at::randn({24});
          const at::Tensor made = at::convolution(x, w, bias, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1).contiguous(to);
          OneCall a;
          const TensorId ax = a.in(x), aw = a.in(w), ab = a.in(bias);
          std::vector<ExternArg> args{
              ax, aw, ab, a.b.refs({1, 1}), a.b.refs({1, 1}), a.b.refs({1, 1}), false, a.b.refs({0, 0}), a.b.ref(1)};
          if (relu) args.push_back(std::string("relu"));
          a.expect(relu ? "prim::convolution_epilogue" : "aten::convolution", args, relu ? at::relu(made) : made,
                   DType::F32, 1e-3);
        }
}

TEST(ExternCall, ConvolutionsOfVolumesBetweenOrdersOfMemory) {
  const at::Tensor x = at::randn({2, 16, 5, 6, 7}), w = at::randn({24, 16, 3, 3, 3}) * 0.2;
  for (const at::MemoryFormat to : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast3d}) {
    OneCall a;
    const TensorId ax = a.in(x), aw = a.in(w);
    a.expect("aten::convolution",
             {ax, aw, graph::None{}, a.b.refs({1, 1, 1}), a.b.refs({1, 1, 1}), a.b.refs({1, 1, 1}), false,
              a.b.refs({0, 0, 0}), a.b.ref(1)},
             at::conv3d(x, w, {}, 1, 1).contiguous(to), DType::F32, 1e-3);
  }
}

TEST(ExternCall, PointConvolutionsAsProducts) {
  for (const bool biased : {false, true}) {
    const at::Tensor x = at::randn({2, 24, 9, 7}).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor w = at::randn({40, 24, 1, 1}), bias = at::randn({40});
    const std::optional<at::Tensor> b = biased ? std::optional<at::Tensor>(bias) : std::nullopt;
    const at::Tensor expected = at::relu(at::convolution(x, w, b, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1));
    OneCall a;
    const TensorId ax = a.in(x), aw = a.in(w), ab = a.in(bias);
    a.expect("prim::convolution_epilogue",
             {ax, aw, biased ? ExternArg(ab) : ExternArg(graph::None{}), a.b.refs({1, 1}), a.b.refs({0, 0}),
              a.b.refs({1, 1}), false, a.b.refs({0, 0}), a.b.ref(1), std::string("relu")},
             expected, DType::F32, 1e-3);
  }
}

TEST(ExternCall, Epilogues) {
  const std::vector<std::pair<std::string, std::function<at::Tensor(const at::Tensor&)>>> posts = {
      {"relu", [](const at::Tensor& t) { return at::relu(t); }},
      {"gelu", [](const at::Tensor& t) { return at::gelu(t); }},
      {"gelu_tanh", [](const at::Tensor& t) { return at::gelu(t, "tanh"); }},
      {"silu", [](const at::Tensor& t) { return at::silu(t); }},
      {"sigmoid", [](const at::Tensor& t) { return at::sigmoid(t); }},
      {"tanh", [](const at::Tensor& t) { return at::tanh(t); }},
      {"hardswish", [](const at::Tensor& t) { return at::hardswish(t); }},
      {"hardsigmoid", [](const at::Tensor& t) { return at::hardsigmoid(t); }},
  };
  const at::Tensor x = at::randn({70, 128}), w = at::randn({80, 128}) * 0.2, bias = at::randn({80});
  const at::Tensor image = at::randn({1, 8, 14, 14}), filter = at::randn({16, 8, 3, 3}) * 0.2;
  for (const auto& [name, post] : posts) {
    SCOPED_TRACE(name);
    OneCall a;
    const TensorId ab = a.in(bias), ax = a.in(x), aw = a.in(w.t());
    a.expect("prim::linear_epilogue", {ab, ax, aw, name}, post(at::addmm(bias, x, w.t())), DType::F32, 1e-3);
    OneCall b;
    const TensorId bx = b.in(x), bw = b.in(w.t());
    b.expect("prim::linear_epilogue", {graph::None{}, bx, bw, name}, post(at::mm(x, w.t())), DType::F32, 1e-3);
    OneCall c;
    const TensorId ci = c.in(image), cf = c.in(filter);
    c.expect("prim::convolution_epilogue",
             {ci, cf, graph::None{}, c.b.refs({1, 1}), c.b.refs({1, 1}), c.b.refs({1, 1}), false, c.b.refs({0, 0}),
              c.b.ref(1), name},
             post(at::convolution(image, filter, {}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1)), DType::F32, 1e-3);
  }
}

}  // namespace
}  // namespace cresset::bridge
