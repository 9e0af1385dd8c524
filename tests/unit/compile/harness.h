// Runs lowered programs in tests: kernels through the loop interpreter, extern calls by naive code.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>

#include "fuse/plan.h"
#include "lower/lower.h"
#include "ops/context.h"
#include "ops/interpret.h"
#include "passes/passes.h"
#include "runtime/arena_plan.h"
#include "runtime/verify.h"
#include "sym/eval.h"

namespace cresset::test {

using graph::Graph;
using graph::TensorType;
using graph::ValueId;
using runtime::Program;
using runtime::TensorId;
using sym::ExprId;

// A dense or strided host tensor.
struct Array {
  DType dtype = DType::F32;
  std::vector<int64_t> sizes, strides;
  std::shared_ptr<std::vector<std::byte>> memory;
  int64_t offset = 0;  // elements

  template <class T>
  T& at(int64_t element) const {
    return reinterpret_cast<T*>(memory->data())[offset + element];
  }
  void* data() const { return memory->data() + offset * byte_size(dtype); }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
  // Calls f(element offset) in row-major order.
  template <class F>
  void for_each(F&& f) const {
    if (numel() == 0) return;
    std::vector<int64_t> index(sizes.size(), 0);
    while (true) {
      int64_t at = 0;
      for (size_t d = 0; d < sizes.size(); ++d) at += index[d] * strides[d];
      f(at);
      size_t d = sizes.size();
      while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
      if (d == 0) return;
    }
  }
  std::vector<double> values() const {
    std::vector<double> out;
    for_each([&](int64_t e) { out.push_back(number(e)); });
    return out;
  }
  double number(int64_t e) const {
    switch (dtype) {
      case DType::F32:
        return at<float>(e);
      case DType::F64:
        return at<double>(e);
      case DType::I64:
        return static_cast<double>(at<int64_t>(e));
      case DType::I32:
        return at<int32_t>(e);
      case DType::Bool:
        return at<uint8_t>(e);
      case DType::BF16: {
        const uint32_t bits = static_cast<uint32_t>(at<uint16_t>(e)) << 16;
        float f;
        std::memcpy(&f, &bits, 4);
        return f;
      }
      default:
        ADD_FAILURE() << "dtype";
        return 0;
    }
  }
};

inline std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  return strides;
}

// Memory is filled with a pattern, so that reading what nobody wrote shows.
inline Array make_array(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  int64_t span = 1;
  for (size_t d = 0; d < sizes.size(); ++d) span += std::max<int64_t>(sizes[d] - 1, 0) * strides[d];
  auto memory =
      std::make_shared<std::vector<std::byte>>(static_cast<size_t>(span * byte_size(dtype)) + 64, std::byte{0x7f});
  return {dtype, std::move(sizes), std::move(strides), std::move(memory), 0};
}

inline void randomize(const Array& a, std::mt19937& rng) {
  std::uniform_real_distribution<float> real(-2, 2);
  std::uniform_int_distribution<int64_t> small(0, 2);
  a.for_each([&](int64_t e) {
    if (a.dtype == DType::F32) a.at<float>(e) = real(rng);
    if (a.dtype == DType::I64) a.at<int64_t>(e) = small(rng);
    if (a.dtype == DType::I32) a.at<int32_t>(e) = static_cast<int32_t>(small(rng));
    if (a.dtype == DType::Bool) a.at<uint8_t>(e) = static_cast<uint8_t>(small(rng) > 0);
    if (a.dtype == DType::BF16) {
      const float f = real(rng);
      uint32_t bits;
      std::memcpy(&bits, &f, 4);
      a.at<uint16_t>(e) = static_cast<uint16_t>(bits >> 16);
    }
  });
}

using Symbols = std::map<std::string, int64_t>;  // by the symbol's source

// Builds graphs over named sizes.
class GraphFixture {
 public:
  GraphFixture() : env(std::make_shared<sym::ShapeEnv>()), graph(std::make_unique<Graph>(env)), build(*graph) {}

