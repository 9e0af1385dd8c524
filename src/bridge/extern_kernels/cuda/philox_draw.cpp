// The draw before random numbers that kernels compute (ops/philox.cpp): takes the generator's seed and offset, and
// advances the generator as eager mode's kernel for these sizes does.
#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "base/check.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/extern_kernels/extern_call.h"
#include "codegen/nvptx/nvptx_backend.h"

namespace cresset::bridge {
namespace {

// The arguments of cresset::philox_draw.
enum Argument : size_t { kCount, kWords, kVector, kLaid, kGpu };

constexpr int64_t kThreads = 256;  // of a block, in eager mode's kernels
constexpr int64_t kBlock = 4;      // numbers that a call takes from the generator
// Eager mode's kernel for a probability of each element: a call for each thread, which takes so many numbers.
constexpr int64_t kTakenByTensor = 12;

int64_t log2_of(int64_t power) { return power <= 1 ? 0 : 1 + log2_of(power / 2); }

class PhiloxDraw final : public ExternKernel {
 public:
  PhiloxDraw(const runtime::ExternCall& call, const BoundContext& context)
      : call_(call),
        count_(number(context, kCount)),
        words_(number(context, kWords)),
        vector_(number(context, kVector)),
        device_(c10::kCUDA, static_cast<c10::DeviceIndex>(number(context, kGpu))) {
    if (const auto* laid = std::get_if<runtime::TensorId>(&call.args.at(kLaid))) laid_ = *laid;
    const auto& gpu = codegen::nvptx::NvptxBackend::get().device();
    CRESSET_CHECK(gpu != nullptr, "random numbers of a device that is not there");
    const runtime::DeviceProperties& properties = gpu->properties();
    const int64_t most_blocks = properties.multiprocessors * int64_t{properties.threads_of_multiprocessor / kThreads};
    blocks_ = std::max<int64_t>(1, std::min(most_blocks, (count_ + kThreads - 1) / kThreads));
    CRESSET_CHECK(blocks_ <= UINT16_MAX, "a GPU with more multiprocessors than a layout has place for");
  }

  bool runs_on_host() const override { return true; }
  bool allocates_results() const override { return false; }

  void run(BoundContext& context) override {
    const auto [seed, offset] = take();
    const int64_t values[] = {seed, offset, layout(context)};
    for (size_t i = 0; i < std::size(values); ++i)
      if (call_.results[i].valid()) *context.planned(call_.results[i]).mutable_data_ptr<int64_t>() = values[i];
  }

 private:
  int64_t number(const BoundContext& context, Argument i) const {
    return context.size(std::get<runtime::SizeRef>(call_.args.at(i)));
  }

  int64_t advance() const {
    if (count_ == 0) return 0;
    return words_ == 0 ? kTakenByTensor : ((count_ - 1) / (blocks_ * kThreads * words_) + 1) * kBlock;
  }

  std::pair<int64_t, int64_t> take() const {
    at::Generator generator = at::globalContext().defaultGenerator(device_);
    const std::lock_guard lock(generator.mutex());
    const uint64_t offset = generator.get_offset();
    if (const int64_t taken = advance(); taken != 0) generator.set_offset(offset + static_cast<uint64_t>(taken));
    return {static_cast<int64_t>(generator.current_seed()), static_cast<int64_t>(offset)};
  }

  // The neighbours in memory which eager mode's dropout reads at once.
  int64_t neighbours(const BoundContext& context) const {
    const int64_t bytes = vector_ == 0 ? 0 : 16 / vector_;  // of an element
    const auto address = laid_.valid() ? reinterpret_cast<uintptr_t>(context.tensor(laid_).const_data_ptr()) : 0;
    int64_t most = std::max<int64_t>(vector_, 1);
    while (most > 1 && (count_ % most != 0 || address % static_cast<uint64_t>(most * bytes) != 0)) most /= 2;
    return most;
  }

  // As ops/philox.cpp reads it: logarithms of the neighbours and of the numbers for each call, the blocks, and a
  // multiplier and a shift by which numbers below 2^31 are divided by the blocks (codegen/nvptx/launch.cpp has the
  // proof).
  int64_t layout(const BoundContext& context) const {
    const auto packed = [](int64_t neighbours, int64_t step, uint64_t division) {
      return static_cast<int64_t>(static_cast<uint64_t>(log2_of(neighbours) | log2_of(step) << 4) | division);
    };
    if (words_ == 0) return packed(kBlock, kBlock, 0);  // a thread for each four neighbours: no quotient
    const auto blocks = static_cast<uint64_t>(blocks_);
    const uint64_t shift = 31 + static_cast<uint64_t>(std::bit_width(blocks - 1));
    const uint64_t multiplier = ((uint64_t{1} << shift) + blocks - 1) / blocks;
    const uint64_t division = blocks << 8 | shift << 24 | multiplier << 32;
    const int64_t together = neighbours(context);
    return packed(together, together == 1 ? kBlock / words_ : std::max(together, kBlock), division);
  }

  const runtime::ExternCall& call_;
  const int64_t count_, words_, vector_;
  const c10::Device device_;
  runtime::TensorId laid_;
  int64_t blocks_ = 0;  // of eager mode's kernel
};

}  // namespace

std::unique_ptr<ExternKernel> bind_philox_draw(const runtime::ExternCall& call, const BoundContext& context) {
  static const graph::OpId op = graph::op_id("cresset::philox_draw");
  return call.op == op ? std::make_unique<PhiloxDraw>(call, context) : nullptr;
}

}  // namespace cresset::bridge
