// The GPU's code generator without a GPU: multipliers, choices of launches, text, what the assembler says, and launches
// on a device that only takes notes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "codegen/nvptx/device_kernel.h"
#include "codegen/nvptx/emit_kernel.h"
#include "codegen/nvptx/nvptx_backend.h"
#include "kernel_harness.h"
#include "runtime/cuda/cuda_device.h"

namespace cresset::codegen::nvptx {
namespace {

using cpu::KernelBuilder;
using loop::Combine;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;
using testing::HasSubstr;
using testing::Not;

TEST(NvptxLaunch, MultipliersDivideExactly) {
  std::mt19937_64 random(5);
  const auto divided = [](uint64_t n, uint64_t magic) { return (n * (magic & 0xffffffff)) >> (magic >> 32); };
  std::vector<int64_t> divisors{1,     2,     3,     5,          7,          64,         641,
                                65535, 65536, 65537, 0x7fffffff, 0x7ffffffe, 0x40000000, 0x40000001};
  for (int i = 0; i < 2000; ++i) divisors.push_back(static_cast<int64_t>(random() >> (33 + i % 30)) + 1);
  for (const int64_t d : divisors) {
    const uint64_t magic = magic_of(d);
    for (int i = 0; i < 50; ++i) {
      uint64_t n = random() >> (33 + i % 31);
      if (i % 2 == 0) n = std::min<uint64_t>(n / d * d, 0x7fffffff);  // a multiple...
      if (i % 4 == 0 && n > 0) --n;                                   // ... and what is just below
      ASSERT_EQ(divided(n, magic), n / static_cast<uint64_t>(d)) << n << " / " << d;
    }
    ASSERT_EQ(divided(0x7fffffff, magic), 0x7fffffff / static_cast<uint64_t>(d)) << d;
  }
}

struct Planned {
  explicit Planned(KernelBuilder& k) : schedule(make_schedule(k.kernel)) {
    std::unordered_map<VarId, uint32_t> slots;
    const std::vector<VarId> order = k.kernel.size_symbols();
    for (size_t i = 0; i < order.size(); ++i) slots[order[i]] = static_cast<uint32_t>(i);
    for (const VarId symbol : order) symbols.push_back(k.sizes.at(symbol));
    program = sym::SizeProgram::compile(k.pool, schedule.numbers, slots);
    outputs.resize(program.output_count());
    program.run(symbols.data(), outputs.data());
  }
  Launch choose(std::vector<uint64_t> addresses) { return choose_launch(Numbers(outputs), addresses, Machine{}); }
  Schedule schedule;
  sym::SizeProgram program;
  std::vector<int64_t> symbols, outputs;
};

void add(KernelBuilder& k, int64_t rows, int64_t cols, DType dtype) {
  const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(r), j = k.outer(c);
  const ExprId at = k.pool.add(k.pool.mul(i, c), j);
  const ScalarId x = k.load(k.input(dtype, 0), at), y = k.load(k.input(dtype, 0), j);
  k.store(k.output(dtype, 0), at, k.b.binary(Op::Add, x, y));
}

TEST(NvptxLaunch, VariantsBySizesAndAddresses) {
  KernelBuilder fits, odd, huge;
  add(fits, 100, 64, DType::F32);
  add(odd, 100, 63, DType::F32);
  add(huge, int64_t{1} << 20, int64_t{1} << 20, DType::F32);
  EXPECT_EQ(Planned(fits).choose({256, 512, 1024}).variant, Variant::Wide);
  EXPECT_EQ(Planned(fits).choose({256, 516, 1024}).variant, Variant::Narrow32);  // an address between vectors
  EXPECT_EQ(Planned(odd).choose({256, 512, 1024}).variant, Variant::Narrow32);
  EXPECT_EQ(Planned(huge).choose({256, 512, 1024}).variant, Variant::Narrow64);
  const Launch launch = Planned(fits).choose({256, 512, 1024});
  EXPECT_EQ(launch.grid_x, 7u);  // 100 x 16 chunks
  EXPECT_EQ(launch.block_x, 256u);
}

TEST(NvptxLaunch, NothingToDo) {
  KernelBuilder k;
  add(k, 0, 64, DType::F32);
  EXPECT_TRUE(Planned(k).choose({256, 512, 1024}).nothing());
}

void softmax(KernelBuilder& k, int64_t rows, int64_t cols, DType dtype) {
  const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(r), j = k.inner(c);
  const ExprId at = k.pool.add(k.pool.mul(i, c), j);
  const ScalarId x = k.load(k.input(dtype, 0), at);
  const ScalarId e = k.b.unary(Op::Exp, k.b.binary(Op::Sub, x, k.b.reduce(Combine::Max, x)));
  k.store(k.output(dtype, 0), at, k.b.binary(Op::Div, e, k.b.reduce(Combine::Sum, e)));
}

void sum(KernelBuilder& k, int64_t rows, int64_t cols, DType dtype, bool of_columns) {
  const ExprId r = k.size(rows), c = k.size(cols);
  const ExprId kept = k.outer(of_columns ? c : r), summed = k.inner(of_columns ? r : c);
  const ExprId at = of_columns ? k.pool.add(k.pool.mul(summed, c), kept) : k.pool.add(k.pool.mul(kept, c), summed);
  k.store(k.output(dtype, 0), kept, k.b.reduce(Combine::Sum, k.load(k.input(dtype, 0), at)));
}

void transpose(KernelBuilder& k, int64_t rows, int64_t cols, DType dtype) {
  const ExprId r = k.size(rows), c = k.size(cols), i = k.outer(r), j = k.outer(c);
  const ScalarId x = k.load(k.input(dtype, 0), k.pool.add(k.pool.mul(j, r), i));
  k.store(k.output(dtype, 0), k.pool.add(k.pool.mul(i, c), j), x);
}

TEST(NvptxLaunch, TransposesAreTiled) {
  KernelBuilder f32, bf16, thin, huge;
  transpose(f32, 100, 64, DType::F32);
  transpose(bf16, 100, 65, DType::BF16);
  transpose(thin, 3, 10000, DType::F32);
  transpose(huge, int64_t{1} << 20, int64_t{1} << 20, DType::F32);
  const Launch launch = Planned(f32).choose({4, 8});
  EXPECT_EQ(launch.variant, Variant::Tiled);
  EXPECT_EQ(launch.grid_x, 8u);  // squares of 32
  EXPECT_EQ(launch.block_x, 32u);
  EXPECT_EQ(launch.block_y, 8u);
  EXPECT_EQ(Planned(bf16).choose({4, 8}).grid_x, 4u);  // squares of 64
  EXPECT_NE(Planned(thin).choose({4, 8}).variant, Variant::Tiled);
  EXPECT_EQ(Planned(huge).choose({4, 8}).variant, Variant::Narrow64);
}

TEST(NvptxLaunch, RowsAreKeptStreamedOrSplit) {
  KernelBuilder brief, middle, endless, few, columns;
  softmax(brief, 10000, 128, DType::F32);
  softmax(middle, 10000, 4096, DType::BF16);
  softmax(endless, 1000, 1 << 20, DType::F32);
  sum(few, 1, 1 << 24, DType::F32, false);
  KernelBuilder odd, middling;
  softmax(odd, 10000, 50257, DType::BF16);
  softmax(middling, 10000, 32768, DType::F32);
  EXPECT_EQ(Planned(odd).choose({256, 512}).variant, Variant::Shared);
  EXPECT_EQ(Planned(odd).choose({256, 512}).shared_bytes, 2u * 50272);
  EXPECT_EQ(Planned(middling).choose({256, 512}).variant, Variant::Shared);
  EXPECT_EQ(Planned(middling).choose({256, 512}).block_x, 512u);
  sum(columns, 100000, 64, DType::F32, true);
  Launch launch = Planned(brief).choose({256, 512});
  EXPECT_EQ(launch.variant, Variant::Kept);
  EXPECT_EQ(launch.block_x, 8u);  // 32 chunks: 4 a thread
  EXPECT_EQ(launch.block_y, 32u);
  launch = Planned(middle).choose({256, 512});
  EXPECT_EQ(launch.variant, Variant::Kept);
  EXPECT_EQ(launch.block_x, 128u);
  launch = Planned(endless).choose({256, 512});
  EXPECT_EQ(launch.variant, Variant::Wide);
  EXPECT_EQ(launch.splits, 1u);
  launch = Planned(few).choose({256, 512});
  EXPECT_EQ(launch.variant, Variant::Wide);
  EXPECT_GT(launch.splits, 64u);
  EXPECT_EQ(launch.workspace_bytes, int64_t{8} * launch.splits);
  launch = Planned(columns).choose({256, 512});
  EXPECT_GT(launch.splits, 8u);
}

std::string ptx(KernelBuilder& k) { return NvptxBackend::ptx_of(k.kernel, "kernel", 90).value(); }

TEST(NvptxText, WholeVectorsAreReadAndWritten) {
  KernelBuilder f32, bf16;
  add(f32, 100, 64, DType::F32);
  add(bf16, 100, 64, DType::BF16);
  EXPECT_THAT(ptx(f32), HasSubstr("ld.global.nc.v4.f32"));
  EXPECT_THAT(ptx(f32), HasSubstr("st.global.v4.f32"));
  const std::string text = ptx(bf16);
  EXPECT_THAT(text, HasSubstr("ld.global.nc.v4.u32"));
  EXPECT_THAT(text, HasSubstr("st.global.v4.b32"));
  EXPECT_THAT(text, HasSubstr("cvt.rn.bf16x2.f32"));
  EXPECT_THAT(text, HasSubstr(".maxntid 256, 1, 1"));
  EXPECT_THAT(text, Not(HasSubstr("call")));
}

TEST(NvptxText, ShortIndicesMultiplyInsteadOfDividing) {
  KernelBuilder k;
  add(k, 100, 64, DType::F32);
  const std::string text = ptx(k);
  const std::string wide =
      text.substr(text.find(".entry kernel_wide"), text.find(".entry kernel_narrow") - text.find(".entry kernel_wide"));
  EXPECT_THAT(wide, Not(HasSubstr("div.")));
  EXPECT_THAT(wide, Not(HasSubstr("rem.")));
}

TEST(NvptxText, MultiplicationsAreNotFused) {
  KernelBuilder k;
  const ExprId i = k.outer(k.size(100));
  const auto x = k.input(DType::F32, 100);
  const ScalarId v = k.load(x, i);
  k.store(k.output(DType::F32, 100), i, k.b.binary(Op::Add, k.b.binary(Op::Mul, v, v), v));
  EXPECT_THAT(ptx(k), HasSubstr("mul.rn.f32"));
  EXPECT_THAT(ptx(k), Not(HasSubstr("fma.rn")));
}

// ptxas where it is installed: no register is spilled, on the oldest and on the newest chip.
void expect_assembles(KernelBuilder& k, const std::string& what) {
  static const bool has_ptxas = open_ptxas().ok();
  if (!has_ptxas) GTEST_SKIP() << "ptxas is not installed";
  for (const int chip : {80, 90}) {
    const auto text = NvptxBackend::ptx_of(k.kernel, "kernel", chip);
    ASSERT_TRUE(text.ok()) << what << ": " << describe(text.fallback());
    const auto usage = usage_by_ptxas(*text, chip);
    ASSERT_TRUE(usage.ok()) << what << ": " << describe(usage.fallback()) << *text;
    EXPECT_FALSE(usage->empty());
    for (const Usage& u : *usage) {
      EXPECT_EQ(u.spill_bytes, 0) << what << " " << u.function << " at sm_" << chip;
      EXPECT_EQ(u.stack_bytes, 0) << what << " " << u.function << " at sm_" << chip;
    }
  }
}

TEST(NvptxAssembly, PointsAndRows) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
    KernelBuilder points, rows, columns, all, turned;
    transpose(turned, 100, 64, dtype);
    expect_assembles(turned, "transpose " + std::string(to_string(dtype)));
    add(points, 100, 64, dtype);
    expect_assembles(points, "add " + std::string(to_string(dtype)));
    sum(columns, 100, 64, dtype, true);
    expect_assembles(columns, "column sum " + std::string(to_string(dtype)));
    sum(all, 100, 64, dtype, false);
    expect_assembles(all, "row sum " + std::string(to_string(dtype)));
    softmax(rows, 100, 64, dtype);
    expect_assembles(rows, "softmax " + std::string(to_string(dtype)));
  }
}

