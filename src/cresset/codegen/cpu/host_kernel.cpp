#include "codegen/cpu/host_kernel.h"

#include <algorithm>

namespace cresset::codegen::cpu {
namespace {

constexpr int64_t kElementsPerThread = 32768;  // below this a thread costs more than it saves
constexpr int64_t kScratchAlignment = 64;

class BoundHostKernel final : public runtime::BoundKernel {
 public:
  BoundHostKernel(KernelFn fn, runtime::ParamBlock params, const std::array<int64_t, kNumbers>& numbers)
      : fn_(fn),
        buffers_(params.buffer(0)),
        symbols_(params.symbol(0)),
        items_(numbers[kWorkItems]),
        cost_(items_ * numbers[kItemCost]),
        scratch_((numbers[kScratchBytes] + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment) {}

  int64_t scratch_bytes(const runtime::LaunchContext& context) const override {
    return scratch_ == 0 ? 0 : scratch_ * threads(context);
  }

  void launch(const runtime::LaunchContext& context, void* scratch) const override {
    const int count = threads(context);
    if (count == 1) {
      if (items_ > 0) fn_(buffers_, symbols_, 0, items_, scratch);
      return;
    }
    Job job{*this, static_cast<char*>(scratch), (items_ + count - 1) / count};
    context.run_on_threads(count, &Job::run, &job);
  }

 private:
  struct Job {
    const BoundHostKernel& kernel;
    char* scratch;
    int64_t chunk;

    static void run(void* context, int thread) {
      const Job& job = *static_cast<const Job*>(context);
      const int64_t begin = thread * job.chunk, end = std::min(begin + job.chunk, job.kernel.items_);
      if (begin < end)
        job.kernel.fn_(job.kernel.buffers_, job.kernel.symbols_, begin, end,
                       job.scratch + thread * job.kernel.scratch_);
    }
  };

  int threads(const runtime::LaunchContext& context) const {
    if (context.run_on_threads == nullptr) return 1;
    const int64_t most = std::min<int64_t>(context.host_threads, items_);
    return static_cast<int>(std::clamp<int64_t>(cost_ / kElementsPerThread, 1, std::max<int64_t>(most, 1)));
  }

  const KernelFn fn_;
  void* const* const buffers_;
  const int64_t* const symbols_;
  const int64_t items_, cost_, scratch_;  // scratch_: for each thread
};

}  // namespace

std::array<int64_t, kNumbers> HostKernel::numbers(const int64_t* symbols) const {
  std::array<int64_t, kNumbers> out{};
  record().plan.numbers.run(symbols, out.data());
  return out;
}

std::unique_ptr<runtime::BoundKernel> HostKernel::bind(runtime::ParamBlock params) const {
  return std::make_unique<BoundHostKernel>(fn_, params, numbers(params.symbol(0)));
}

}  // namespace cresset::codegen::cpu
