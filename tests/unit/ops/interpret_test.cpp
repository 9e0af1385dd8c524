#include "ops/interpret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ops/op_def.h"

namespace cresset::ops {
namespace {

template <class T>
HostTensor tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<T>& values) {
  HostTensor out = HostTensor::zeros(dtype, std::move(sizes));
  std::memcpy(out.data.data(), values.data(), values.size() * sizeof(T));
  return out;
}
HostTensor floats(std::vector<int64_t> sizes, const std::vector<float>& values) {
  return tensor(DType::F32, std::move(sizes), values);
}

// Appends `op` through its shape rule and makes it the output.
class OpsInterpret : public ::testing::Test {
 protected:
  graph::ValueId input(HostTensor value) {
    graph::TensorType type{value.dtype, {}, {}, {}};
    for (const int64_t size : value.sizes) type.sizes.push_back(graph.pool().constant(size));
    type.strides = graph::contiguous_strides(graph.pool(), type.sizes);
    inputs.push_back(std::move(value));
    return graph.add_input(std::move(type), "x");
  }
  graph::Arg n(int64_t v) { return graph.pool().constant(v); }
  graph::Arg ns(const std::vector<int64_t>& vs) { return builder.integers(vs); }

  HostTensor run(std::string_view op, std::vector<graph::Arg> args, size_t result = 0) {
    graph.outputs = {builder.call_multi(op, std::move(args)).at(result)};
    Result<Interpreted> done = interpret(graph, inputs);
    EXPECT_TRUE(done.ok()) << describe(done.fallback());
    return done->outputs.at(0);
  }
  template <class T>
  static std::vector<T> values(const HostTensor& t) {
    return {t.as<T>(), t.as<T>() + t.numel()};
  }