TEST(NvptxAssembly, EveryFunction) {
  for (DType dtype : {DType::F32, DType::F64}) {
    for (int o = 0; o <= static_cast<int>(Op::IsInf); ++o) {
      const Op op = static_cast<Op>(o);
      if (!GpuOps::is_function(op) || !GpuOps::knows(op, dtype)) continue;
      KernelBuilder k;
      const ExprId i = k.outer(k.size(100));
      const ScalarId x = k.load(k.input(dtype, 100), i), y = k.load(k.input(dtype, 100), i);
      k.store(k.output(dtype, 100), i, loop::arity(op) == 1 ? k.b.unary(op, x) : k.b.binary(op, x, y));
      expect_assembles(k, std::string(loop::to_string(op)) + " " + std::string(to_string(dtype)));
    }
  }
}

// What a launch hands to the device.
class NotingDevice final : public runtime::GpuDevice {
 public:
  struct Launched {
    std::string function;
    runtime::LaunchConfig config;
    std::vector<int64_t> parameters;
    runtime::Stream stream;
  };
  NotingDevice() {
    properties_.multiprocessors = 132, properties_.threads_of_multiprocessor = 2048, properties_.chip = 90;
    properties_.shared_bytes = 227 * 1024;
  }
  const runtime::DeviceProperties& properties() const override { return properties_; }
  Result<void*> load(const runtime::KernelImage& image) override {
    images.push_back(image.bytes);
    if (fails) return Fallback{FallbackReason::CodegenFailed, "loading", ""};
    return static_cast<void*>(this);
  }
  runtime::DeviceFunction function(void*, const std::string& name) override {
    if (images.back().find(name) == std::string::npos) return {};
    functions.push_back(name);
    return {reinterpret_cast<void*>(functions.size())};
  }
  runtime::FunctionProperties properties_of(runtime::DeviceFunction) override { return {}; }
  void allow_shared(runtime::DeviceFunction, int64_t) override {}
  void launch(runtime::DeviceFunction f, const runtime::LaunchConfig& config, std::span<const int64_t> parameters,
              runtime::Stream stream) override {
    launched.push_back(
        {functions[reinterpret_cast<size_t>(f.handle) - 1], config, {parameters.begin(), parameters.end()}, stream});
  }
  void* allocate(size_t) override { return nullptr; }
  void free(void*) override {}
  void* allocate_host(size_t) override { return nullptr; }
  void free_host(void*) override {}
  void copy(void*, const void*, size_t, runtime::Stream) override {}
  void fill(void*, uint8_t, size_t, runtime::Stream) override {}
  void synchronize(runtime::Stream) override {}
  runtime::Event make_event() override { return nullptr; }
  void destroy(runtime::Event) override {}
  void record(runtime::Event, runtime::Stream) override {}
  bool is_done(runtime::Event) override { return true; }
  double milliseconds_between(runtime::Event, runtime::Event) override { return 0; }
  runtime::Stream make_stream() override { return nullptr; }
  bool is_recording(runtime::Stream) override { return false; }
  void begin_recording(runtime::Stream) override {}
  runtime::GraphNode last_recorded(runtime::Stream) override { return nullptr; }
  std::unique_ptr<runtime::LaunchGraph> end_recording(runtime::Stream) override { return nullptr; }

