#include "compile/compile.h"

#include <chrono>
#include <unordered_set>

#include "base/log.h"
#include "base/options.h"
#include "codegen/codegen.h"
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

void count(const runtime::Program& program, Stats& stats) {
  std::unordered_set<const codegen::CompiledKernel*> distinct;
  for (const auto& kernel : program.kernels) distinct.insert(kernel.get());
  stats.kernels = static_cast<int64_t>(program.kernels.size());
  stats.distinct_kernels = static_cast<int64_t>(distinct.size());
  for (const runtime::Step& step : program.steps)
    stats.extern_calls += std::holds_alternative<runtime::ExternCall>(step);
}

}  // namespace

Result<Compiled> compile(std::unique_ptr<graph::Graph> graph, const Options& options) {
  Compiled compiled;
  Stats& stats = compiled.stats;
  stats.nodes_captured = static_cast<int64_t>(graph->order.size());
  CRESSET_LOG(Graph, "captured\n" + graph::print(*graph));

  Stopwatch watch;
  const ProgramCache cache(*graph, options);
  if (std::optional<Compiled> kept = cache.load(*graph)) {
    kept->stats.nodes_captured = stats.nodes_captured;
    kept->stats.ms_codegen = watch.lap();
    count(kept->program, kept->stats);
    CRESSET_LOG(Program, runtime::print(kept->program));
    return *std::move(kept);
  }
  const std::shared_ptr<sym::ShapeEnv> env = graph->env_ptr();
  const size_t guards_before = env->guards().size();
  passes::run(*graph, options);
  stats.nodes_after_passes = static_cast<int64_t>(graph->order.size());
  stats.ms_passes = watch.lap();

  CRESSET_TRY(lower::Lowered lowered, lower::lower(*graph, options));
  if (option_flag(Option::VERIFY)) verify_lowered(lowered);
  stats.ms_lower = watch.lap();

  std::vector<const loop::Kernel*> kernels;
  for (const auto& kernel : lowered.kernels) kernels.push_back(kernel.get());
  CRESSET_TRY(lowered.program.kernels, codegen::CpuCodegen::get().compile(kernels));
  compiled.program = std::move(lowered.program);
  stats.ms_codegen = watch.lap();
  count(compiled.program, stats);
  cache.store(compiled, *env, guards_before);

  if (log::enabled(log::Area::Kernels)) {
    for (const loop::Kernel* kernel : kernels) {
      compiled.program.kernel_text.push_back(loop::print(*kernel));
      log::write(log::Area::Kernels, compiled.program.kernel_text.back());
    }
  }
  CRESSET_LOG(Program, runtime::print(compiled.program));
  return compiled;
}

}  // namespace cresset::driver
