// Random operators of GPUs: their decomposition, and the numbers of the operators that remain.
#include <gmock/gmock.h>

#include "op_fixture.h"

namespace cresset::ops::testing {
namespace {

using ::testing::ElementsAre;

const Device kGpu{DeviceKind::Cuda, 0};

class RandomTest : public OpTest {
 protected:
  // The operators of the decomposition, in order; empty: the library draws.
  std::vector<std::string> decomposed(std::string_view op, std::vector<Arg> args) {
    const size_t before = graph_.order.size();
    const auto values = find(op)->decompose(graph_, OpArgs(graph_, args));
    std::vector<std::string> out;
    for (size_t i = before; i < graph_.order.size(); ++i)
      out.emplace_back(graph::op_name(graph_.node(graph_.order[i]).op));
    if (values.ok()) last_ = *values;
    return values.ok() ? out : std::vector<std::string>{};
  }
  ValueId on_gpu(std::vector<ExprId> sizes, std::vector<ExprId> strides, DType dtype = DType::F32) {
    return graph_.add_input({dtype, kGpu, std::move(sizes), std::move(strides)}, "x");
  }
  ValueId on_gpu(const std::vector<ExprId>& sizes) {
    return on_gpu(sizes, graph::contiguous_strides(graph_.pool(), sizes));
  }
  std::vector<Arg> options(std::vector<Arg> args, DType dtype, Device device = kGpu) {
    args.insert(args.end(), {dtype, None{}, device, None{}});
    return args;
  }

  std::vector<ValueId> last_;
};

TEST_F(RandomTest, FillsAreADrawAndAFunctionOfIt) {
  const ExprId s = size("s", 5);
  EXPECT_THAT(decomposed("aten::rand", options({list({s, n(3)})}, DType::F16)),
              ElementsAre("cresset::philox_draw", "cresset::philox_uniform"));
  EXPECT_EQ(graph_.type(last_[0]).dtype, DType::F16);
  EXPECT_EQ(graph_.type(last_[0]).device, kGpu);
  EXPECT_EQ(strides(last_[0]), "[3, 1]");
  EXPECT_THAT(decomposed("aten::randn", options({list({s})}, DType::F64)),
              ElementsAre("cresset::philox_draw", "cresset::philox_normal"));
  EXPECT_THAT(decomposed("aten::randint", options({n(10), list({s})}, DType::I64)),
              ElementsAre("cresset::philox_draw", "cresset::philox_integers"));
  EXPECT_EQ(guards(), 0u);
}

TEST_F(RandomTest, TheLibraryDrawsOtherNumbers) {
  EXPECT_THAT(decomposed("aten::rand", options({ints({3})}, DType::F32, Device{})), ElementsAre());  // on the CPU
  EXPECT_THAT(decomposed("aten::rand", options({ints({int64_t{1} << 30})}, DType::F32)), ElementsAre());
  EXPECT_THAT(decomposed("aten::randint", options({n(0), ints({3})}, DType::I64)), ElementsAre());  // raises
  EXPECT_THAT(decomposed("aten::randint", options({n(300), ints({3})}, DType::U8)), ElementsAre());
  EXPECT_THAT(decomposed("aten::randint", options({size("high", 9), ints({3})}, DType::I64)), ElementsAre());
  const ValueId x = on_gpu({n(4), n(6)});
  EXPECT_THAT(decomposed("aten::uniform", {x, 3.0, 2.0, None{}}), ElementsAre());
  EXPECT_THAT(decomposed("cresset::bernoulli_fill", {x, 1.5, None{}}), ElementsAre());
}

TEST_F(RandomTest, FillsInPlaceFollowTheOrderOfMemory) {
  const auto uniform = [&](ValueId x) { return decomposed("aten::uniform", {x, 0.0, 1.0, None{}}).size(); };
  EXPECT_EQ(uniform(on_gpu({n(4), n(6)}, {n(1), n(4)})), 2u);   // dense
  EXPECT_EQ(uniform(on_gpu({n(4), n(6)}, {n(9), n(1)})), 2u);   // rows with gaps
  EXPECT_EQ(uniform(on_gpu({n(4), n(6)}, {n(1), n(16)})), 0u);  // columns with gaps
}

TEST_F(RandomTest, DropoutAsksForTheAddressOfTheCallersTensors) {
  const auto laid = [&](ValueId x) {
    decomposed("aten::native_dropout", {x, 0.5, true});
    const graph::Node& mask = graph_.node(graph_.value(last_[1]).node);
    const graph::Node& draw = graph_.node(graph_.value(std::get<ValueId>(mask.args[0])).node);
    return draw.args[3];
  };
  const ValueId x = on_gpu({n(4), n(6)});
  EXPECT_EQ(laid(x), Arg(x));
  EXPECT_EQ(laid(call("aten::t", {x})), Arg(x));
  const ValueId y = call("aten::relu", {x});
  EXPECT_EQ(laid(y), Arg(None{}));
  EXPECT_EQ(laid(call("aten::view", {y, ints({24})})), Arg(None{}));
  const ValueId row = call("aten::select.int", {y, n(0), n(1)});
  EXPECT_EQ(laid(row), Arg(row));
  EXPECT_THAT(decomposed("aten::native_dropout", {x, 1.0, true}), ElementsAre("aten::zeros_like", "aten::zeros_like"));
  EXPECT_THAT(decomposed("aten::native_dropout", {x, 0.5, false}), ElementsAre("aten::clone", "aten::ones_like"));
}

// Philox of seed 0: the first of its published answers are words of stream 0 at positions 0 to 3.
TEST_F(RandomTest, NumbersOfAPosition) {
  const ValueId seed = input({}, DType::I64), offset = input({}, DType::I64), layout = input({}, DType::I64);
  // With one block of threads.
  const auto bits = [&](int64_t neighbours, int64_t step) {
    return neighbours | step << 4 | int64_t{1} << 8 | int64_t{31} << 24 | INT64_MIN;
  };
  const std::vector<Arg> drawn{seed, offset, layout, ints({4}), ints({1}), DType::F32, Device{}};
  const auto of = [&](std::string_view op, std::vector<Arg> parameters, int64_t packed) {
    std::vector<Arg> args = drawn;
    args.insert(args.end(), parameters.begin(), parameters.end());
    std::map<ValueId, std::vector<char>> memory;
    for (const ValueId v : {seed, offset, layout}) memory[v] = std::vector<char>(8);
    std::memcpy(memory[layout].data(), &packed, 8);
    return numbers(Evaluator(graph_, call(op, args)).run(memory), DType::F32);
  };
  const double words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  const std::vector<double> in_a_thread = of("cresset::philox_uniform", {0.0, 1.0, 1.0}, bits(2, 2));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(float(in_a_thread[i]), float(words[i] * 0x1p-32));
  }
  const std::vector<double> threads = of("cresset::philox_uniform", {0.0, 1.0, 1.0}, bits(0, 0));
  EXPECT_EQ(threads[0], in_a_thread[0]);
  EXPECT_NE(threads[1], in_a_thread[1]);
  const std::vector<double> kept = of("cresset::philox_bernoulli", {0.5}, bits(2, 2));
  EXPECT_THAT(kept, ElementsAre(1, 0, 0, 0));
}

}  // namespace
}  // namespace cresset::ops::testing