  bool fails = false;
  std::vector<std::string> images, functions;
  std::vector<Launched> launched;

 private:
  runtime::DeviceProperties properties_;
};

TEST(NvptxAssembly, GathersUpdatesAndRandomNumbers) {
  KernelBuilder gather, scatter, random;
  for (KernelBuilder* k : {&gather, &scatter}) {
    const ExprId extent = k->size(10), cols = k->size(64), i = k->outer(k->size(100)), j = k->outer(cols);
    const auto index = k->input(DType::I64, 0), from = k->input(DType::F32, 0), to = k->output(DType::F32, 0);
    const auto at = k->b.checked_index(k->load(index, i), extent, k->output(DType::I64, 0), 0);
    const ExprId there = k->pool.add(k->pool.mul(at.index, cols), j), here = k->pool.add(k->pool.mul(i, cols), j);
    k->store(to, k == &gather ? here : there, k->b.load(from, k == &gather ? there : here, at.mask));
    if (k == &scatter) k->kernel.stores.back().combine = Combine::Sum;
  }
  EXPECT_THAT(ptx(scatter), HasSubstr(".global.add.f32"));
  expect_assembles(gather, "gather");
  expect_assembles(scatter, "scatter");
  const ExprId i = random.outer(random.size(100));
  const ScalarId seed = random.load(random.input(DType::I64, 1), random.pool.constant(0));
  const ScalarId bits = random.b.philox(seed, random.b.constant_int(DType::I64, 0), random.b.size(i));
  random.store(random.output(DType::F32, 0), i, random.b.cast(bits, DType::F32));
  EXPECT_THAT(ptx(random), HasSubstr("mul.wide.u32"));
  expect_assembles(random, "random numbers");
}

