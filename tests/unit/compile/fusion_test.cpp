// Whole programs, fused against unfused, at several sizes of one compilation.
#include "harness.h"

namespace cresset::test {
namespace {

const std::vector<Symbols> kSizes = {
    {{"B", 3}, {"S", 5}}, {{"B", 1}, {"S", 5}}, {{"B", 3}, {"S", 1}}, {{"B", 1}, {"S", 1}},
    {{"B", 2}, {"S", 7}}, {{"B", 0}, {"S", 5}}, {{"B", 4}, {"S", 9}},
};

TEST(Fusion, SoftmaxIsOneKernel) {
  GraphFixture f;
  const ValueId x = f.input({f.size("B", 3), f.size("S", 5)});
  f.graph->outputs = {f.softmax(x, -1)};
  EXPECT_EQ(expect_fusion_agrees(f, kSizes), 1u);
}

TEST(Fusion, SoftmaxOverAnOuterDimensionIsOneKernel) {
  GraphFixture f;
  const ValueId x = f.input({f.size("B", 3), f.size("S", 5), f.number(6)});
  f.graph->outputs = {f.softmax(x, 1)};
  EXPECT_EQ(expect_fusion_agrees(f, kSizes), 1u);
}

TEST(Fusion, ResidualAndLayerNormAreOneKernel) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), s = f.size("S", 5), h = f.number(16);
  const ValueId x = f.input({b, s, h}), y = f.input({b, s, h}), w = f.input({h}), bias = f.input({h});
  const ValueId sum = f.add(x, y);
  f.graph->outputs = {sum, f.layer_norm(sum, h, w, bias)};
  EXPECT_EQ(expect_fusion_agrees(f, kSizes), 1u);
}

TEST(Fusion, ALinearLayersBiasGeluAndNormFuseThroughReshapes) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), s = f.size("S", 5), h = f.number(16);
  const ValueId x = f.input({b, s, h}), weight = f.input({h, h}), bias = f.input({h}), gain = f.input({h});
  const ValueId flat = f.view(x, {f.env->pool().mul(b, s), h});
  const ValueId product = f.call("aten::addmm", {bias, flat, f.call("aten::t", weight), f.number(1), f.number(1)});
  const ValueId back = f.view(product, {b, s, h});
  f.graph->outputs = {f.layer_norm(f.add(f.gelu(back), x), h, gain, bias)};
  EXPECT_EQ(expect_fusion_agrees(f, kSizes), 1u);
}

TEST(Fusion, AttentionNeedsNoCopies) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), s = f.size("S", 5), heads = f.number(2), width = f.number(4);
  sym::ExprPool& pool = f.env->pool();
  const auto split = [&](ValueId v) { return f.permute(f.view(v, {b, s, heads, width}), {0, 2, 1, 3}); };
  const ValueId q = split(f.input({b, s, f.number(8)})), k = split(f.input({b, s, f.number(8)}));
  const ValueId mask = f.input({b, f.number(1), f.number(1), s});
  const ExprId batch = pool.mul(b, heads);
  const ValueId kt = f.permute(k, {0, 1, 3, 2});
  const ValueId q3 = f.view(f.call("aten::clone", {q, graph::MemoryFormat::Contiguous}), {batch, s, width});
  const ValueId k3 = f.view(f.call("aten::clone", {kt, graph::MemoryFormat::Contiguous}), {batch, width, s});
  const ValueId scores = f.view(f.call("aten::bmm", {q3, k3}), {b, heads, s, s});
  f.graph->outputs = {f.softmax(f.add(scores, mask), -1)};
  EXPECT_EQ(expect_fusion_agrees(f, kSizes), 3u);
}

TEST(Fusion, GroupNorm) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), c = f.number(8), hw = f.number(6);
  const ValueId x = f.input({b, c, hw}), w = f.input({c}), bias = f.input({c});
  f.graph->outputs = {f.build.call_multi("aten::native_group_norm", {x, w, bias, b, c, hw, f.number(2), 1e-5})[0]};
  EXPECT_EQ(expect_fusion_agrees(f, kSizes), 1u);
}

TEST(Fusion, ReshapeAndPermuteChains) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), s = f.size("S", 5), n = f.number(12);
  const ValueId x = f.input({b, s, n});
  const ValueId a = f.permute(f.view(x, {b, s, f.number(3), f.number(4)}), {0, 2, 3, 1});
  const ValueId r = f.call("aten::relu", a);
  const ValueId back = f.permute(r, {0, 3, 1, 2});
  f.graph->outputs = {f.add(f.view(f.call("aten::clone", {back, graph::MemoryFormat::Contiguous}), {b, s, n}), x), r};
  expect_fusion_agrees(f, kSizes);
}