  graph::Graph graph{std::make_shared<sym::ShapeEnv>()};
  GraphBuilder builder{graph};
  std::vector<HostTensor> inputs;
};

TEST_F(OpsInterpret, PromotesByRankAndCategory) {
  const auto ints = input(tensor<int64_t>(DType::I64, {2}, {1, 2}));
  const auto half = input(tensor<double>(DType::F64, {}, {0.5}));
  const auto small = input(floats({2}, {1, 2}));
  EXPECT_EQ(run("aten::add.Tensor", {small, half, n(1)}).dtype, DType::F32);  // 0-dim does not widen
  EXPECT_EQ(run("aten::add.Tensor", {ints, half, n(1)}).dtype, DType::F64);   // but its category counts
  EXPECT_EQ(run("aten::add.Tensor", {ints, 0.5, n(1)}).dtype, DType::F32);    // a number has the default dtype
  EXPECT_EQ(run("aten::div.Tensor", {ints, n(2)}).dtype, DType::F32);
  EXPECT_EQ(values<float>(run("aten::div.Tensor", {ints, n(2)})), (std::vector<float>{0.5, 1.0}));
}

TEST_F(OpsInterpret, NanWinsInMaximumAndClampButNotInFmax) {
  const auto x = input(floats({3}, {NAN, 1, 5}));
  const auto y = input(floats({3}, {2, NAN, 4}));
  const HostTensor most = run("aten::maximum", {x, y});
  EXPECT_TRUE(std::isnan(values<float>(most)[0]) && std::isnan(values<float>(most)[1]));
  EXPECT_EQ(values<float>(run("aten::fmax", {x, y})), (std::vector<float>{2, 1, 5}));
  EXPECT_TRUE(std::isnan(values<float>(run("aten::clamp", {x, 0.0, 1.0}))[0]));
  EXPECT_TRUE(std::isnan(values<float>(run("aten::relu", {x}))[0]));
}

TEST_F(OpsInterpret, ComparesNumbersInTheTensorsPrecision) {
  const auto x = input(floats({1}, {0.1f}));
  const auto narrow = builder.cast(x, DType::BF16);
  EXPECT_EQ(values<uint8_t>(run("aten::gt.Scalar", {narrow, 0.1}))[0], 0);
  EXPECT_EQ(values<uint8_t>(run("aten::eq.Scalar", {narrow, 0.1}))[0], 1);
}

TEST_F(OpsInterpret, ReducesTheNamedDimensions) {
  const auto x = input(floats({2, 3}, {1, 5, 3, 4, 2, 6}));
  EXPECT_EQ(values<float>(run("aten::sum.dim_IntList", {x, ns({-1}), false, graph::None{}})),
            (std::vector<float>{9, 12}));
  EXPECT_EQ(values<float>(run("aten::amax", {x, ns({0}), true})), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(values<int64_t>(run("aten::argmax", {x, graph::None{}, false})), (std::vector<int64_t>{5}));
  EXPECT_EQ(values<int64_t>(run("aten::max.dim", {x, n(1), false}, 1)), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(values<float>(run("aten::mean", {x, graph::None{}})), (std::vector<float>{3.5}));
}

TEST_F(OpsInterpret, SoftmaxRowsSumToOne) {
  const auto x = input(floats({2, 3}, {1, 2, 3, 1000, 1000, -INFINITY}));
  const std::vector<float> y = values<float>(run("aten::_softmax", {x, n(1), false}));
  EXPECT_FLOAT_EQ(y[0] + y[1] + y[2], 1);
  EXPECT_FLOAT_EQ(y[3], 0.5);
  EXPECT_EQ(y[5], 0);
}

TEST_F(OpsInterpret, IntegersDivideAsPythonDoes) {
  const auto x = input(tensor<int64_t>(DType::I64, {4}, {7, -7, 6, -6}));
  EXPECT_EQ(values<int64_t>(run("aten::floor_divide", {x, n(2)})), (std::vector<int64_t>{3, -4, 3, -3}));
  EXPECT_EQ(values<int64_t>(run("aten::remainder.Scalar", {x, n(4)})), (std::vector<int64_t>{3, 1, 2, 2}));
  EXPECT_EQ(values<int64_t>(run("aten::div.Tensor_mode", {x, n(2), std::string("trunc")})),
            (std::vector<int64_t>{3, -3, 3, -3}));
}

TEST_F(OpsInterpret, RefusesWhatAKernelWouldTrapOn) {
  const auto x = input(tensor<int64_t>(DType::I64, {1}, {7}));
  ShapeContext shapes(graph, "aten::floor_divide");
  const OpDef* def = find("aten::floor_divide");
  const std::vector<graph::Arg> by_tensor{x, x}, by_zero{x, n(0)};
  EXPECT_FALSE(def->shape(shapes, OpArgs(graph, by_tensor)).ok());
  EXPECT_FALSE(def->shape(shapes, OpArgs(graph, by_zero)).ok());
}

TEST(OpsInterpretText, RunsAProgramAtSizesOtherThanItsHints) {
  Result<std::unique_ptr<graph::Graph>> parsed = graph::parse(
      "symbol s0 8 [0, inf] dynamic \"x.size(0)\"\n"
      "%0: f32[s0, 2][2, 1] = input \"x\"\n"
      "%1: f32[2][1] = constant \"w\"\n"
      "%2: f32[s0, 2][2, 1] = aten::mul.Tensor(%0, %1)\n"
      "%3: f32[s0][1] = aten::sum.dim_IntList(%2, [1], false, none)\n"
      "%4: f32[s0][1] = aten::div.Scalar(%3, s0)\n"
      "mutate input 0 = %2\n"
      "return %4\n");
  ASSERT_TRUE(parsed.ok()) << describe(parsed.fallback());
  const std::vector<HostTensor> inputs{floats({3, 2}, {1, 2, 3, 4, 5, 6})}, constants{floats({2}, {10, 1})};
  const Result<Interpreted> done = interpret(**parsed, inputs, constants);
  ASSERT_TRUE(done.ok());
  const float* out = done->outputs[0].as<float>();
  EXPECT_FLOAT_EQ(out[0], 4);
  EXPECT_FLOAT_EQ(out[2], 56 / 3.0f);
  EXPECT_EQ(done->mutated[0].as<float>()[5], 6);
}

}  // namespace
}  // namespace cresset::ops