class CopyingAssembler final : public Assembler {
 public:
  Result<std::string> assemble(const std::string& ptx, int) const override { return ptx; }
  std::string version() const override { return "none"; }
};

class NvptxBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    NvptxBackend::get().configure(
        {.device = device, .assembler = std::make_shared<CopyingAssembler>(), .from_disk_cache = false});
    NvptxBackend::get().clear_memory_cache();
  }
  void TearDown() override {
    NvptxBackend::get().configure({});
    NvptxBackend::get().clear_memory_cache();
  }
  std::shared_ptr<NotingDevice> device = std::make_shared<NotingDevice>();
};

TEST_F(NvptxBackendTest, ParametersAreTheBlockAndMultipliers) {
  KernelBuilder k;
  add(k, 100, 64, DType::F32);
  const auto compiled = NvptxBackend::get().compile({&k.kernel});
  ASSERT_TRUE(compiled.ok()) << describe(compiled.fallback());
  const std::vector<int64_t> symbols = Planned(k).symbols;
  std::vector<std::byte> block(runtime::ParamBlock::size(3, symbols.size()));
  const runtime::ParamBlock params{block.data(), 3, static_cast<uint32_t>(symbols.size())};
  for (size_t i = 0; i < symbols.size(); ++i) *params.symbol(i) = symbols[i];
  const auto bound = (*compiled)[0]->bind(params);
  int stream = 0;
  runtime::LaunchContext context;
  context.stream = &stream;
  for (uint64_t base : {uint64_t{4096}, uint64_t{4100}}) {
    for (size_t i = 0; i < 3; ++i) *params.buffer(i) = reinterpret_cast<void*>(base + 1024 * i);
    bound->launch(context, nullptr);
  }
  ASSERT_EQ(device->launched.size(), 2u);
  const NotingDevice::Launched& wide = device->launched[0];
  EXPECT_THAT(wide.function, testing::EndsWith("_wide"));
  EXPECT_THAT(device->launched[1].function, testing::EndsWith("_narrow"));
  EXPECT_EQ(wide.stream, &stream);
  EXPECT_EQ(wide.config.grid[0], 7u);
  EXPECT_EQ(wide.parameters[0], 4096);
  EXPECT_EQ(wide.parameters[2], 4096 + 2048);
  for (size_t i = 0; i < symbols.size(); ++i) EXPECT_EQ(wide.parameters[3 + i], symbols[i]);
  const Schedule schedule = make_schedule(k.kernel);
  EXPECT_EQ(wide.parameters.size(), parameter_count(k.kernel, schedule));
}

