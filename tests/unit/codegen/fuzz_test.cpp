// Random kernels: dims, layouts, dtypes, passes, masks. Values are small whole numbers, so that every order of folding
// gives the same result and equality is exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernel_harness.h"
#include "loop/analysis.h"
#include "loop/scalar_eval.h"

namespace cresset::codegen::cpu {
namespace {

using loop::Combine;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;

class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed) {
    make_dims();
    const int loads = 1 + pick(3);
    for (int i = 0; i < loads; ++i) pool_.push_back(load());
    const int passes = inner_count_ == 0 ? 0 : pick(3);
    for (int p = 0; p < passes; ++p) {
      grow(3);
      reduce();
    }
    grow(4);
    stores();
  }
  KernelBuilder k;

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool chance(int percent) { return pick(100) < percent; }

  void make_dims() {
    const int count = 1 + pick(4);
    inner_count_ = pick(3);
    const int64_t extents[] = {1, 2, 3, 5, 7, 16, 17, 33, 70};
    for (int d = 0; d < count + inner_count_; ++d) {
      const bool inner = d >= count;
      int64_t e = extents[pick(count + inner_count_ > 4 ? 4 : count + inner_count_ > 2 ? 7 : 9)];
      if (chance(2)) e = 0;
      const ExprId size = chance(30) ? k.pool.constant(e) : k.size(e);
      extent_.push_back(e);
      size_.push_back(size);
      var_.push_back(inner ? k.inner(size) : k.outer(size));
      inner_.push_back(inner);
    }
  }

  std::vector<size_t> dims_of_level(bool all) {
    std::vector<size_t> out;
    for (size_t d = 0; d < var_.size(); ++d)
      if (all || !inner_[d]) out.push_back(d);
    if (chance(40)) std::shuffle(out.begin(), out.end(), random_);
    return out;
  }

  // A dense layout over some dims in some order; elements: how many it spans.
  ExprId dense(const std::vector<size_t>& dims, int64_t& elements) {
    ExprId at = k.pool.constant(0);
    elements = 1;
    for (size_t d : dims) {
      at = k.pool.add(k.pool.mul(at, size_[d]), var_[d]);
      elements *= extent_[d];
    }
    return at;
  }

  DType any_dtype() {
    const DType dtypes[] = {DType::F32, DType::F32, DType::F32, DType::BF16, DType::F16,
                            DType::F64, DType::I64, DType::I32, DType::U8};
    return dtypes[pick(9)];
  }

  ScalarId load() {
    std::vector<size_t> dims = dims_of_level(/*all=*/true);
    if (chance(40))
      dims.erase(std::remove_if(dims.begin(), dims.end(), [&](size_t) { return chance(40); }), dims.end());
    int64_t elements = 0;
    ExprId at = dense(dims, elements);
    if (chance(15) && elements > 0) {  // the same elements seen through another shape
      const int64_t c = 1 + pick(6);
      at = k.pool.add(k.pool.mul(k.pool.mod(at, k.pool.constant(c)), k.pool.constant((elements + c - 1) / c)),
                      k.pool.floor_div(at, k.pool.constant(c)));
      elements += c * c;
    }
    if (chance(20)) {
      at = k.pool.add(k.pool.mul(at, k.pool.constant(3)), k.pool.constant(2));
      elements = 3 * elements + 2;
    }
    const DType dtype = any_dtype();
    const auto buffer = k.input(dtype, elements);
    k.data[buffer.index] = small_numbers(dtype, elements);
    std::optional<ScalarId> mask;
    if (chance(20)) {
      const size_t d = static_cast<size_t>(pick(static_cast<int>(var_.size())));
      mask = k.b.binary(Op::Lt, k.b.size(var_[d]), k.b.constant_int(DType::I64, pick(20)));
    }
    return in_f32_or_i64(k.b.load(buffer, at, mask));
  }

  std::vector<char> small_numbers(DType dtype, int64_t elements);

  ScalarId in_f32_or_i64(ScalarId s) { return k.b.cast(s, is_float(k.b.dtype(s)) ? DType::F32 : DType::I64); }

  ScalarId operand(DType dtype) {
    return k.b.cast(pool_[static_cast<size_t>(pick(static_cast<int>(pool_.size())))], dtype);
  }

  ScalarId clamp(ScalarId s) {
    const DType t = k.b.dtype(s);
    return k.b.binary(Op::Maximum, k.b.binary(Op::Minimum, s, k.b.constant_int(t, 40)), k.b.constant_int(t, -40));
  }

  void grow(int steps) {
    for (int i = 0; i < steps; ++i) {
      const DType t = chance(70) ? DType::F32 : DType::I64;
      const ScalarId a = operand(t), b = operand(t);
      const Op ops[] = {Op::Add, Op::Sub, Op::Mul, Op::Maximum, Op::Minimum};
      switch (pick(8)) {
        case 0:
          pool_.push_back(k.b.select(k.b.binary(Op::Lt, a, b), a, b));
          break;
        case 1:
          pool_.push_back(k.b.unary(Op::Abs, a));
          break;
        case 2:
          pool_.push_back(k.b.unary(Op::Neg, b));
          break;
        case 3:
          pool_.push_back(
              k.b.size(k.pool.min(var_[static_cast<size_t>(pick(static_cast<int>(var_.size())))], k.pool.constant(9))));
          break;
        default:
          pool_.push_back(clamp(k.b.binary(ops[pick(5)], a, b)));
      }
    }
  }

  void reduce() {
    const Combine combines[] = {Combine::Sum, Combine::Max, Combine::Min, Combine::ArgMax, Combine::ArgMin};
    const ScalarId a = operand(chance(70) ? DType::F32 : DType::I64);
    pool_.push_back(clamp(k.b.reduce(combines[pick(5)], clamp(a))));
    if (chance(50))
      pool_.push_back(
          k.b.cast(k.b.reduce(Combine::Any, k.b.binary(Op::Gt, a, k.b.constant_int(k.b.dtype(a), 3))), DType::I64));
  }

  void stores() {
    const loop::Analysis analysis = loop::analyze(k.kernel);
    const size_t first = pool_.size() > 4 ? pool_.size() - 3 : 0;
    for (size_t i = first; i < pool_.size(); ++i) {
      const bool point = analysis.is_point[pool_[i].index] != 0 || chance(30);
      const DType stored = any_dtype();
      int64_t elements = 0;
      const ExprId at = dense(dims_of_level(point), elements);
      const ScalarId value = k.b.cast(clamp(pool_[i]), compute_dtype(stored));
      k.store(k.output(stored, elements), at, value);
    }
  }

  std::mt19937 random_;
  int inner_count_ = 0;
  std::vector<int64_t> extent_;
  std::vector<ExprId> size_, var_;
  std::vector<bool> inner_;
  std::vector<ScalarId> pool_;
};

std::vector<char> RandomKernel::small_numbers(DType dtype, int64_t elements) {
  std::vector<char> out(static_cast<size_t>(std::max<int64_t>(elements, 1) * byte_size(dtype)));
  for (int64_t i = 0; i < elements; ++i) {
    const int v = pick(9) - (dtype == DType::U8 ? 0 : 4);
    loop::store_value(dtype, out.data(), i, {static_cast<double>(v), v});
  }
  out.resize(static_cast<size_t>(elements * byte_size(dtype)));
  return out;
}

constexpr uint32_t kFirst = 0, kKernels = 60;

TEST(CodegenFuzz, RandomKernels) {
  for (uint32_t seed = kFirst; seed < kFirst + kKernels; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomKernel random(seed);
    expect_same(random.k);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace cresset::codegen::cpu
