// Random operators of the simulated CUDA devices, with the numbers of a GPU: cuRAND's Philox 4x32-10, and the threads
// of torch's kernels on the simulated GPU. Operators that are not here draw the CPU's numbers (cpu_call.h).
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "cuda_devices.h"
#include "simulated_gpu.h"

namespace cresset::gpu_simulator {
namespace {

using Generator = std::optional<at::Generator>;
using Words = std::array<uint32_t, 4>;

constexpr int64_t kThreadsOfBlock = 256;

Words philox(uint64_t seed, uint64_t stream, uint64_t counter) {
  uint32_t c0 = uint32_t(counter), c1 = uint32_t(counter >> 32), c2 = uint32_t(stream), c3 = uint32_t(stream >> 32);
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    const uint64_t a = uint64_t{0xD2511F53} * c0, b = uint64_t{0xCD9E8D57} * c2;
    const uint32_t next0 = uint32_t(b >> 32) ^ c1 ^ k0, next2 = uint32_t(a >> 32) ^ c3 ^ k1;
    c0 = next0, c1 = uint32_t(b), c2 = next2, c3 = uint32_t(a);
  }
  return {c0, c1, c2, c3};
}

float uniform32(uint32_t word) { return float(word) * 0x1p-32F + 0x1p-33F; }
uint64_t bits53(uint32_t low, uint32_t high) { return uint64_t{low} ^ (uint64_t{high} << 21); }
double uniform64(uint32_t low, uint32_t high) { return double(bits53(low, high)) * 0x1p-53 + 0x1p-54; }

// Element i of the numbers made of a block: four of f32, or two of f64.
template <class T>
T uniform_of(const Words& words, size_t i) {
  if constexpr (std::is_same_v<T, double>) return uniform64(words[2 * i], words[2 * i + 1]);
  return uniform32(words[i]);
}
template <class T>
T normal_of(const Words& words, size_t i) {
  if constexpr (std::is_same_v<T, double>) {
    const double angle = std::numbers::pi * (double(bits53(words[2], words[3])) * 0x1p-52 + 0x1p-53);
    return std::sqrt(-2 * std::log(uniform64(words[0], words[1]))) * (i == 0 ? std::sin(angle) : std::cos(angle));
  }
  constexpr float kStep = 0x1p-32F * 6.2831855F;
  const float angle = std::fma(float(words[i | 1]), kStep, kStep / 2);
  return std::sqrt(-2 * std::log(uniform32(words[i & ~size_t{1}]))) * (i % 2 == 0 ? std::sin(angle) : std::cos(angle));
}

struct Drawn {
  uint64_t seed, offset;
};

Drawn draw(const at::Tensor& self, const Generator& given, int64_t taken) {
  at::Generator generator = given && given->defined() ? *given : default_generator(self.device().index());
  TORCH_CHECK(generator.device().is_cuda(), "Expected a 'cuda' device type for generator but found '",
              generator.device().type(), "'");
  if (gpu()->is_recording(current_stream(self.device().index()))) {
    gpu()->spoil(current_stream(self.device().index()));
    TORCH_CHECK(false, "Attempt to increase offset for a CUDA generator not in capture mode.");
  }
  const std::lock_guard lock(generator.mutex());
  const Drawn drawn{generator.current_seed(), generator.get_offset()};
  generator.set_offset(drawn.offset + uint64_t(taken));
  return drawn;
}

// The threads of torch's kernel for so many elements.
int64_t threads_for(int64_t count) {
  const runtime::DeviceProperties& gpu_has = gpu()->properties();
  const int64_t most = gpu_has.multiprocessors * int64_t{gpu_has.threads_of_multiprocessor / kThreadsOfBlock};
  return std::min(most, (count + kThreadsOfBlock - 1) / kThreadsOfBlock) * kThreadsOfBlock;
}

// The offset in bytes of element i in the order of memory.
class InOrder {
 public:
  explicit InOrder(const at::Tensor& self) : iterator_(at::TensorIterator::borrowing_nullary_op(self)) {}
  int64_t operator()(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = 0; d < iterator_.shape().size(); ++d) {
      offset += i % iterator_.shape()[d] * iterator_.strides(0)[d];
      i /= iterator_.shape()[d];
    }
    return offset;
  }

 private:
  at::TensorIterator iterator_;
};