  ExprId size(const std::string& name, int64_t hint) { return env->new_backed(name, hint); }
  ExprId number(int64_t n) { return env->pool().constant(n); }
  ValueId input(std::vector<ExprId> sizes, DType dtype = DType::F32, const std::string& name = "") {
    TensorType type{dtype, {}, sizes, graph::contiguous_strides(env->pool(), sizes)};
    return graph->add_input(type, name);
  }
  ValueId call(std::string_view op, std::vector<graph::Arg> args) { return build.call(op, std::move(args)); }
  ValueId call(std::string_view op, ValueId v) { return build.call(op, {v}); }
  ValueId add(ValueId a, ValueId b) { return call("aten::add.Tensor", {a, b, number(1)}); }
  ValueId mul(ValueId a, ValueId b) { return call("aten::mul.Tensor", {a, b}); }
  ValueId view(ValueId a, std::vector<ExprId> sizes) { return call("aten::view", {a, sizes}); }
  ValueId permute(ValueId a, std::vector<int64_t> dims) { return call("aten::permute", {a, build.integers(dims)}); }
  ValueId softmax(ValueId a, int64_t dim) { return call("aten::_softmax", {a, number(dim), false}); }
  ValueId gelu(ValueId a) { return call("aten::gelu", {a, std::string("none")}); }
  ValueId sum(ValueId a, std::vector<int64_t> dims, bool keepdim) {
    return call("aten::sum.dim_IntList", {a, build.integers(dims), keepdim, graph::None{}});
  }
  ValueId layer_norm(ValueId a, ExprId size, ValueId weight, ValueId bias) {
    return build.call_multi("aten::native_layer_norm", {a, std::vector<ExprId>{size}, weight, bias, 1e-5})[0];
  }

  std::shared_ptr<sym::ShapeEnv> env;
  std::unique_ptr<Graph> graph;
  ops::GraphBuilder build;
};

// Whether the guards taken while the graph was built hold for these sizes.
inline bool guards_hold(sym::ShapeEnv& env, const Symbols& symbols) {
  const auto value_of = [&](sym::VarId var) -> std::optional<int64_t> {
    const sym::Symbol* s = env.symbol(var);
    if (s == nullptr) return std::nullopt;
    return symbols.at(s->source);
  };
  for (const sym::SizeGuard& guard : env.guards())
    if (sym::eval(env.pool(), guard.condition, value_of).value_or(0) == 0) return false;
  return true;
}

class Executor {
 public:
  Executor(const Graph& graph, const lower::Lowered& lowered, const Symbols& symbols)
      : graph_(graph), lowered_(lowered), program_(lowered.program) {
    std::vector<int64_t> slots;
    for (sym::VarId var : program_.symbols) slots.push_back(symbols.at(graph.env().symbol(var)->source));
    numbers_.resize(program_.sizes.output_count());
    program_.sizes.run(slots.data(), numbers_.data());
    plan_ = runtime::plan_arena(program_, numbers_);
    arrays_.resize(program_.tensors.size());
  }

  const Array& reports() const { return reports_; }  // of indices out of range in the last run

  std::vector<Array> run(const std::vector<Array>& inputs) {
    if (!program_.tensors.empty())
      for (size_t part = 0; part < 3; ++part)
        arenas_[part] =
            std::make_shared<std::vector<std::byte>>(static_cast<size_t>(plan_.bytes[part]) + 64, std::byte{0x7f});
    const auto is_output = [&](uint32_t t) { return program_.tensors[t].home == runtime::Home::Fresh; };
    for (const bool outputs : {true, false})  // intermediates may lie in outputs
      for (uint32_t t = 0; t < program_.tensors.size(); ++t)
        if (is_output(t) == outputs) bind(t, inputs);
    for (const runtime::Step& step : program_.steps) std::visit([&](const auto& s) { perform(s); }, step);
    std::vector<Array> out;
    for (TensorId id : program_.outputs) out.push_back(array(id));
    return out;
  }

 private:
  int64_t number(runtime::SizeRef ref) const { return numbers_.at(ref.index); }
  std::vector<int64_t> list(const std::vector<runtime::SizeRef>& refs) const {
    std::vector<int64_t> out;
    for (runtime::SizeRef ref : refs) out.push_back(number(ref));
    return out;
  }
  const Array& array(TensorId id) const { return arrays_.at(id.index); }

