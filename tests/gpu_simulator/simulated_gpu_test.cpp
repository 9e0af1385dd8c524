// Kernels by way of the backend of GPUs and the simulated device, as programs launch them. The tests of kernels in
// tests/unit/codegen run so too.
#include "simulated_gpu.h"

#include "codegen/nvptx/nvptx_backend.h"
#include "gpu_device.h"
#include "kernel_harness.h"

namespace cresset::codegen {
namespace {

using cpu::KernelBuilder;
using gpu_simulator::SimulatedGpu;
using runtime::DeviceError;

const std::shared_ptr<SimulatedGpu>& simulated() {
  static const auto* const device = [] {
    auto* made = new std::shared_ptr<SimulatedGpu>(std::make_shared<SimulatedGpu>());
    nvptx::NvptxBackend::get().configure(
        {.device = *made, .assembler = gpu_simulator::make_simulator_assembler(), .from_disk_cache = false});
    return made;
  }();
  return *device;
}

// y = x * 3, and the sum of each row.
void scale_and_sum(KernelBuilder& k) {
  constexpr int64_t kRows = 3, kColumns = 50;
  const auto row = k.outer(k.size(kRows)), columns = k.size(kColumns), column = k.inner(columns);
  const auto x = k.input(DType::F32, kRows * kColumns), y = k.output(DType::F32, kRows);
  const auto element = k.load(x, k.pool.add(k.pool.mul(row, columns), column));
  const auto scaled = k.b.binary(loop::Op::Mul, element, k.b.constant(DType::F32, 3));
  k.store(y, row, k.b.reduce(loop::Combine::Sum, scaled));
}

TEST(SimulatedGpu, RunsAKernelOfTheBackend) {
  const int64_t launches = simulated()->counters().launches, live = simulated()->counters().live_allocations;
  KernelBuilder k;
  scale_and_sum(k);
  cpu::expect_same(k, {.ulps = 16});
  EXPECT_GT(simulated()->counters().launches, launches);
  EXPECT_EQ(simulated()->counters().live_allocations, live);
}

TEST(SimulatedGpu, FailsWhenATestWantsIt) {
  KernelBuilder k;
  scale_and_sum(k);
  simulated()->fail_launch(1);
  EXPECT_THROW(cpu::expect_same(k), DeviceError);
  simulated()->fail_allocation(2);
  EXPECT_THROW(cpu::expect_same(k), DeviceError);
  cpu::expect_same(k, {.ulps = 16});
}

TEST(SimulatedGpu, RefusesLaunchesBeyondItsLimits) {
  const auto module = gpu_simulator::SimtModule::parse("define ptx_kernel void @nothing() { ret void }");
  ASSERT_TRUE(module.ok());
  const runtime::DeviceFunction function = simulated()->function(module->get(), "nothing");
  ASSERT_NE(function.handle, nullptr);
  EXPECT_EQ(simulated()->function(module->get(), "other").handle, nullptr);
  EXPECT_NO_THROW(simulated()->launch(function, {.block = {1024, 1, 1}}, {}, nullptr));
  EXPECT_THROW(simulated()->launch(function, {.block = {1025, 1, 1}}, {}, nullptr), DeviceError);
  EXPECT_THROW(simulated()->launch(function, {.grid = {1, 65536, 1}}, {}, nullptr), DeviceError);
  EXPECT_THROW(simulated()->launch(function, {.shared_bytes = 64 << 10}, {}, nullptr), DeviceError);
  simulated()->allow_shared(function, 64 << 10);
  EXPECT_NO_THROW(simulated()->launch(function, {.shared_bytes = 64 << 10}, {}, nullptr));
}

TEST(SimulatedGpu, TakesOnlyLlvmsText) {
  EXPECT_FALSE(simulated()->load({.bytes = ".version 8.3", .entry = "kernel"}).ok());
}

}  // namespace

Result<std::shared_ptr<runtime::GpuDevice>> test_device() { return std::shared_ptr<runtime::GpuDevice>(simulated()); }

}  // namespace cresset::codegen