// self[e] = f(block, e's number in the block); a block is for `each` elements.
template <class T, class F>
at::Tensor& fill(at::Tensor& self, const Generator& generator, size_t each, const F& f) {
  const int64_t count = self.numel();
  if (count == 0) return self;
  const int64_t threads = threads_for(count), unroll = int64_t(each);
  const Drawn drawn = draw(self, generator, ((count - 1) / (threads * unroll) + 1) * 4);
  const InOrder in_order(self);
  auto* const data = static_cast<char*>(self.mutable_data_ptr());
  for (int64_t e = 0; e < count; ++e) {
    const Words words = philox(drawn.seed, uint64_t(e % threads), drawn.offset / 4 + uint64_t(e / threads / unroll));
    *reinterpret_cast<T*>(data + in_order(e)) = static_cast<T>(f(words, size_t(e / threads % unroll)));
  }
  return self;
}

// f(self's type as a value, its arithmetic type as a value)
template <class F>
void for_float(const at::Tensor& self, const F& f) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "random numbers", [&] {
    f(scalar_t{}, std::conditional_t<std::is_same_v<scalar_t, double>, double, float>{});
  });
}
template <class A>
constexpr size_t kEach = 16 / sizeof(A);

at::Tensor& uniform(at::Tensor& self, double from, double to, Generator generator) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  for_float(self, [&](auto element, auto number) {
    using T = decltype(element);
    using A = decltype(number);
    const T low = T(from), high = T(to);
    const A range = A(T(high - low));
    fill<T>(self, generator, kEach<A>, [&](const Words& words, size_t i) {
      const T value = T(std::fma(uniform_of<A>(words, i), range, A(low)));
      return value == high ? low : value;
    });
  });
  return self;
}

at::Tensor& normal(at::Tensor& self, double mean, double std, Generator generator) {
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  for_float(self, [&](auto element, auto number) {
    using A = decltype(number);
    fill<decltype(element)>(self, generator, kEach<A>, [&](const Words& words, size_t i) {
      return std::fma(normal_of<A>(words, i), A(std), A(mean));
    });
  });
  return self;
}

at::Tensor& exponential(at::Tensor& self, double lambda, Generator generator) {
  TORCH_CHECK(lambda > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  for_float(self, [&](auto element, auto number) {
    using A = decltype(number);
    constexpr A kHalf = std::numeric_limits<A>::epsilon() / 2;
    fill<decltype(element)>(self, generator, kEach<A>, [&](const Words& words, size_t i) {
      const A drawn = uniform_of<A>(words, i);
      return A(-1) / A(lambda) * (drawn >= 1 - kHalf ? -kHalf : std::log(drawn));
    });
  });
  return self;
}

at::Tensor& bernoulli(at::Tensor& self, double p, Generator generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, self.scalar_type(), "bernoulli_", [&] {
    using A = std::conditional_t<std::is_same_v<scalar_t, double>, double, float>;
    fill<scalar_t>(self, generator, kEach<A>,
                   [&](const Words& words, size_t i) { return uniform_of<A>(words, i) < A(p); });
  });
  return self;
}

// A mean or a standard deviation for each element.
at::Tensor normal_by_mean(const at::Tensor& mean, double std, Generator generator) {
  at::Tensor out = at::empty(mean.sizes(), mean.options());
  return normal(out, 0, std, std::move(generator)).add_(mean);
}
at::Tensor normal_by_std(double mean, const at::Tensor& std, Generator generator) {
  at::Tensor out = at::empty(std.sizes(), std.options());
  return normal(out, 0, 1, std::move(generator)).mul_(std).add_(mean);
}
at::Tensor normal_by_both(const at::Tensor& mean, const at::Tensor& std, Generator generator) {
  at::Tensor out = at::empty(at::infer_size(mean.sizes(), std.sizes()), mean.options());
  return normal(out, 0, 1, std::move(generator)).mul_(std).add_(mean);
}

// A thread takes four neighbours.
at::Tensor& bernoulli_by(at::Tensor& self, const at::Tensor& p, Generator generator) {
  constexpr int64_t kTaken = 12;
  if (self.numel() == 0) return self;
  const bool wide = self.scalar_type() == at::kDouble;
  const at::Tensor each = p.to(self.device(), wide ? at::kDouble : at::kFloat).expand_as(self).contiguous();
  const at::Tensor out = at::empty(self.sizes(), self.options());
  const Drawn drawn = draw(self, generator, kTaken);
  AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, self.scalar_type(), "bernoulli_", [&] {
    auto* const data = static_cast<scalar_t*>(out.mutable_data_ptr());
    for (int64_t e = 0; e < self.numel(); ++e) {
      const float number = uniform32(philox(drawn.seed, uint64_t(e / 4), drawn.offset / 4)[size_t(e % 4)]);
      data[e] = static_cast<scalar_t>(wide ? number <= static_cast<const double*>(each.const_data_ptr())[e]
                                           : number <= static_cast<const float*>(each.const_data_ptr())[e]);
    }
  });
  return self.copy_(out);
}