  void bind(uint32_t t, const std::vector<Array>& inputs) {
    const runtime::TensorSlot& slot = program_.tensors[t];
    Array& a = arrays_[t];
    a = {slot.dtype, list(slot.sizes), list(slot.strides), nullptr, 0};
    switch (slot.home) {
      case runtime::Home::Input:
      case runtime::Home::Constant:
        a = inputs.at(slot.position);
        break;
      case runtime::Home::Arena: {
        const auto part = static_cast<size_t>(plan_.places[t].part);
        a.memory = arenas_[part];
        EXPECT_EQ(plan_.places[t].offset % 64, 0);
        a.offset = plan_.places[t].offset / byte_size(slot.dtype);
        if (plan_.places[t].host.valid())
          a.memory = arrays_.at(plan_.places[t].host.index).memory;
        else
          EXPECT_LE(plan_.places[t].offset + number(slot.bytes), plan_.bytes[part]);
        break;
      }
      case runtime::Home::Fresh:
      case runtime::Home::Extern:
        a = make_array(slot.dtype, a.sizes, a.strides);
        break;
      case runtime::Home::View:
        a.memory = arrays_.at(slot.base.index).memory;
        a.offset = arrays_.at(slot.base.index).offset + number(slot.offset);
        break;
      case runtime::Home::Reports:
        a = make_array(slot.dtype, {std::ssize(program_.index_sites)}, {1});
        a.for_each([&](int64_t e) { a.at<int64_t>(e) = loop::kNothingReported; });
        reports_ = a;
        break;
    }
  }

  void perform(const runtime::Launch& launch) {
    std::vector<void*> buffers;
    std::vector<int64_t> symbols;
    for (TensorId id : launch.buffers) buffers.push_back(array(id).data());
    for (runtime::SizeRef ref : launch.symbols) symbols.push_back(number(ref));
    loop::interpret(*lowered_.kernels.at(launch.kernel), buffers.data(), symbols.data());
  }
  void perform(const runtime::Copy& copy) {
    std::vector<int64_t> to;
    array(copy.to).for_each([&](int64_t e) { to.push_back(e); });
    size_t i = 0;
    const int64_t bytes = byte_size(array(copy.to).dtype);
    array(copy.from).for_each([&](int64_t e) {
      std::memcpy(&array(copy.to).at<std::byte>(0) + (array(copy.to).offset + to[i]) * bytes - array(copy.to).offset,
                  &array(copy.from).at<std::byte>(0) + (array(copy.from).offset + e) * bytes - array(copy.from).offset,
                  static_cast<size_t>(bytes));
      ++i;
    });
  }
  void perform(const runtime::Release& release) {
    for (TensorId id : release.tensors) std::fill(array(id).memory->begin(), array(id).memory->end(), std::byte{0x7f});
  }
  const Array& tensor(const runtime::ExternCall& call, size_t i) const {
    return array(std::get<TensorId>(call.args[i]));
  }
  void perform(const runtime::ExternCall& call) {
    const std::string_view name = graph::op_name(call.op);
    if (name == "aten::mm" || name == "aten::bmm")
      return multiply(tensor(call, 0), tensor(call, 1), nullptr, array(call.results[0]));
    if (name == "aten::addmm")
      return multiply(tensor(call, 1), tensor(call, 2), &tensor(call, 0), array(call.results[0]));
    FAIL() << "no test code for " << name;
  }
  // [b,] m x k times [b,] k x n, plus a bias of n.
  static void multiply(const Array& a, const Array& b, const Array* bias, const Array& out) {
    const size_t r = out.sizes.size();
    const int64_t batches = r == 3 ? out.sizes[0] : 1;
    for (int64_t q = 0; q < batches; ++q)
      for (int64_t i = 0; i < out.sizes[r - 2]; ++i)
        for (int64_t j = 0; j < out.sizes[r - 1]; ++j) {
          double sum = bias != nullptr ? bias->at<float>(j * bias->strides.back()) : 0;
          for (int64_t k = 0; k < a.sizes[r - 1]; ++k)
            sum += a.at<float>((r == 3 ? q * a.strides[0] : 0) + i * a.strides[r - 2] + k * a.strides[r - 1]) *
                   b.at<float>((r == 3 ? q * b.strides[0] : 0) + k * b.strides[r - 2] + j * b.strides[r - 1]);
          out.at<float>((r == 3 ? q * out.strides[0] : 0) + i * out.strides[r - 2] + j * out.strides[r - 1]) =
              static_cast<float>(sum);
        }
  }

  const Graph& graph_;
  const lower::Lowered& lowered_;
  const Program& program_;
  std::vector<int64_t> numbers_;
  runtime::ArenaPlan plan_;
  std::shared_ptr<std::vector<std::byte>> arenas_[3];
  std::vector<Array> arrays_;
  Array reports_;
};

inline lower::Lowered lower_checked(const Graph& graph, const driver::Options& options) {
  lower::Lowered lowered = std::move(lower::lower(graph, options)).value();
  for (const auto& kernel : lowered.kernels) EXPECT_EQ(loop::verify(*kernel), "") << loop::print(*kernel);
  EXPECT_EQ(runtime::verify(lowered.program), "") << runtime::print(lowered.program);
  return lowered;
}

