// Bandwidth of generated kernels on a GPU, one line of JSON each, and what the assembler made of them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "codegen/nvptx/device_kernel.h"
#include "codegen/nvptx/nvptx_backend.h"
#include "gpu_device.h"
#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using loop::Combine;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;
using nvptx::DeviceKernel;
using nvptx::NvptxBackend;
using nvptx::Variant;

constexpr DType kDTypes[] = {DType::F32, DType::F16, DType::BF16};

// Buffers of a kernel as zeros on the device: times do not depend on values.
struct Bench {
  KernelBuilder k;
  std::string name;
  DType dtype = DType::F32;
  std::string size;

  void run();

 private:
  int64_t bytes() const {
    int64_t out = 0;
    for (size_t i = 0; i < k.elements.size(); ++i) out += k.elements[i] * byte_size(k.kernel.buffers[i].dtype);
    return out;
  }
};

struct Events {
  explicit Events(runtime::GpuDevice& device) : device(device), begin(device.make_event()), end(device.make_event()) {}
  ~Events() {
    device.destroy(begin);
    device.destroy(end);
  }
  runtime::GpuDevice& device;
  runtime::Event begin, end;
};

void Bench::run() {
  const auto found = test_device();
  if (!found.ok()) GTEST_SKIP() << describe(found.fallback());
  runtime::GpuDevice& device = **found;
  const auto compiled = NvptxBackend::get().compile({&k.kernel});
  ASSERT_TRUE(compiled.ok()) << describe(compiled.fallback());
  const DeviceKernel& kernel = DeviceKernel::from(*(*compiled)[0]);
  std::vector<int64_t> symbols;
  for (loop::VarId var : k.kernel.size_symbols()) symbols.push_back(k.sizes.at(var));
  std::vector<std::byte> block(runtime::ParamBlock::size(k.elements.size(), symbols.size()) + 8);
  const runtime::ParamBlock params{block.data(), static_cast<uint32_t>(k.elements.size()),
                                   static_cast<uint32_t>(symbols.size())};
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < k.elements.size(); ++i) {
    const auto size = static_cast<size_t>(k.elements[i] * byte_size(k.kernel.buffers[i].dtype));
    *params.buffer(i) = device.allocate(size);
    addresses.push_back(reinterpret_cast<uint64_t>(*params.buffer(i)));
    device.fill(*params.buffer(i), 0, size, nullptr);
  }
  for (size_t i = 0; i < symbols.size(); ++i) *params.symbol(i) = symbols[i];
  const auto bound = kernel.bind(params);
  const runtime::LaunchContext context;
  void* const workspace = device.allocate(static_cast<size_t>(bound->scratch_bytes(context)));
  const Events events(device);
  constexpr int kLaunches = 20, kTimes = 10;
  double best = 1e30;
  for (int time = 0; time < kTimes; ++time) {
    device.record(events.begin, nullptr);
    for (int i = 0; i < kLaunches; ++i) bound->launch(context, workspace);
    device.record(events.end, nullptr);
    best = std::min(best, device.milliseconds_between(events.begin, events.end) * 1000 / kLaunches);
  }
  const std::vector<int64_t> outputs = kernel.numbers(symbols.data());
  const nvptx::Numbers numbers(outputs);
  const nvptx::Launch launch = choose_launch(numbers, addresses, kernel.machine_for(numbers));
  const runtime::FunctionProperties used = kernel.properties_of(launch.variant);
  fmt::print(
      "{{\"kernel\": \"{}\", \"dtype\": \"{}\", \"size\": \"{}\", "
      "\"bytes\": {}, \"microseconds\": {:.2f}, "
      "\"gb_per_s\": {:.0f}, \"variant\": \"{}\", \"grid\": [{}, {}], "
      "\"block\": [{}, {}], \"registers\": {}, "
      "\"local_bytes\": {}}}\n",
      name, to_string(dtype), size, bytes(), best, static_cast<double>(bytes()) / best / 1000,
      suffix(launch.variant).substr(1), launch.grid_x, launch.grid_y, launch.block_x, launch.block_y, used.registers,
      used.local_bytes);
  std::fflush(stdout);
  EXPECT_EQ(used.local_bytes, 0) << "registers are spilled";
  device.free(workspace);
  for (const uint64_t address : addresses) device.free(reinterpret_cast<void*>(address));
}

