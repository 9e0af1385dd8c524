#include "bridge/executor/executor.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/check.h"
#include "bridge/device/cpu/arena.h"
#include "bridge/device/cpu/result_allocator.h"
#include "bridge/executor/executor_context.h"
#include "bridge/executor/graph_replay.h"
#include "bridge/executor/index_errors.h"
#include "codegen/cpu/cpu_backend.h"

namespace cresset::bridge {
namespace {

constexpr size_t kIdleContexts = 64;
constexpr size_t kGraphNodes = 30000;  // of all graphs of a program

void* find_symbol(const char* name) {
  // Python loads libtorch with local visibility, so the global scope alone is not sufficient.
  static void* const torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  void* found = torch == nullptr ? nullptr : dlsym(torch, name);
  return found != nullptr ? found : dlsym(RTLD_DEFAULT, name);
}

bool runs_on_gpu(const runtime::Program& program) {
  return std::any_of(program.tensors.begin(), program.tensors.end(),
                     [](const runtime::TensorSlot& slot) { return slot.device.kind == DeviceKind::Cuda; });
}

}  // namespace

Executor::Executor(driver::Compiled compiled, std::vector<at::Tensor> constants, FrozenWeights* frozen)
    : compiled_(std::move(compiled)),
      constants_(std::move(constants)),
      frozen_(frozen),
      on_gpu_(runs_on_gpu(program())) {
  CRESSET_CHECK(constants_.size() == program().constants.size(), "a program was given the wrong number of constants");
}

Executor::~Executor() = default;

std::unique_ptr<BoundContext> Executor::check_out(c10::ArrayRef<int64_t> symbols) {
  {
    const std::lock_guard lock(mutex_);
    ++stats_.calls;
    for (size_t i = idle_.size(); i-- > 0;) {
      if (idle_[i]->symbols() != symbols) continue;
      std::unique_ptr<BoundContext> context = std::move(idle_[i]);
      idle_.erase(idle_.begin() + static_cast<ptrdiff_t>(i));
      return context;
    }
    ++stats_.contexts_bound;
  }
  CRESSET_CHECK(symbols.size() == program().symbols.size(), "a program was given the wrong number of symbols");
  return std::make_unique<BoundContext>(program(), constants_, symbols, frozen_, compiled_.cuda_graphs);
}

void Executor::check_in(std::unique_ptr<BoundContext> context) {
  std::unique_ptr<BoundContext> evicted;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  ContextStats& stats = context->stats();
  stats_.restride_copies += stats.restride_copies;
  stats_.adopted_results += stats.adopted;
  const bool recorded = stats.recordings != 0;
  stats = {};
  stats_.arena_bytes = context->arena_bytes();
  stats_.peak_arena_bytes = std::max(stats_.peak_arena_bytes, stats_.arena_bytes);
  idle_.push_back(std::move(context));
  if (recorded) drop_old_graphs();
  if (idle_.size() <= kIdleContexts) return;
  evicted = std::move(idle_.front());
  idle_.erase(idle_.begin());
}

// Graphs stay for the sizes used last.
void Executor::drop_old_graphs() {
  size_t nodes = 0;
  for (size_t i = idle_.size(); i-- > 0;) {
    GraphReplay* const graphs = idle_[i]->graphs();
    const size_t own = graphs == nullptr ? 0 : graphs->nodes();
    nodes += own;
    if (own != 0 && nodes > kGraphNodes && i + 1 < idle_.size()) graphs->give_up_for_a_while();
  }
}

std::string Executor::graph_state() const {
  const std::lock_guard lock(mutex_);
  GraphReplay* const graphs = idle_.empty() ? nullptr : idle_.back()->graphs();
  return graphs == nullptr ? "" : graphs->state();
}

struct Executor::CheckedOut {
  Executor& executor;
  std::unique_ptr<BoundContext> context;
  ~CheckedOut() { executor.check_in(std::move(context)); }
};

// Raises the errors of indices out of range. Only the first call of a program waits for its own.
template <class Call>
std::vector<at::Tensor> Executor::watched(BoundContext& context, Call&& call) {
  if (on_gpu_) raise_reported();
  std::vector<at::Tensor> results = call();
  if (program().index_sites.empty()) return results;
  if (!waited_.exchange(true)) context.wait_for_reports();
  raise_reported();
  return results;
}

std::vector<at::Tensor> Executor::run(c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<int64_t> symbols) {
  const CheckedOut out{*this, check_out(symbols)};
  return watched(*out.context, [&] { return out.context->run(inputs); });
}

std::vector<at::Tensor> Executor::run_releasing(std::vector<at::Tensor> inputs, c10::ArrayRef<int64_t> symbols) {
  const CheckedOut out{*this, check_out(symbols)};
  return watched(*out.context, [&] { return out.context->run_releasing(std::move(inputs)); });
}

ExecutorStats Executor::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Executor::drop_contexts() {
  std::vector<std::unique_ptr<BoundContext>> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(idle_);
}

void configure_codegen() {
  static const bool once = [] {
    codegen::cpu::CpuOptions options;
    options.resolver = find_symbol;
    codegen::cpu::CpuBackend::get().configure(options);
    return true;
  }();
  static_cast<void>(once);
}

void trim_memory() {
  ArenaPool::get().trim();
  GraphMemory::trim();
  trim_result_memory();
}

}  // namespace cresset::bridge