TEST_F(NvptxBackendTest, SplitRowsAreLaunchedOncePerPass) {
  KernelBuilder k;
  softmax(k, 1, 1 << 22, DType::F32);
  const auto compiled = NvptxBackend::get().compile({&k.kernel});
  ASSERT_TRUE(compiled.ok()) << describe(compiled.fallback());
  const std::vector<int64_t> symbols = Planned(k).symbols;
  std::vector<std::byte> block(runtime::ParamBlock::size(2, symbols.size()));
  const runtime::ParamBlock params{block.data(), 2, static_cast<uint32_t>(symbols.size())};
  for (size_t i = 0; i < symbols.size(); ++i) *params.symbol(i) = symbols[i];
  const auto bound = (*compiled)[0]->bind(params);
  const runtime::LaunchContext context;
  EXPECT_GT(bound->scratch_bytes(context), 0);
  for (size_t i = 0; i < 2; ++i) *params.buffer(i) = reinterpret_cast<void*>(uint64_t{4096} + (uint64_t{1} << 25) * i);
  bound->launch(context, reinterpret_cast<void*>(uint64_t{77777}));
  ASSERT_EQ(device->launched.size(), 2u);  // maxima and sums together, then the results
  for (size_t pass = 0; pass < 2; ++pass) {
    const std::vector<int64_t>& parameters = device->launched[pass].parameters;
    EXPECT_EQ(parameters[parameters.size() - 2], 77777);
    EXPECT_EQ(parameters.back() >> 32, static_cast<int64_t>(pass));
    EXPECT_EQ(parameters.back() & 0xffffffff, device->launched[pass].config.grid[1]);
  }
}

