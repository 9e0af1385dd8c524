#include "kernel_harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "loop/half.h"
#include "loop/scalar_eval.h"

namespace cresset::codegen::cpu {

using loop::BufferId;
using loop::ExprId;
using loop::Value;

ExprId KernelBuilder::size(int64_t value) {
  const ExprId e = env->new_backed("size", value);
  sizes[pool.var_of(e)] = value;
  return e;
}

ExprId KernelBuilder::dim(ExprId extent, loop::Dim::Kind kind) {
  const ExprId var = env->new_index_var(extent);
  kernel.dims.push_back({pool.var_of(var), extent, kind});
  return var;
}

BufferId KernelBuilder::input(DType dtype, int64_t count) {
  kernel.buffers.push_back({dtype, false, true, ""});
  elements.push_back(count);
  data.emplace_back();
  return {static_cast<uint32_t>(kernel.buffers.size() - 1)};
}

BufferId KernelBuilder::output(DType dtype, int64_t count) {
  const BufferId id = input(dtype, count);
  kernel.buffers[id.index].read = false;
  kernel.buffers[id.index].written = true;
  return id;
}

void KernelBuilder::store(BufferId buffer, ExprId address, loop::ScalarId value) {
  kernel.stores.push_back({buffer, address, value});
}

namespace {

Value random_value(DType dtype, std::mt19937& random, bool specials) {
  const double inf = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, inf, -inf, std::nan(""), 1, -1, 1e-40, 3e38, 0.5};
  Value out;
  out.integer = loop::wrap_integer(dtype, static_cast<int64_t>(random() % 201) - 100);
  if (dtype == DType::Bool) out.integer = random() % 2;
  out.number = std::normal_distribution<double>(0, 2)(random);
  if (specials && random() % 8 == 0) out.number = special[random() % std::size(special)];
  return out;
}

double ulp_of(DType dtype, double x) {
  if (dtype == DType::F64) return std::nextafter(std::fabs(x), INFINITY) - std::fabs(x);
  const float f = std::fabs(static_cast<float>(x));
  const double ulp = static_cast<double>(std::nextafterf(f, INFINITY)) - f;
  if (dtype == DType::BF16) return ulp * 0x1p16;
  if (dtype == DType::F16) return std::max(ulp * 0x1p13, 0x1p-24);
  return ulp;
}

bool same(DType dtype, Value expected, Value got, Tolerance tolerance) {
  if (!is_float(dtype)) return expected.integer == got.integer;
  if (std::isnan(expected.number)) return std::isnan(got.number);
  if (expected.number == got.number) return true;
  if (!std::isfinite(expected.number)) return false;
  const double allowed = std::max(tolerance.absolute, tolerance.ulps * ulp_of(dtype, expected.number));
  return std::fabs(expected.number - got.number) <= allowed;
}

}  // namespace

Memory::Memory(const KernelBuilder& k) : bytes(k.data) {
  constexpr size_t kGuard = 64;  // catches writes past the end
  for (std::vector<char>& buffer : bytes) {
    buffer.insert(buffer.end(), kGuard, 0x5a);
    pointers.push_back(buffer.data());
  }
}

void compare(const KernelBuilder& k, const Memory& expected, const Memory& got, Tolerance tolerance,
             const std::string& what) {
  for (size_t i = 0; i < k.kernel.buffers.size(); ++i) {
    const DType dtype = k.kernel.buffers[i].dtype;
    const size_t used = static_cast<size_t>(k.elements[i] * byte_size(dtype));
    ASSERT_EQ(std::memcmp(expected.bytes[i].data() + used, got.bytes[i].data() + used, 64), 0)
        << what << ": buffer " << i << " written past its end\n"
        << loop::print(k.kernel);
    if (!k.kernel.buffers[i].written) {
      ASSERT_EQ(expected.bytes[i], got.bytes[i]) << what << ": input " << i << " changed";
      continue;
    }
    for (int64_t e = 0; e < k.elements[i]; ++e) {
      const Value want = loop::load_value(dtype, expected.bytes[i].data(), e);
      const Value have = loop::load_value(dtype, got.bytes[i].data(), e);
      ASSERT_TRUE(same(dtype, want, have, tolerance))
          << what << ": buffer " << i << " element " << e << ": expected " << want.number << "|" << want.integer
          << ", got " << have.number << "|" << have.integer << "\n"
          << loop::print(k.kernel);
    }
  }
}