// Random inputs of a graph for these sizes.
inline std::vector<Array> random_inputs(const Graph& graph, const Symbols& symbols, uint32_t seed) {
  std::mt19937 rng(seed);
  const auto value_of = [&](sym::VarId var) -> std::optional<int64_t> {
    return symbols.at(graph.env().symbol(var)->source);
  };
  std::vector<Array> inputs;
  for (ValueId v : graph.inputs) {
    std::vector<int64_t> sizes, strides;
    for (ExprId e : graph.type(v).sizes) sizes.push_back(*sym::eval(graph.pool(), e, value_of));
    for (ExprId e : graph.type(v).strides) strides.push_back(*sym::eval(graph.pool(), e, value_of));
    inputs.push_back(make_array(graph.type(v).dtype, sizes, strides));
    randomize(inputs.back(), rng);
  }
  return inputs;
}

inline void expect_near(const std::vector<double>& want, const std::vector<double>& got, double tolerance,
                        const std::string& what, const lower::Lowered& lowered) {
  ASSERT_EQ(want.size(), got.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    const bool nans = std::isnan(want[i]) && std::isnan(got[i]);
    if (nans || want[i] == got[i] || std::abs(want[i] - got[i]) <= tolerance * (1 + std::abs(want[i]))) continue;
    for (const auto& kernel : lowered.kernels) std::cerr << loop::print(*kernel);
    FAIL() << what << " element " << i << ": want " << want[i] << ", got " << got[i] << "\n"
           << runtime::print(lowered.program);
  }
}

// What the reference interpreter makes of the graph, when it covers all its operators.
inline std::optional<std::vector<std::vector<double>>> reference(Graph& graph, const std::vector<Array>& inputs) {
  std::vector<ops::HostTensor> hosts;
  for (const Array& a : inputs) {
    ops::HostTensor host = ops::HostTensor::zeros(a.dtype, a.sizes);
    const int64_t bytes = byte_size(a.dtype);
    size_t i = 0;
    a.for_each([&](int64_t e) {
      std::memcpy(host.data.data() + i++ * static_cast<size_t>(bytes), static_cast<std::byte*>(a.data()) + e * bytes,
                  static_cast<size_t>(bytes));
    });
    hosts.push_back(std::move(host));
  }
  Result<ops::Interpreted> result = ops::interpret(graph, hosts);
  if (!result.ok()) return std::nullopt;
  std::vector<std::vector<double>> out;
  for (ops::HostTensor& host : result->outputs) {
    Array a{host.dtype, host.sizes, row_major(host.sizes), std::make_shared<std::vector<std::byte>>(host.data), 0};
    out.push_back(a.values());
  }
  return out;
}

// Runs the graph by the reference, unfused and fused at these sizes and compares. Returns the number of kernels of the
// fused program.
inline size_t expect_fusion_agrees(GraphFixture& f, const std::vector<Symbols>& sizes, double tolerance = 2e-4) {
  std::vector<std::vector<Array>> inputs;
  std::vector<std::optional<std::vector<std::vector<double>>>> references;
  std::vector<Symbols> valid;
  for (const Symbols& symbols : sizes) {
    if (!guards_hold(*f.env, symbols)) continue;
    valid.push_back(symbols);
    inputs.push_back(random_inputs(*f.graph, symbols, 7));
    references.push_back(reference(*f.graph, inputs.back()));
  }
  EXPECT_FALSE(valid.empty()) << "no sizes pass the guards";
  passes::run(*f.graph, {.eager_rounding = true});  // libraries with epilogues have no test code
  const lower::Lowered plain = lower_checked(*f.graph, {.fuse = false});
  const lower::Lowered fused = lower_checked(*f.graph, {});
  for (size_t s = 0; s < valid.size(); ++s) {
    const std::vector<Array> want = Executor(*f.graph, plain, valid[s]).run(inputs[s]);
    const std::vector<Array> got = Executor(*f.graph, fused, valid[s]).run(inputs[s]);
    for (size_t o = 0; o < want.size(); ++o) {
      EXPECT_EQ(got[o].sizes, want[o].sizes);
      EXPECT_EQ(got[o].strides, want[o].strides);
      const std::string what = "sizes " + std::to_string(s) + " output " + std::to_string(o);
      expect_near(want[o].values(), got[o].values(), tolerance, what + " against unfused", fused);
      if (references[s])
        expect_near((*references[s])[o], want[o].values(), tolerance, what + " unfused against reference", plain);
    }
    if (::testing::Test::HasFailure()) break;
  }
  return fused.kernels.size();
}

}  // namespace cresset::test