TEST(GpuBench, SiluOfASum) {
  for (DType dtype : kDTypes)
    for (int64_t n : {int64_t{1} << 16, int64_t{1} << 20, int64_t{1} << 26}) {
      Bench b{.name = "silu(a + b)", .dtype = dtype, .size = fmt::format("{}", n)};
      KernelBuilder& k = b.k;
      const ExprId i = k.outer(k.size(n));
      const ScalarId sum = k.b.binary(Op::Add, k.load(k.input(dtype, n), i), k.load(k.input(dtype, n), i));
      const ScalarId one = k.b.constant(DType::F32, 1);
      const ScalarId grown = k.b.binary(Op::Add, one, k.b.unary(Op::Exp, k.b.unary(Op::Neg, sum)));
      k.store(k.output(dtype, n), i, k.b.binary(Op::Div, sum, grown));
      b.run();
    }
}

TEST(GpuBench, Casts) {
  for (const auto& [from, to] :
       {std::pair(DType::F32, DType::BF16), {DType::BF16, DType::F32}, {DType::F16, DType::F32}})
    for (int64_t n : {int64_t{1} << 16, int64_t{1} << 20, int64_t{1} << 26}) {
      Bench b{.name = fmt::format("cast to {}", to_string(to)), .dtype = from, .size = fmt::format("{}", n)};
      const ExprId i = b.k.outer(b.k.size(n));
      b.k.store(b.k.output(to, n), i, b.k.load(b.k.input(from, n), i));
      b.run();
    }
}

TEST(GpuBench, Broadcasts) {
  for (DType dtype : kDTypes)
    for (const auto& [rows, cols] : {std::pair(256, 256), {1024, 1024}, {16384, 4096}}) {
      Bench b{.name = "x * row + column", .dtype = dtype, .size = fmt::format("{}x{}", rows, cols)};
      KernelBuilder& k = b.k;
      const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(r), j = k.outer(c);
      const int64_t n = int64_t{rows} * cols;
      const ExprId at = k.pool.add(k.pool.mul(i, c), j);
      const ScalarId x = k.load(k.input(dtype, n), at), row = k.load(k.input(dtype, cols), j);
      const ScalarId column = k.load(k.input(dtype, rows), i);
      k.store(k.output(dtype, n), at, k.b.binary(Op::Add, k.b.binary(Op::Mul, x, row), column));
      b.run();
    }
}

TEST(GpuBench, Transposes) {
  for (DType dtype : kDTypes)
    for (const auto& [rows, cols] : {std::pair(512, 512), {4096, 4096}, {16384, 4000}}) {
      Bench b{.name = "transpose", .dtype = dtype, .size = fmt::format("{}x{}", rows, cols)};
      KernelBuilder& k = b.k;
      const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(r), j = k.outer(c);
      const int64_t n = int64_t{rows} * cols;
      const ScalarId x = k.load(k.input(dtype, n), k.pool.add(k.pool.mul(j, r), i));
      k.store(k.output(dtype, n), k.pool.add(k.pool.mul(i, c), j), x);
      b.run();
    }
}

// All indices are 0: the time of the output, without reports.
TEST(GpuBench, Embedding) {
  for (DType dtype : kDTypes)
    for (const auto& [tokens, width] : {std::pair(4096, 1024), {65536, 4096}}) {
      Bench b{.name = "embedding", .dtype = dtype, .size = fmt::format("{}x{}", tokens, width)};
      KernelBuilder& k = b.k;
      const ExprId cols = k.size(width), i = k.outer(k.size(tokens)), j = k.outer(cols);
      const auto index = k.input(DType::I64, tokens), table = k.input(dtype, int64_t{1000} * width);
      const auto out = k.output(dtype, int64_t{tokens} * width), report = k.output(DType::I64, 1);
      const auto row = k.b.checked_index(k.load(index, i), k.size(1000), report, 0);
      const ScalarId x = k.b.load(table, k.pool.add(k.pool.mul(row.index, cols), j), row.mask);
      k.store(out, k.pool.add(k.pool.mul(i, cols), j), x);
      b.run();
    }
}