TEST_F(NvptxBackendTest, ImagesThatDoNotLoadAreAReason) {
  device->fails = true;
  KernelBuilder k;
  add(k, 100, 64, DType::F32);
  const auto compiled = NvptxBackend::get().compile({&k.kernel});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.fallback().attempted, "loading");
}

TEST(NvptxAssembler, MissingLibrariesAreAReason) {
  const auto found = open_ptxas("/no/such/ptxas");
  ASSERT_FALSE(found.ok());
  const auto driver = runtime::cuda::Driver::open("/no/such/libcuda.so");
  ASSERT_FALSE(driver.ok());
  EXPECT_THAT(driver.fallback().attempted, HasSubstr("/no/such/libcuda.so"));
}

// With CRESSET_TEST_CUDA_LIBRARIES=<folder of libnvJitLink>.
TEST(NvptxAssembler, NvJitLinkMakesCubins) {
  const char* folder = std::getenv("CRESSET_TEST_CUDA_LIBRARIES");
  const auto found = open_nvjitlink(folder == nullptr ? std::vector<std::string>() : std::vector<std::string>{folder});
  if (!found.ok()) GTEST_SKIP() << describe(found.fallback());
  KernelBuilder k;
  softmax(k, 10, 64, DType::BF16);
  const auto cubin = (*found)->assemble(ptx(k), 90);
  ASSERT_TRUE(cubin.ok()) << describe(cubin.fallback());
  EXPECT_EQ(cubin->substr(1, 3), "ELF");
  EXPECT_THAT(*cubin, HasSubstr("kernel_kept"));
  const auto wrong = (*found)->assemble("no ptx", 90);
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT((*found)->version(), HasSubstr("nvjitlink"));
}

}  // namespace
}  // namespace cresset::codegen::nvptx
