#include "compile/compile.h"

#include <chrono>
#include <unordered_set>

#include "base/log.h"
#include "base/options.h"
#include "compile/code_for_devices.h"
#include "compile/graph_taker.h"
#include "compile/program_cache.h"
#include "lower/lower.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "runtime/verify.h"

namespace cresset::driver {
namespace {

class Stopwatch {
 public:
  // Milliseconds since the last lap.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void verify_lowered(const lower::Lowered& lowered) {
  for (const auto& kernel : lowered.kernels) {
    const std::string error = loop::verify(*kernel);
    CRESSET_CHECK(error.empty(), error + "\n" + loop::print(*kernel));
  }
  const std::string error = runtime::verify(lowered.program);
  CRESSET_CHECK(error.empty(), error + "\n" + runtime::print(lowered.program));
}

void count(const runtime::Program& program, size_t kernels, size_t distinct, Stats& stats) {
  stats.kernels = static_cast<int64_t>(kernels);
  stats.distinct_kernels = static_cast<int64_t>(distinct);
  for (const runtime::Step& step : program.steps)
    stats.extern_calls += std::holds_alternative<runtime::ExternCall>(step);
}

class FromDisk final : public Deferred {
 public:
  explicit FromDisk(Compiled compiled) : compiled_(std::move(compiled)) {
    std::unordered_set<const runtime::CompiledKernel*> distinct;
    for (const auto& kernel : compiled_.program.kernels) distinct.insert(kernel.get());
    count(compiled_.program, compiled_.program.kernels.size(), distinct.size(), compiled_.stats);
    CRESSET_LOG(Program, runtime::print(compiled_.program));
  }
  const Stats& stats() const override { return compiled_.stats; }
  Result<Compiled> finish() override { return std::move(compiled_); }

 private:
  Compiled compiled_;
};

class Scheduled final : public Deferred {
 public:
  static Result<std::unique_ptr<Deferred>> make(lower::Lowered lowered, const Stats& stats, ProgramCache::Entry entry,
                                                const Options& options) {
    Stopwatch watch;
    std::vector<const loop::Kernel*> kernels;
    for (const auto& kernel : lowered.kernels) kernels.push_back(kernel.get());
    CRESSET_TRY(CodeForDevices code, CodeForDevices::schedule(lowered.program, kernels));
    std::unique_ptr<Scheduled> made(new Scheduled(std::move(lowered), std::move(entry), std::move(code)));
    std::vector<std::string>& titles = made->lowered_.program.kernel_text;  // empty: nobody reads them
    for (size_t i = 0; i < titles.size(); ++i) {
      titles[i] = "# " + titles[i] + "\n" + loop::print(*kernels[i]);
      CRESSET_LOG(Kernels, titles[i]);
    }
    made->compiled_.stats = stats;
    made->compiled_.cuda_graphs = options.cuda_graphs;
    made->compiled_.taker = options.taker;
    made->compiled_.stats.ms_codegen = watch.lap();
    count(made->lowered_.program, kernels.size(), made->code_.distinct(), made->compiled_.stats);
    return std::unique_ptr<Deferred>(std::move(made));
  }
  const Stats& stats() const override { return compiled_.stats; }

  Result<Compiled> finish() override {
    Stopwatch watch;
    CRESSET_TRY(lowered_.program.kernels, code_.generate());
    compiled_.program = std::move(lowered_.program);
    compiled_.stats.ms_codegen += watch.lap();
    entry_.store(compiled_);
    CRESSET_LOG(Program, runtime::print(compiled_.program));
    return std::move(compiled_);
  }

 private:
  Scheduled(lower::Lowered lowered, ProgramCache::Entry entry, CodeForDevices code)
      : lowered_(std::move(lowered)), entry_(std::move(entry)), code_(std::move(code)) {}

  lower::Lowered lowered_;
  ProgramCache::Entry entry_;
  CodeForDevices code_;
  Compiled compiled_;
};

}  // namespace

Result<Compiled> compile(std::unique_ptr<graph::Graph> graph, const Options& options) {
  CRESSET_TRY(const std::unique_ptr<Deferred> deferred, defer(std::move(graph), options));
  return deferred->finish();
}

Result<std::unique_ptr<Deferred>> defer(std::unique_ptr<graph::Graph> graph, const Options& options) {
  Stats stats;
  stats.nodes_captured = static_cast<int64_t>(graph->order.size());

  Stopwatch watch;
  const std::shared_ptr<sym::ShapeEnv> env = graph->env_ptr();
  // Taken before the load, which may record guards even if the program on disk turns out to be unusable.
  const sym::Asked before = sym::asked(*env);
  if (options.taker != nullptr) options.taker->take(*graph);
  const ProgramCache cache(*graph, options);
  if (std::optional<Compiled> kept = cache.load(*graph)) {
    kept->stats.nodes_captured = stats.nodes_captured;
    kept->stats.ms_codegen = watch.lap();
    kept->cuda_graphs = options.cuda_graphs;
    return std::unique_ptr<Deferred>(std::make_unique<FromDisk>(*std::move(kept)));
  }
  passes::run(*graph, options);
  stats.nodes_after_passes = static_cast<int64_t>(graph->order.size());
  stats.ms_passes = watch.lap();
  CRESSET_LOG(Passes, "the graph after them\n" + graph::print(*graph));

  CRESSET_TRY(lower::Lowered lowered, lower::lower(*graph, options));
  if (option_flag(Option::VERIFY)) verify_lowered(lowered);
  stats.ms_lower = watch.lap();
  ProgramCache::Entry entry = cache.entry(stats, *env, before);
  return Scheduled::make(std::move(lowered), stats, std::move(entry), options);
}

}  // namespace cresset::driver
