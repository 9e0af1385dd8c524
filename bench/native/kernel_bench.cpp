// Speed of generated code: nanoseconds per element and bytes per second for typical kernels, and their compile time.
//   kernel_bench [libtorch_cpu.so, for its vector-math library [number of compilations]]
#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include "codegen/cpu/cpu_backend.h"
#include "codegen/cpu/host_kernel.h"
#include "loop/kernel.h"

using namespace cresset;
using loop::BufferId;
using loop::Combine;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;

namespace {

void* math_library = nullptr;
void* resolve(const char* name) { return math_library == nullptr ? nullptr : dlsym(math_library, name); }

struct Case {
  Case(std::string name, int64_t rows, int64_t cols)
      : name(std::move(name)), kernel(env), b(kernel), rows(rows), cols(cols) {}
  ExprId size(int64_t value) {
    if (constant_sizes) return env->pool().constant(value);
    const ExprId e = env->new_backed("size", value);
    symbols[env->pool().var_of(e)] = value;
    return e;
  }
  ExprId dim(ExprId extent, loop::Dim::Kind kind) {
    const ExprId var = env->new_index_var(extent);
    kernel.dims.push_back({env->pool().var_of(var), extent, kind});
    return var;
  }
  BufferId buffer(DType dtype, int64_t elements, bool written) {
    kernel.buffers.push_back({dtype, written, !written, ""});
    memory.emplace_back(static_cast<size_t>(elements * byte_size(dtype)) + 64);
    auto* floats = reinterpret_cast<float*>(memory.back().data());
    if (dtype == DType::F32)
      for (int64_t i = 0; i < elements; ++i) floats[i] = static_cast<float>(i % 1000) * 0.005f - 2.5f;
    return {static_cast<uint32_t>(kernel.buffers.size() - 1)};
  }