TEST(Fusion, ConcatenationWritesWindows) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), s = f.size("S", 5);
  const ValueId x = f.input({b, s}), y = f.input({b, f.number(2)});
  const ValueId joined =
      f.call("aten::cat", {std::vector<graph::OptionalValue>{f.call("aten::relu", x), y, x}, f.number(1)});
  f.graph->outputs = {f.call("aten::neg", joined), joined};
  expect_fusion_agrees(f, kSizes);
}

TEST(Fusion, RotateHalf) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), s = f.size("S", 5);
  const ValueId x = f.input({b, s, f.number(8)}), cos = f.input({s, f.number(8)}), sin = f.input({s, f.number(8)});
  const auto half = [&](int64_t from, int64_t to) {
    return f.call("aten::slice.Tensor", {x, f.number(2), f.number(from), f.number(to), f.number(1)});
  };
  const ValueId rotated = f.call(
      "aten::cat", {std::vector<graph::OptionalValue>{f.call("aten::neg", half(4, 8)), half(0, 4)}, f.number(-1)});
  f.graph->outputs = {f.add(f.mul(x, cos), f.mul(rotated, sin))};
  EXPECT_EQ(expect_fusion_agrees(f, kSizes), 1u);
}

TEST(Fusion, SeveralReductionsOfOneTensor) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), s = f.size("S", 5);
  const ValueId x = f.input({b, s, f.number(4)});
  f.graph->outputs = {f.sum(x, {1, 2}, false), f.call("aten::amax", {x, f.build.integers({1, 2}), true}),
                      f.sum(f.mul(x, x), {1, 2}, false)};
  EXPECT_EQ(expect_fusion_agrees(f, kSizes), 1u);
}

TEST(Fusion, BroadcastsOfHeavyValuesAreComputedOnce) {
  GraphFixture f;
  const ExprId b = f.size("B", 30), s = f.size("S", 50);
  const ValueId x = f.input({b, s}), scale = f.input({s});
  f.graph->outputs = {f.mul(x, f.call("aten::exp", scale))};
  EXPECT_EQ(expect_fusion_agrees(f, {{{"B", 3}, {"S", 5}}}), 2u);
}

// An outer product of masks for two products: each reads the two rows, not the square that they span.
TEST(Fusion, WhatIsSpreadFromSmallValuesIsComputedWhereItIsRead) {
  GraphFixture f;
  const ExprId s = f.size("S", 50);
  const ValueId x = f.input({s, s}), rows = f.input({s, f.number(1)}), columns = f.input({s});
  const ValueId mask = f.mul(rows, columns);
  const ValueId first = f.mul(f.call("aten::mm", {x, x}), mask);
  f.graph->outputs = {f.add(f.call("aten::mm", {first, x}), mask)};
  EXPECT_EQ(expect_fusion_agrees(f, {{{"S", 5}}, {{"S", 50}}}), 2u);
}