// Without `to`: all integers of 64 bits.
at::Tensor& integers(at::Tensor& self, int64_t from, std::optional<int64_t> to, Generator generator) {
  constexpr uint64_t kWide = uint64_t{1} << 28;
  TORCH_CHECK(!to || from < *to, "random_ expects 'from' to be less than 'to'");
  const uint64_t range = to ? uint64_t(*to) - uint64_t(from) : 0;
  const bool wide = range == 0 || range >= kWide;
  AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, self.scalar_type(), "random_", [&] {
    fill<scalar_t>(self, generator, wide ? 2 : 4, [&](const Words& words, size_t i) {
      const uint64_t drawn = wide ? uint64_t{words[2 * i]} << 32 | words[2 * i + 1] : words[i];
      return range == 0 ? int64_t(drawn) : int64_t(drawn % range) + from;
    });
  });
  return self;
}
at::Tensor& integers_to(at::Tensor& self, int64_t to, Generator generator) {
  return integers(self, 0, to, std::move(generator));
}

// How many neighbours a thread takes at once.
int64_t vector_of(const at::Tensor& self) {
  if (!self.is_non_overlapping_and_dense()) return 1;
  const auto bytes = int64_t(self.element_size());
  const auto address = int64_t(reinterpret_cast<intptr_t>(self.const_data_ptr()));
  int64_t vector = 16 / bytes;
  while (vector > 1 && (self.numel() % vector != 0 || address % (vector * bytes) != 0)) vector /= 2;
  return vector;
}

// The number which decides about element e, counted in the order of memory, or of rows without vectors.
float number_of_dropout(const Drawn& drawn, int64_t e, int64_t vector, int64_t threads) {
  if (vector == 1) {
    const int64_t call = e / threads;
    return uniform32(
        philox(drawn.seed, uint64_t(e % threads), drawn.offset / 4 + uint64_t(call / 4))[size_t(call % 4)]);
  }
  const int64_t group = e / vector, inside = e % vector, blocks = std::max<int64_t>(vector / 4, 1);
  const uint64_t counter = drawn.offset / 4 + uint64_t(group / threads * blocks + inside / 4);
  return uniform32(philox(drawn.seed, uint64_t(group % threads), counter)[size_t(inside % 4)]);
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& self, double p, std::optional<bool> train) {
  const auto of_bools = self.options().dtype(at::kBool);
  if (train && !*train) return {self.clone(), at::ones_like(self, of_bools)};
  if (p == 1) return {at::zeros_like(self), at::zeros_like(self, of_bools)};
  at::Tensor mask = at::empty_like(self, of_bools);
  if (self.numel() == 0) return {self.clone(), mask};
  at::Tensor out = at::empty_like(self);
  const int64_t vector = vector_of(self), threads = threads_for(self.numel());
  const Drawn drawn = draw(self, std::nullopt, ((self.numel() - 1) / (threads * 4) + 1) * 4);
  const at::Tensor kept = vector == 1 ? at::empty(self.sizes(), of_bools) : mask;
  auto* const decides = static_cast<bool*>(kept.mutable_data_ptr());
  for_float(self, [&](auto element, auto number) {
    using T = decltype(element);
    using A = decltype(number);
    const A stays = A(1 - p), scale = A(1.0 / stays);
    for (int64_t e = 0; e < self.numel(); ++e) decides[e] = number_of_dropout(drawn, e, vector, threads) < stays;
    if (vector == 1) mask.copy_(kept);
    const at::Tensor arithmetic = self.to(c10::CppTypeToScalarType<A>::value);
    out.copy_(arithmetic.mul(mask).mul(scale).to(c10::CppTypeToScalarType<T>::value));
  });
  return {out, mask};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("uniform_", &uniform);
  library.impl("normal_", &normal);
  library.impl("normal.Tensor_float", &normal_by_mean);
  library.impl("normal.float_Tensor", &normal_by_std);
  library.impl("normal.Tensor_Tensor", &normal_by_both);
  library.impl("exponential_", &exponential);
  library.impl("bernoulli_.float", &bernoulli);
  library.impl("bernoulli_.Tensor", &bernoulli_by);
  library.impl("random_.from", &integers);
  library.impl("random_.to", &integers_to);
  library.impl("native_dropout", &native_dropout);
}

}  // namespace cresset::gpu_simulator