  static inline bool constant_sizes = false;
  std::string name;
  std::shared_ptr<sym::ShapeEnv> env = std::make_shared<sym::ShapeEnv>();
  loop::Kernel kernel;
  loop::ScalarBuilder b;
  int64_t rows, cols;
  std::unordered_map<loop::VarId, int64_t> symbols;
  std::vector<std::vector<char>> memory;
};

// A kernel with a row-major input and a row-major output; `value` creates the stored scalar from the loaded scalar.
using Value = std::function<ScalarId(Case&, ScalarId, ExprId column, ExprId columns)>;
std::unique_ptr<Case> rowwise(std::string name, int64_t rows, int64_t cols, bool reduces, DType dtype,
                              const Value& value) {
  auto c = std::make_unique<Case>(std::move(name), rows, cols);
  const ExprId r = c->size(rows), s = c->size(cols);
  const ExprId i = c->dim(r, loop::Dim::Kind::Outer);
  const ExprId j = c->dim(s, reduces ? loop::Dim::Kind::Inner : loop::Dim::Kind::Outer);
  sym::ExprPool& pool = c->env->pool();
  const ExprId at = pool.add(pool.mul(i, s), j);
  const BufferId in = c->buffer(dtype, rows * cols, false), out = c->buffer(dtype, rows * cols, true);
  c->kernel.stores.push_back({out, at, value(*c, c->b.load(in, at), j, s)});
  return c;
}

ScalarId gelu(Case& c, ScalarId x, ExprId, ExprId) {
  auto f = [&](double v) { return c.b.constant(DType::F32, v); };
  const ScalarId e = c.b.unary(Op::Erf, c.b.binary(Op::Mul, x, f(0.70710678118654752)));
  return c.b.binary(Op::Mul, c.b.binary(Op::Mul, x, f(0.5)), c.b.binary(Op::Add, e, f(1)));
}

ScalarId tanh_gelu(Case& c, ScalarId x, ExprId, ExprId) {
  auto f = [&](double v) { return c.b.constant(DType::F32, v); };
  const ScalarId cube = c.b.binary(Op::Mul, c.b.binary(Op::Mul, x, x), x);
  const ScalarId inner =
      c.b.binary(Op::Mul, f(0.7978845608), c.b.binary(Op::Add, x, c.b.binary(Op::Mul, f(0.044715), cube)));
  return c.b.binary(Op::Mul, c.b.binary(Op::Mul, x, f(0.5)), c.b.binary(Op::Add, f(1), c.b.unary(Op::Tanh, inner)));
}

ScalarId silu(Case& c, ScalarId x, ExprId, ExprId) {
  const ScalarId one = c.b.constant(DType::F32, 1);
  return c.b.binary(Op::Div, x, c.b.binary(Op::Add, one, c.b.unary(Op::Exp, c.b.unary(Op::Neg, x))));
}

ScalarId softmax(Case& c, ScalarId x, ExprId, ExprId) {
  const ScalarId e = c.b.unary(Op::Exp, c.b.binary(Op::Sub, x, c.b.reduce(Combine::Max, x)));
  return c.b.binary(Op::Div, e, c.b.reduce(Combine::Sum, e));
}

ScalarId layer_norm(Case& c, ScalarId x, ExprId j, ExprId columns) {
  const ScalarId count = c.b.cast(c.b.size(columns), DType::F32);
  const ScalarId mean = c.b.binary(Op::Div, c.b.reduce(Combine::Sum, x), count);
  const ScalarId centered = c.b.binary(Op::Sub, x, mean);
  const ScalarId variance =
      c.b.binary(Op::Div, c.b.reduce(Combine::Sum, c.b.binary(Op::Mul, centered, centered)), count);
  const ScalarId rstd = c.b.unary(Op::Rsqrt, c.b.binary(Op::Add, variance, c.b.constant(DType::F32, 1e-5)));
  const BufferId weight = c.buffer(DType::F32, c.cols, false), bias = c.buffer(DType::F32, c.cols, false);
  return c.b.binary(Op::Add, c.b.binary(Op::Mul, c.b.binary(Op::Mul, centered, rstd), c.b.load(weight, j)),
                    c.b.load(bias, j));
}

ScalarId add_self(Case& c, ScalarId x, ExprId, ExprId) {
  return c.b.binary(Op::Add, x, c.b.binary(Op::Mul, x, c.b.constant(DType::F32, 0.5)));
}

std::unique_ptr<Case> add(int64_t rows, int64_t cols) {
  auto c = std::make_unique<Case>("add", rows, cols);
  const ExprId r = c->size(rows), s = c->size(cols);
  const ExprId i = c->dim(r, loop::Dim::Kind::Outer), j = c->dim(s, loop::Dim::Kind::Outer);
  const ExprId at = c->env->pool().add(c->env->pool().mul(i, s), j);
  const BufferId x = c->buffer(DType::F32, rows * cols, false), y = c->buffer(DType::F32, rows * cols, false);
  c->kernel.stores.push_back(
      {c->buffer(DType::F32, rows * cols, true), at, c->b.binary(Op::Add, c->b.load(x, at), c->b.load(y, at))});
  return c;
}

std::unique_ptr<Case> transpose(int64_t rows, int64_t cols) {
  auto c = std::make_unique<Case>("transpose", rows, cols);
  const ExprId r = c->size(rows), s = c->size(cols);
  const ExprId i = c->dim(r, loop::Dim::Kind::Outer), j = c->dim(s, loop::Dim::Kind::Outer);
  sym::ExprPool& pool = c->env->pool();
  const BufferId x = c->buffer(DType::F32, rows * cols, false);
  const ScalarId v = c->b.load(x, pool.add(pool.mul(j, r), i));
  c->kernel.stores.push_back({c->buffer(DType::F32, rows * cols, true), pool.add(pool.mul(i, s), j), v});
  return c;
}

// [b, s, h, d] -> [b, h, s, d]: the layout change around attention.
std::unique_ptr<Case> heads(int64_t seq, int64_t head_count, int64_t depth) {
  auto c = std::make_unique<Case>("heads", seq, head_count * depth);
  const ExprId s = c->size(seq), h = c->size(head_count), d = c->size(depth);
  const ExprId hv = c->dim(h, loop::Dim::Kind::Outer), sv = c->dim(s, loop::Dim::Kind::Outer),
               dv = c->dim(d, loop::Dim::Kind::Outer);
  sym::ExprPool& pool = c->env->pool();
  const int64_t n = seq * head_count * depth;
  const ScalarId v =
      c->b.load(c->buffer(DType::F32, n, false), pool.add(pool.mul(pool.add(pool.mul(sv, h), hv), d), dv));
  c->kernel.stores.push_back(
      {c->buffer(DType::F32, n, true), pool.add(pool.mul(pool.add(pool.mul(hv, s), sv), d), dv), v});
  return c;
}

std::unique_ptr<Case> column_sum(int64_t rows, int64_t cols) {
  auto c = std::make_unique<Case>("column sum", rows, cols);
  const ExprId r = c->size(rows), s = c->size(cols);
  const ExprId j = c->dim(s, loop::Dim::Kind::Outer), i = c->dim(r, loop::Dim::Kind::Inner);
  sym::ExprPool& pool = c->env->pool();
  const ScalarId v = c->b.load(c->buffer(DType::F32, rows * cols, false), pool.add(pool.mul(i, s), j));
  c->kernel.stores.push_back({c->buffer(DType::F32, cols, true), j, c->b.reduce(Combine::Sum, v)});
  return c;
}

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Processor time, so that other load on the machine does not count.
double cpu_seconds(const std::function<void()>& f) {
  const std::clock_t start = std::clock();
  f();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void run(Case& c, int compiles) {
  double compile_ms = 1e9;
  std::shared_ptr<const codegen::CompiledKernel> compiled;
  for (int k = 0; k < compiles; ++k) {
    codegen::cpu::CpuBackend::get().clear_memory_cache();
    compile_ms = std::min(
        compile_ms, 1e3 * cpu_seconds([&] { compiled = (*codegen::cpu::CpuBackend::get().compile({&c.kernel}))[0]; }));
  }
  std::vector<int64_t> symbols;
  for (loop::VarId var : c.kernel.size_symbols()) symbols.push_back(c.symbols.at(var));
  std::vector<void*> buffers;
  int64_t bytes = 0;
  for (auto& buffer : c.memory) {
    buffers.push_back(buffer.data());
    bytes += static_cast<int64_t>(buffer.size()) - 64;
  }
  const codegen::cpu::HostKernel& kernel = codegen::cpu::HostKernel::from(*compiled);
  const auto numbers = kernel.numbers(symbols.data());
  std::vector<char> scratch(static_cast<size_t>(numbers[codegen::cpu::kScratchBytes]) + 64);
  double best = 1e9;
  for (int k = 0; k < 15; ++k)
    best = std::min(best, seconds([&] {
                      kernel.fn()(buffers.data(), symbols.data(), 0, numbers[codegen::cpu::kWorkItems], scratch.data());
                    }));
  fmt::print("{:14} {:5} x {:5}: {:8.3f} ns/element {:7.2f} GB/s  compile {:6.2f} ms\n", c.name, c.rows, c.cols,
             best * 1e9 / static_cast<double>(c.rows * c.cols), static_cast<double>(bytes) / best * 1e-9, compile_ms);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) math_library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  codegen::cpu::CpuOptions options;
  options.resolver = math_library != nullptr ? resolve : nullptr;
  options.from_disk_cache = false;
  codegen::cpu::CpuBackend::get().configure(options);
  std::vector<std::unique_ptr<Case>> cases;
  cases.push_back(add(512, 256));  // fits in the second-level cache
  cases.push_back(add(4096, 1024));
  cases.push_back(rowwise("scale", 512, 256, false, DType::F32, add_self));
  cases.push_back(rowwise("scale bf16", 512, 256, false, DType::BF16, add_self));
  cases.push_back(rowwise("silu", 512, 256, false, DType::F32, silu));
  cases.push_back(rowwise("gelu erf", 512, 256, false, DType::F32, gelu));
  cases.push_back(rowwise("gelu tanh", 512, 256, false, DType::F32, tanh_gelu));
  cases.push_back(rowwise("softmax", 4096, 512, true, DType::F32, softmax));
  cases.push_back(rowwise("softmax", 256, 512, true, DType::F32, softmax));
  cases.push_back(rowwise("layer norm", 4096, 768, true, DType::F32, layer_norm));
  cases.push_back(rowwise("layer norm", 128, 768, true, DType::F32, layer_norm));
  cases.push_back(column_sum(4096, 768));
  cases.push_back(transpose(256, 256));
  cases.push_back(transpose(2048, 2048));
  cases.push_back(heads(512, 12, 64));
  Case::constant_sizes = true;
  cases.push_back(rowwise("gelu const", 512, 256, false, DType::F32, gelu));
  cases.push_back(rowwise("softmax const", 256, 512, true, DType::F32, softmax));
  cases.push_back(rowwise("ln const", 128, 768, true, DType::F32, layer_norm));
  for (auto& c : cases) run(*c, argc > 2 ? std::atoi(argv[2]) : 3);
  return 0;
}