TEST(GpuBench, Dropout) {
  for (DType dtype : kDTypes)
    for (int64_t n : {int64_t{1} << 20, int64_t{1} << 26}) {
      Bench b{.name = "dropout", .dtype = dtype, .size = fmt::format("{}", n)};
      KernelBuilder& k = b.k;
      const ExprId i = k.outer(k.size(n));
      const auto state = k.input(DType::I64, 2);
      const ScalarId seed = k.load(state, k.pool.constant(0)), offset = k.load(state, k.pool.constant(1));
      const ScalarId position = k.b.binary(Op::Add, offset, k.b.size(i));
      const ScalarId bits = k.b.philox(seed, k.b.constant_int(DType::I64, 0), position);
      const ScalarId uniform = k.b.binary(Op::Mul, k.b.cast(bits, DType::F32), k.b.constant(DType::F32, 0x1p-32));
      const ScalarId x = k.load(k.input(dtype, n), i),
                     keep = k.b.binary(Op::Lt, uniform, k.b.constant(DType::F32, 0.9));
      const ScalarId scaled = k.b.binary(Op::Mul, x, k.b.constant(DType::F32, 1 / 0.9));
      k.store(k.output(dtype, n), i, k.b.select(keep, scaled, k.b.constant(DType::F32, 0)));
      b.run();
    }
}

TEST(GpuBench, Softmax) {
  for (DType dtype : kDTypes)
    for (const auto& [rows, cols] : {std::pair(65536, 128), {16384, 1024}, {8192, 4096}, {512, 131072}}) {
      Bench b{.name = "softmax", .dtype = dtype, .size = fmt::format("{}x{}", rows, cols)};
      KernelBuilder& k = b.k;
      const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(r), j = k.inner(c);
      const int64_t n = int64_t{rows} * cols;
      const ExprId at = k.pool.add(k.pool.mul(i, c), j);
      const ScalarId x = k.load(k.input(dtype, n), at);
      const ScalarId e = k.b.unary(Op::Exp, k.b.binary(Op::Sub, x, k.b.reduce(Combine::Max, x)));
      k.store(k.output(dtype, n), at, k.b.binary(Op::Div, e, k.b.reduce(Combine::Sum, e)));
      b.run();
    }
}

// Rows of vocabularies: the logarithm of the sum of exponentials, without results at the points.
TEST(GpuBench, LogSumExp) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (const auto& [rows, cols] : {std::pair(8192, 32000), {4096, 50257}, {2048, 128256}}) {
      Bench b{.name = "log sum exp", .dtype = dtype, .size = fmt::format("{}x{}", rows, cols)};
      KernelBuilder& k = b.k;
      const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(r), j = k.inner(c);
      const ScalarId x = k.load(k.input(dtype, int64_t{rows} * cols), k.pool.add(k.pool.mul(i, c), j));
      const ScalarId most = k.b.reduce(Combine::Max, x);
      const ScalarId sum = k.b.reduce(Combine::Sum, k.b.unary(Op::Exp, k.b.binary(Op::Sub, x, most)));
      k.store(k.output(DType::F32, rows), i, k.b.binary(Op::Add, most, k.b.unary(Op::Log, sum)));
      b.run();
    }
}

// The gradient of layer norm by its input: two sums of a row at once.
TEST(GpuBench, LayerNormBackward) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (const auto& [rows, cols] : {std::pair(32768, 768), {8192, 4096}}) {
      Bench b{.name = "layer norm backward", .dtype = dtype, .size = fmt::format("{}x{}", rows, cols)};
      KernelBuilder& k = b.k;
      const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(r), j = k.inner(c);
      const int64_t n = int64_t{rows} * cols;
      const ExprId at = k.pool.add(k.pool.mul(i, c), j);
      const ScalarId grad = k.b.binary(Op::Mul, k.load(k.input(dtype, n), at), k.load(k.input(dtype, cols), j));
      const ScalarId x = k.load(k.input(dtype, n), at), mean = k.load(k.input(DType::F32, rows), i);
      const ScalarId rstd = k.load(k.input(DType::F32, rows), i), count = k.b.cast(k.b.size(c), DType::F32);
      const ScalarId normal = k.b.binary(Op::Mul, k.b.binary(Op::Sub, x, mean), rstd);
      const ScalarId sum = k.b.binary(Op::Div, k.b.reduce(Combine::Sum, grad), count);
      const ScalarId dot = k.b.binary(Op::Div, k.b.reduce(Combine::Sum, k.b.binary(Op::Mul, grad, normal)), count);
      const ScalarId rest = k.b.binary(Op::Sub, k.b.binary(Op::Sub, grad, sum), k.b.binary(Op::Mul, normal, dot));
      k.store(k.output(dtype, n), at, k.b.binary(Op::Mul, rest, rstd));
      b.run();
    }
}

