// Runs one kernel both ways, compiled and interpreted, on the same random data.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "codegen/cpu/cpu_backend.h"
#include "codegen/cpu/host_kernel.h"
#include "loop/kernel.h"

namespace cresset::codegen::cpu {

// Builds a kernel over symbolic sizes whose values are known to the test.
class KernelBuilder {
 public:
  KernelBuilder() : kernel(env), b(kernel), pool(env->pool()) {}

  loop::ExprId size(int64_t value);  // a size symbol
  loop::ExprId outer(loop::ExprId extent) { return dim(extent, loop::Dim::Kind::Outer); }
  loop::ExprId inner(loop::ExprId extent) { return dim(extent, loop::Dim::Kind::Inner); }
  loop::BufferId input(DType dtype, int64_t elements);
  loop::BufferId output(DType dtype, int64_t elements);
  loop::ScalarId load(loop::BufferId buffer, loop::ExprId address) { return b.load(buffer, address); }
  void store(loop::BufferId buffer, loop::ExprId address, loop::ScalarId value);
  loop::ExprId dim(loop::ExprId extent, loop::Dim::Kind kind);

  std::shared_ptr<sym::ShapeEnv> env = std::make_shared<sym::ShapeEnv>();
  loop::Kernel kernel;
  loop::ScalarBuilder b;
  sym::ExprPool& pool;
  std::vector<int64_t> elements;        // by buffer
  std::vector<std::vector<char>> data;  // by buffer; empty: filled at random
  std::unordered_map<loop::VarId, int64_t> sizes;
};

// How far compiled results may be from interpreted ones.
struct Tolerance {
  double ulps = 0;  // of the stored dtype
  double absolute = 0;
};

// Fills inputs with values of the dtype: small integers, floats with some specials when `specials`.
void fill(KernelBuilder& k, uint32_t seed, bool specials);
template <class T>
void set_data(KernelBuilder& k, loop::BufferId buffer, const std::vector<T>& values) {
  const char* bytes = reinterpret_cast<const char*>(values.data());
  k.data[buffer.index].assign(bytes, bytes + values.size() * sizeof(T));
}

// Copies of the test's buffers, with bytes after each that nothing may write.
struct Memory {
  explicit Memory(const KernelBuilder& k);
  std::vector<std::vector<char>> bytes;
  std::vector<void*> pointers;
};
void compare(const KernelBuilder& k, const Memory& expected, const Memory& got, Tolerance tolerance,
             const std::string& what);

// A way to compile and run kernels: shows what it makes of the buffers, under a name, for each form that the code has.
// The test binary names those that it has.
using Visit = std::function<void(const Memory& got, const std::string& name)>;
using KernelRunner = void (*)(KernelBuilder& k, const std::vector<int64_t>& symbols, const Visit& visit);
extern const std::vector<KernelRunner> kKernelRunners;
// For every vector width, whole and in uneven ranges of work items.
void run_on_cpu(KernelBuilder& k, const std::vector<int64_t>& symbols, const Visit& visit);
// All variants of the GPU's code, in several shapes of launches, on the host.
void run_on_simt(KernelBuilder& k, const std::vector<int64_t>& symbols, const Visit& visit);

// By all runners. Inputs without data are filled at random.
void run_kernel(KernelBuilder& k, const Visit& visit);
// The same, and compares with the interpreter.
void expect_same(KernelBuilder& k, Tolerance tolerance = {});

inline constexpr int kVectorBits[] = {512, 256, 128};

}  // namespace cresset::codegen::cpu
