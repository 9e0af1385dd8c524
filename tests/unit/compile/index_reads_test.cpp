// Operators that read at indices from tensors, on a device whose kernels report indices out of range.
#include "harness.h"

namespace cresset::test {
namespace {

using runtime::ExternCall;
using runtime::Launch;

const std::vector<Symbols> kSizes = {{{"N", 5}, {"V", 7}}, {{"N", 1}, {"V", 3}}, {{"N", 0}, {"V", 4}}};

class OnGpu : public ::testing::Test {
 protected:
  ValueId input(std::vector<ExprId> sizes, DType dtype = DType::F32) {
    std::vector<ExprId> strides = graph::contiguous_strides(f.env->pool(), sizes);
    return f.graph->add_input({dtype, Device{DeviceKind::Cuda, 0}, std::move(sizes), std::move(strides)}, "");
  }
  ValueId embedding(ValueId table, ValueId indices) {
    return f.call("aten::embedding", {table, indices, f.number(-1), false, false});
  }
  ValueId gather(ValueId self, int64_t dim, ValueId index) {
    return f.call("aten::gather", {self, f.number(dim), index, false});
  }

  GraphFixture f;
  const ExprId n = f.size("N", 5), v = f.size("V", 7), h = f.number(16);
};

size_t externs(const Program& program) {
  return static_cast<size_t>(std::count_if(program.steps.begin(), program.steps.end(), [](const runtime::Step& step) {
    return std::holds_alternative<ExternCall>(step);
  }));
}

TEST_F(OnGpu, AnEmbeddingAndTheNormAfterItAreOneKernel) {
  const ValueId table = input({v, h}), indices = input({n}, DType::I64);
  f.graph->outputs = {f.layer_norm(embedding(table, indices), h, input({h}), input({h}))};
  EXPECT_EQ(expect_fusion_agrees(f, kSizes), 1u);
}

TEST_F(OnGpu, ASoftmaxIsReadWhereItIsGathered) {
  const ValueId x = input({n, v}), target = input({n, f.number(1)}, DType::I32);
  const ValueId logs = f.call("aten::_log_softmax", {x, f.number(1), false});
  f.graph->outputs = {f.call("aten::neg", gather(logs, 1, target))};
  EXPECT_LE(expect_fusion_agrees(f, {{{"N", 5}, {"V", 7}}, {{"N", 2}, {"V", 3}}}), 2u);
}

TEST_F(OnGpu, IndicesOutOfRangeAreReported) {
  const ValueId table = input({v, h}), indices = input({n}, DType::I64);
  f.graph->outputs = {f.sum(f.call("aten::exp", embedding(table, indices)), {1}, false)};
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  ASSERT_EQ(lowered.program.index_sites.size(), 1u);
  EXPECT_EQ(lowered.program.index_sites[0].fault, IndexFault::InSelf);
  EXPECT_EQ(externs(lowered.program), 0u);
  const Symbols symbols{{"N", 5}, {"V", 7}};
  std::vector<Array> inputs = random_inputs(*f.graph, symbols, 3);
  Executor executor(*f.graph, lowered, symbols);
  executor.run(inputs);
  EXPECT_EQ(executor.reports().at<int64_t>(0), loop::kNothingReported);
  for (const int64_t bad : {int64_t{7}, int64_t{-1}, INT64_MAX, INT64_MIN + 1}) {
    inputs[1].at<int64_t>(3) = bad;
    executor.run(inputs);
    EXPECT_EQ(executor.reports().at<int64_t>(0), bad);
  }
  inputs[1].at<int64_t>(3) = INT64_MIN;  // the mark for no report
  executor.run(inputs);
  EXPECT_NE(executor.reports().at<int64_t>(0), loop::kNothingReported);
}

TEST_F(OnGpu, NegativeIndicesCountFromTheEnd) {
  const ValueId table = input({v, h}), indices = input({n}, DType::I64);
  f.graph->outputs = {f.call("aten::index.Tensor", {table, std::vector<graph::OptionalValue>{indices}})};
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  const Symbols symbols{{"N", 5}, {"V", 7}};
  std::vector<Array> inputs = random_inputs(*f.graph, symbols, 3);
  Executor executor(*f.graph, lowered, symbols);
  inputs[1].at<int64_t>(3) = -7;
  const std::vector<Array> out = executor.run(inputs);
  EXPECT_EQ(executor.reports().at<int64_t>(0), loop::kNothingReported);
  EXPECT_EQ(out[0].at<float>(3 * 16 + 5), inputs[0].at<float>(5));
  inputs[1].at<int64_t>(3) = -8;
  executor.run(inputs);
  EXPECT_EQ(executor.reports().at<int64_t>(0), -8);
}

// A part of the result is computed only after the whole was, with all its indices.
TEST_F(OnGpu, IndicesOfUnusedPartsAreChecked) {
  const ValueId table = input({v, h}), indices = input({n}, DType::I64);
  const ValueId whole = embedding(table, indices);
  f.graph->outputs = {f.call("aten::exp", f.call("aten::select.int", {whole, f.number(1), f.number(0)})),
                      f.call("aten::select.int", {f.call("aten::exp", whole), f.number(0), f.number(0)})};
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  const Symbols symbols{{"N", 5}, {"V", 7}};
  std::vector<Array> inputs = random_inputs(*f.graph, symbols, 3);
  inputs[1].at<int64_t>(4) = 7;
  Executor executor(*f.graph, lowered, symbols);
  executor.run(inputs);
  EXPECT_EQ(executor.reports().at<int64_t>(0), 7);
}

TEST_F(OnGpu, UnusedOperatorsReportWhereTheProgramMayCatchTheError) {
  const ValueId table = input({v, h}), indices = input({n}, DType::I64);
  embedding(table, indices);
  f.graph->node(f.graph->order.back()).caught = true;
  f.graph->outputs = {f.call("aten::exp", table)};
  passes::run(*f.graph, {});
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  EXPECT_EQ(externs(lowered.program), 0u);
  EXPECT_EQ(lowered.program.index_sites.size(), 1u);
}

TEST_F(OnGpu, KnownIndicesNeedNoReport) {
  const ValueId table = input({v, h});
  const ValueId positions = f.call("aten::arange.start_step", {f.number(0), v, f.number(1), DType::I64, graph::None{},
                                                               Device{DeviceKind::Cuda, 0}, graph::None{}});
  f.graph->outputs = {f.call("aten::exp", embedding(table, positions))};
  const lower::Lowered lowered = lower_checked(*f.graph, {});
  EXPECT_EQ(lowered.kernels.size(), 1u);
  EXPECT_TRUE(lowered.program.index_sites.empty());
}

TEST_F(OnGpu, AtenServesWhereNothingCanBeReported) {
  const ValueId table = input({v, h}), indices = input({n}, DType::I64);
  f.graph->outputs = {embedding(table, indices)};
  f.graph->mutations.push_back({.input = 0, .value = f.call("aten::exp", table)});
  EXPECT_EQ(externs(lower_checked(*f.graph, {}).program), 1u);

  GraphFixture on_cpu;
  const ValueId t = on_cpu.input({on_cpu.number(7), on_cpu.number(4)}),
                i = on_cpu.input({on_cpu.number(3)}, DType::I64);
  on_cpu.graph->outputs = {on_cpu.call("aten::embedding", {t, i, on_cpu.number(-1), false, false})};
  EXPECT_EQ(externs(lower_checked(*on_cpu.graph, {}).program), 1u);
}

}  // namespace
}  // namespace cresset::test