TEST(Fusion, OutputsKeepEagersStrides) {
  GraphFixture f;
  const ExprId b = f.size("B", 3), s = f.size("S", 5);
  const ValueId x = f.input({b, s});
  const ValueId y = f.call("aten::relu", f.permute(x, {1, 0}));
  f.graph->outputs = {y, f.permute(y, {1, 0})};
  passes::run(*f.graph, {});
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  const Symbols symbols{{"B", 3}, {"S", 5}};
  const std::vector<Array> out = Executor(*f.graph, lowered, symbols).run(random_inputs(*f.graph, symbols, 1));
  EXPECT_EQ(out[0].strides, (std::vector<int64_t>{1, 5}));
  EXPECT_EQ(out[1].strides, (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(out[0].memory, out[1].memory);
}

TEST(Fusion, MutationsHappenAfterEverythingRead) {
  GraphFixture f;
  const ExprId s = f.size("S", 5);
  const ValueId x = f.input({s}), y = f.input({s});
  f.graph->mutations = {{.input = 0, .value = y}, {.input = 1, .value = x}};
  f.graph->outputs = {f.add(x, y), x};
  passes::run(*f.graph, {});
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  const Symbols symbols{{"S", 4}};
  const std::vector<Array> inputs = random_inputs(*f.graph, symbols, 3);
  const std::vector<double> before_x = inputs[0].values(), before_y = inputs[1].values();
  const std::vector<Array> out = Executor(*f.graph, lowered, symbols).run(inputs);
  EXPECT_EQ(inputs[0].values(), before_y);
  EXPECT_EQ(inputs[1].values(), before_x);
  EXPECT_EQ(out[1].values(), before_x);
}

// Kernels share the variables of their loops, so those of two that are merged meet: all extents are the same here.
TEST(Fusion, LoopsOfEqualExtentsStayApart) {
  GraphFixture f;
  const ExprId s = f.size("S", 5);
  const ValueId x = f.input({s, s, s}), y = f.input({s, s, s});
  const ValueId turned = f.add(f.permute(x, {2, 0, 1}), y);
  const ValueId softened = f.softmax(turned, 1);
  const ValueId back = f.add(f.permute(softened, {1, 2, 0}), f.permute(y, {0, 2, 1}));
  f.graph->outputs = {f.add(back, f.softmax(back, -1)), turned};
  expect_fusion_agrees(f, kSizes);
}

// What two layers of equal sizes launch is one kernel, which is made without sizes and scheduled once.
TEST(Fusion, EqualLayersShareTheirKernel) {
  GraphFixture f;
  const ExprId s = f.size("S", 5), h = f.number(16);
  ValueId x = f.input({s, h});
  const ValueId weight = f.input({h, h});
  for (int layer = 0; layer < 4; ++layer) x = f.gelu(f.call("aten::mm", {x, weight}));
  f.graph->outputs = {x};
  passes::run(*f.graph, {.eager_rounding = true});
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  ASSERT_EQ(lowered.kernels.size(), 4u);
  // The last one writes what the caller gets, the others run in place.
  EXPECT_EQ(lowered.kernels[0], lowered.kernels[1]);
  EXPECT_EQ(lowered.kernels[1], lowered.kernels[2]);
}

TEST(MemoryPlan, AChainRunsInOneBlock) {
  GraphFixture f;
  const ExprId s = f.size("S", 50);
  const ValueId x = f.input({s, s});
  ValueId v = x;
  for (int i = 0; i < 6; ++i) v = f.call("aten::mm", {f.call("aten::exp", v), x});
  f.graph->outputs = {v};
  passes::run(*f.graph, {});
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  std::vector<int64_t> numbers(lowered.program.sizes.output_count());
  const int64_t size = 16;
  lowered.program.sizes.run(&size, numbers.data());
  EXPECT_EQ(runtime::plan_arena(lowered.program, numbers).arena(), 2 * 16 * 16 * 4);
}

TEST(MemoryPlan, WritingAPartWritesWhereItReads) {
  GraphFixture f;
  const ExprId s = f.size("S", 50);
  sym::ExprPool& pool = f.graph->pool();
  const ValueId x = f.input({s, s});
  ValueId v = f.call("aten::mm", {x, x});
  for (const ExprId row : {pool.constant(3), pool.constant(-1)}) {
    const ValueId part = f.call("aten::relu", f.call("aten::select.int", {v, f.number(0), row}));
    v = f.call("aten::mm", {f.call("aten::select_scatter", {v, part, f.number(0), row}), x});
  }
  f.graph->outputs = {v};
  expect_fusion_agrees(f, {{{"S", 5}}, {{"S", 16}}});
  passes::run(*f.graph, {});
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  size_t in_place = 0;
  for (const runtime::TensorSlot& slot : lowered.program.tensors) in_place += slot.continues.valid();
  EXPECT_EQ(in_place, 2);
}

TEST(MemoryPlan, WhatReadsAnotherPartDoesNotWriteWhereItReads) {
  GraphFixture f;
  const ExprId s = f.size("S", 50);
  const ValueId x = f.input({s, s});
  const ValueId v = f.call("aten::mm", {x, x});
  const ValueId other = f.call("aten::relu", f.call("aten::select.int", {v, f.number(0), f.number(2)}));
  const ValueId out = f.call("aten::select_scatter", {v, other, f.number(0), f.number(3)});
  f.graph->outputs = {f.call("aten::mm", {out, x})};
  expect_fusion_agrees(f, {{{"S", 5}}, {{"S", 16}}});
  passes::run(*f.graph, {});
  for (const runtime::TensorSlot& slot : lower_checked(*f.graph, {}).program.tensors)
    EXPECT_FALSE(slot.continues.valid());
}

// Products of all the rest first, then a column of each: made one after the other they need one buffer.
TEST(MemoryPlan, WhatIsNeededLateIsMadeLate) {
  GraphFixture f;
  const ExprId s = f.size("S", 200);
  const ValueId x = f.input({s, s}), column = f.input({s, f.number(1)});
  std::vector<ValueId> products;
  for (int i = 0; i < 6; ++i) products.push_back(f.call("aten::mm", {i == 0 ? x : f.input({s, s}), x}));
  ValueId sum = column;
  for (const ValueId v : products) sum = f.add(sum, f.call("aten::mm", {v, column}));
  f.graph->outputs = {sum};
  expect_fusion_agrees(f, {{{"S", 16}}, {{"S", 200}}});
  passes::run(*f.graph, {});
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  std::vector<int64_t> numbers(lowered.program.sizes.output_count());
  const int64_t size = 200;
  lowered.program.sizes.run(&size, numbers.data());
  EXPECT_LT(runtime::plan_arena(lowered.program, numbers).arena(), 2 * 200 * 200 * 4);
}

// In each layer a wide value has two narrow uses, written behind all that is wide. Made early they let go of it; no
// layer alone lowers the peak, for the others reach it, too.
TEST(MemoryPlan, LayersThatAreAlikeAreAllMovedIn) {
  GraphFixture f;
  const ExprId s = f.size("S", 64);
  sym::ExprPool& pool = f.graph->pool();
  const auto wide = [&](int64_t times) { return pool.mul(pool.constant(times), s); };
  const ValueId widen = f.input({s, wide(8)}), again = f.input({wide(8), wide(17)});
  const ValueId narrow = f.input({wide(17), wide(8)}), back = f.input({wide(8), s});
  const ValueId first = f.input({wide(8), f.number(1)}), second = f.input({wide(8), f.number(1)});
  ValueId x = f.input({s, s});
  for (int layer = 0; layer < 3; ++layer) {
    const ValueId b = f.call("aten::mm", {x, widen});
    const ValueId c = f.call("aten::mm", {f.call("aten::mm", {b, again}), narrow});
    const ValueId added = f.add(f.add(c, f.call("aten::mm", {b, first})), f.call("aten::mm", {b, second}));
    x = f.call("aten::mm", {added, back});
  }
  f.graph->outputs = {x};
  expect_fusion_agrees(f, {{{"S", 2}}, {{"S", 3}}});
  passes::run(*f.graph, {});
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  std::vector<int64_t> numbers(lowered.program.sizes.output_count());
  const int64_t size = 64;
  lowered.program.sizes.run(&size, numbers.data());
  const int64_t square = size * size * 4;
  EXPECT_LE(runtime::plan_arena(lowered.program, numbers).arena(), 27 * square);
}

// What writes at places that indices name: into what it starts as, where that dies and nothing else reads it.
TEST(MemoryPlan, WritesAtPlacesLieWhereTheyStart) {
  const auto shared = [](bool from_itself, bool read_later) {
    GraphFixture f;
    const ExprId s = f.size("S", 50);
    const ValueId x = f.input({s, s}), index = f.input({s, s}, DType::I64);
    const ValueId start = f.call("aten::mm", {x, x});
    const ValueId filled = f.add(start, x);
    const ValueId source = from_itself ? filled : x;
    ValueId v = f.call("aten::scatter_add", {filled, f.graph->pool().constant(0), index, source});
    if (read_later) v = f.add(v, filled);
    f.graph->outputs = {v};
    passes::run(*f.graph, {});
    const lower::Lowered lowered = lower_checked(*f.graph, {});
    size_t out = 0;
    for (const runtime::Step& step : lowered.program.steps)
      if (const auto* call = std::get_if<runtime::ExternCall>(&step))
        out += lowered.program.tensors[call->results[0].index].continues.valid();
    return out;
  };
  EXPECT_EQ(shared(false, false), 1);
  EXPECT_EQ(shared(true, false), 0);
  EXPECT_EQ(shared(false, true), 0);
}

TEST(MemoryPlan, WhatReducesRowsWritesWhereItReads) {
  GraphFixture f;
  const ExprId s = f.size("S", 50);
  const ValueId x = f.input({s, s});
  ValueId v = f.call("aten::mm", {x, x});
  for (int i = 0; i < 2; ++i) {
    v = f.call("aten::_softmax", {v, f.graph->pool().constant(1), false});
    v = f.call("aten::mm", {v, x});
  }
  f.graph->outputs = {f.call("aten::_softmax", {v, f.graph->pool().constant(1), false})};  // an output, in place too
  passes::run(*f.graph, {});
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  size_t in_place = 0;
  for (const runtime::TensorSlot& slot : lowered.program.tensors) in_place += slot.continues.valid();
  EXPECT_EQ(in_place, 3);
  const Symbols symbols{{"S", 16}};
  const std::vector<Array> inputs = random_inputs(*f.graph, symbols, 5);
  const std::vector<Array> out = Executor(*f.graph, lowered, symbols).run(inputs);
  for (double row = 0, sum = 0; row < 16; ++row, sum = 0) {
    for (int column = 0; column < 16; ++column) sum += out[0].values()[static_cast<size_t>(row) * 16 + column];
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

}  // namespace
}  // namespace cresset::test