TEST(GpuBench, CumulativeSums) {
  for (const auto& [rows, cols] : {std::pair(65536, 128), {4096, 4096}, {256, 128256}})
    for (const bool columns : {false, true}) {
      Bench b{.name = columns ? "cumulative sum of columns" : "cumulative sum of rows",
              .dtype = DType::F32,
              .size = fmt::format("{}x{}", rows, cols)};
      KernelBuilder& k = b.k;
      const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(columns ? c : r), j = k.inner(columns ? r : c);
      const ExprId at = columns ? k.pool.add(k.pool.mul(j, c), i) : k.pool.add(k.pool.mul(i, c), j);
      const int64_t n = int64_t{rows} * cols;
      k.store(k.output(DType::F32, n), at, k.b.scan(Combine::Sum, k.load(k.input(DType::F32, n), at)));
      b.run();
    }
}

TEST(GpuBench, LayerNorm) {
  for (DType dtype : kDTypes)
    for (const auto& [rows, cols] : {std::pair(32768, 768), {8192, 4096}, {2048, 16384}}) {
      Bench b{.name = "layer norm", .dtype = dtype, .size = fmt::format("{}x{}", rows, cols)};
      KernelBuilder& k = b.k;
      const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(r), j = k.inner(c);
      const int64_t n = int64_t{rows} * cols;
      const ExprId at = k.pool.add(k.pool.mul(i, c), j);
      const ScalarId x = k.load(k.input(dtype, n), at), count = k.b.cast(k.b.size(c), DType::F32);
      const ScalarId mean = k.b.binary(Op::Div, k.b.reduce(Combine::Sum, x), count);
      const ScalarId centered = k.b.binary(Op::Sub, x, mean);
      const ScalarId squares = k.b.reduce(Combine::Sum, k.b.binary(Op::Mul, centered, centered));
      const ScalarId variance = k.b.binary(Op::Div, squares, count);
      const ScalarId rstd = k.b.unary(Op::Rsqrt, k.b.binary(Op::Add, variance, k.b.constant(DType::F32, 1e-5)));
      const ScalarId scaled = k.b.binary(Op::Mul, k.b.binary(Op::Mul, centered, rstd), k.load(k.input(dtype, cols), j));
      k.store(k.output(dtype, n), at, k.b.binary(Op::Add, scaled, k.load(k.input(dtype, cols), j)));
      b.run();
    }
}

// Rows, columns, and one long row that blocks share.
TEST(GpuBench, Sums) {
  for (DType dtype : kDTypes)
    for (const auto& [rows, cols] : {std::pair(65536, 512), {8192, 8192}, {1, 1 << 26}, {16, 1 << 22}}) {
      for (const bool over_rows : {false, true}) {
        if (over_rows && rows < 64) continue;
        Bench b{.name = over_rows ? "sum of columns" : "sum of rows",
                .dtype = dtype,
                .size = fmt::format("{}x{}", rows, cols)};
        KernelBuilder& k = b.k;
        const ExprId r = k.size(rows), c = k.size(cols);
        const ExprId kept = k.outer(over_rows ? c : r), summed = k.inner(over_rows ? r : c);
        const ExprId at = over_rows ? k.pool.add(k.pool.mul(summed, c), kept) : k.pool.add(k.pool.mul(kept, c), summed);
        const ScalarId x = k.load(k.input(dtype, int64_t{rows} * cols), at);
        k.store(k.output(dtype, over_rows ? cols : rows), kept, k.b.reduce(Combine::Sum, x));
        b.run();
      }
    }
}

}  // namespace
}  // namespace cresset::codegen::cpu
