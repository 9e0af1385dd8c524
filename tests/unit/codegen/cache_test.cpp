// Kernels are compiled once: in the process, between runs, and whatever becomes of the files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "codegen/files.h"
#include "kernel_harness.h"

namespace cresset::codegen::cpu {
namespace {

using loop::ExprId;
using loop::Op;

// y = x * factor over `n` elements; `noise` symbols are made first, so that variables are numbered differently.
void scale(KernelBuilder& k, double factor, int noise) {
  for (int i = 0; i < noise; ++i) k.size(100 + i);
  const ExprId i = k.outer(k.size(50));
  const auto x = k.input(DType::F32, 50), y = k.output(DType::F32, 50);
  k.store(y, i, k.b.binary(Op::Mul, k.load(x, i), k.b.constant(DType::F32, factor)));
}

void check_scaled(const CompiledKernel& compiled, double factor) {
  std::vector<float> x(50, 2), y(50);
  void* buffers[] = {x.data(), y.data()};
  const int64_t n = 50;
  const HostKernel& kernel = HostKernel::from(compiled);
  kernel.fn()(buffers, &n, 0, kernel.numbers(&n)[kWorkItems], nullptr);
  for (float v : y) ASSERT_EQ(v, 2 * factor);
}

class CodegenCache : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("cresset_test_" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    setenv("CRESSET_CACHE_DIR", folder_.c_str(), 1);
    setenv("CRESSET_NO_DISK_CACHE", "0", 1);
    CpuBackend::get().configure({});
    CpuBackend::get().clear_memory_cache();
  }
  void TearDown() override {
    unsetenv("CRESSET_CACHE_DIR");
    unsetenv("CRESSET_NO_DISK_CACHE");
    std::filesystem::remove_all(folder_);
  }
  std::shared_ptr<const CompiledKernel> compile(double factor, int noise = 0) {
    KernelBuilder k;
    scale(k, factor, noise);
    auto result = CpuBackend::get().compile({&k.kernel});
    EXPECT_TRUE(result.ok());
    return (*result)[0];
  }
  CodegenStats stats() { return CpuBackend::get().stats(); }
  size_t files() { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }
  std::filesystem::path folder_;
};

TEST_F(CodegenCache, EqualKernelsOfDifferentGraphsShareCode) {
  const CodegenStats before = stats();
  const auto a = compile(3), b = compile(3, /*noise=*/4);
  EXPECT_EQ(a, b);
  EXPECT_EQ(stats().kernels_compiled - before.kernels_compiled, 1);
  EXPECT_EQ(stats().memory_hits - before.memory_hits, 1);
  check_scaled(*b, 3);
}

TEST_F(CodegenCache, TwiceInOneProgram) {
  KernelBuilder a, b;
  scale(a, 4, 0);
  scale(b, 4, 1);
  auto both = CpuBackend::get().compile({&a.kernel, &b.kernel});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ((*both)[0], (*both)[1]);
  EXPECT_EQ(files(), 1u);
}

TEST_F(CodegenCache, DiskServesTheNextRun) {
  compile(5);
  ASSERT_EQ(files(), 1u);
  CpuBackend::get().clear_memory_cache();
  const CodegenStats before = stats();
  check_scaled(*compile(5), 5);
  EXPECT_EQ(stats().disk_hits - before.disk_hits, 1);
  EXPECT_EQ(stats().kernels_compiled, before.kernels_compiled);
}

TEST_F(CodegenCache, DamagedFilesAreIgnored) {
  compile(6);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file << "garbage";
  }
  CpuBackend::get().clear_memory_cache();
  const CodegenStats before = stats();
  check_scaled(*compile(6), 6);
  EXPECT_EQ(stats().disk_hits, before.disk_hits);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) std::filesystem::resize_file(entry.path(), 5);
  CpuBackend::get().clear_memory_cache();
  check_scaled(*compile(6), 6);
  EXPECT_EQ(stats().disk_hits, before.disk_hits);
}

TEST_F(CodegenCache, UnwritableFolderOnlyCostsTime) {
  setenv("CRESSET_CACHE_DIR", "/proc/no/such/folder", 1);
  check_scaled(*compile(7), 7);
}

TEST_F(CodegenCache, OffByOption) {
  setenv("CRESSET_NO_DISK_CACHE", "1", 1);
  check_scaled(*compile(8), 8);
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(CodegenCache, ManyKernelsFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, this] {
      for (int i = 0; i < 6; ++i) check_scaled(*compile(10 + (t + i) % 5), 10 + (t + i) % 5);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<std::unique_ptr<KernelBuilder>> kernels;
  std::vector<const loop::Kernel*> pointers;
  for (int i = 0; i < 12; ++i) {
    kernels.push_back(std::make_unique<KernelBuilder>());
    scale(*kernels.back(), 100 + i, i);
    pointers.push_back(&kernels.back()->kernel);
  }
  auto compiled = CpuBackend::get().compile(pointers);
  ASSERT_TRUE(compiled.ok());
  for (int i = 0; i < 12; ++i) check_scaled(*(*compiled)[static_cast<size_t>(i)], 100 + i);
}

TEST_F(CodegenCache, ReadAndWrittenFilesAreUsed) {
  compile(5);
  const std::vector<std::string> used = used_files();
  EXPECT_TRUE(std::any_of(used.begin(), used.end(), [&](const std::string& path) {
    return path.starts_with(folder_.string()) && path.ends_with(".o");
  }));
}

TEST_F(CodegenCache, TheFilesUsedLongestAgoGoFirst) {
  std::filesystem::create_directories(folder_ / "below");
  const auto now = std::filesystem::file_time_type::clock::now();
  for (int i = 0; i < 10; ++i) {
    const auto path = folder_ / (i % 2 == 0 ? "below/" : "") += std::to_string(i);
    std::ofstream(path) << std::string(1000, 'x');
    std::filesystem::last_write_time(path, now - std::chrono::hours(10 - i));
  }
  EXPECT_EQ(bound_folder(folder_, 10000), 0);
  EXPECT_EQ(bound_folder(folder_, 8000), 3);  // down to nine tenths
  EXPECT_FALSE(std::filesystem::exists(folder_ / "below/0") || std::filesystem::exists(folder_ / "below/2"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "3") && std::filesystem::exists(folder_ / "9"));
}

}  // namespace
}  // namespace cresset::codegen::cpu