namespace {

void run_ranges(const HostKernel& compiled, void* const* buffers, const int64_t* symbols, int64_t step) {
  const int64_t items = compiled.numbers(symbols)[kWorkItems];
  const size_t bytes = static_cast<size_t>(compiled.numbers(symbols)[kScratchBytes]);
  std::vector<char> scratch(bytes + 64, 0x77);
  for (int64_t begin = 0; begin < items; begin += step) {
    compiled.fn()(buffers, symbols, begin, std::min(items, begin + step), scratch.data());
    for (size_t i = bytes; i < scratch.size(); ++i) ASSERT_EQ(scratch[i], 0x77) << "scratch overrun";
  }
}

}  // namespace

void fill(KernelBuilder& k, uint32_t seed, bool specials) {
  std::mt19937 random(seed);
  for (size_t i = 0; i < k.data.size(); ++i) {
    if (!k.data[i].empty()) continue;
    const DType dtype = k.kernel.buffers[i].dtype;
    k.data[i].resize(static_cast<size_t>(k.elements[i] * byte_size(dtype)));
    for (int64_t e = 0; e < k.elements[i]; ++e)
      loop::store_value(dtype, k.data[i].data(), e, random_value(dtype, random, specials));
  }
}

void run_on_cpu(KernelBuilder& k, const std::vector<int64_t>& symbols, const Visit& visit) {
  // CPUs have no code for these.
  const auto updates = [](const loop::Store& s) { return s.combine.has_value(); };
  const auto scans = [](const loop::Scalar& s) { return s.op == loop::Op::Scan; };
  if (std::any_of(k.kernel.stores.begin(), k.kernel.stores.end(), updates) ||
      std::any_of(k.kernel.scalars.begin(), k.kernel.scalars.end(), scans))
    return;
  for (int bits : kVectorBits) {
    CpuOptions options;
    options.vector_bits = bits;
    options.from_disk_cache = false;
    CpuBackend::get().configure(options);
    auto compiled = CpuBackend::get().compile({&k.kernel});
    ASSERT_TRUE(compiled.ok());
    for (int64_t step : {int64_t{1} << 40, int64_t{1}, int64_t{3}}) {
      Memory got(k);
      run_ranges(HostKernel::from(*(*compiled)[0]), got.pointers.data(), symbols.data(), step);
      visit(got, std::to_string(bits) + " bits");
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

namespace {

std::vector<int64_t> symbols_of(const KernelBuilder& k) {
  std::vector<int64_t> symbols;
  for (loop::VarId var : k.kernel.size_symbols()) symbols.push_back(k.sizes.at(var));
  return symbols;
}

}  // namespace

void run_kernel(KernelBuilder& k, const Visit& visit) {
  ASSERT_EQ(loop::verify(k.kernel), "") << loop::print(k.kernel);
  fill(k, 1, /*specials=*/false);
  for (const KernelRunner run : kKernelRunners) {
    run(k, symbols_of(k), visit);
    if (testing::Test::HasFatalFailure()) return;
  }
}

void expect_same(KernelBuilder& k, Tolerance tolerance) {
  ASSERT_EQ(loop::verify(k.kernel), "") << loop::print(k.kernel);
  fill(k, 1, /*specials=*/false);
  Memory expected(k);
  loop::interpret(k.kernel, expected.pointers.data(), symbols_of(k).data());
  run_kernel(k, [&](const Memory& got, const std::string& name) { compare(k, expected, got, tolerance, name); });
}

}  // namespace cresset::codegen::cpu
