#include <fmt/format.h>

#include <chrono>
#include <span>

#include "base/check.h"
#include "base/log.h"
#include "base/options.h"
#include "passes/passes.h"

namespace cresset::passes {
namespace {

struct Pass {
  std::string_view name;
  bool (*run)(graph::Graph&);
  bool rounds_less = false;  // keeps more digits than eager mode between operators: excluded under eager_rounding
};

// Decomposition produces casts, views and repeated subexpressions, so cleaning follows it. The first cleaning avoids
// decompositions of dead nodes.
constexpr Pass kCleaning[] = {
    {"dead_code", dead_code},
    {"decompose", decompose},
    {"remove_no_ops", remove_no_ops},
    {"fold_constants", fold_constants},
    {"common_subexpressions", common_subexpressions},
    {"remove_no_ops", remove_no_ops},
    {"dead_code", dead_code},
};
// Layouts are chosen last, so that no pass undoes them.
constexpr Pass kForLibraries[] = {
    {"grouped_attention", grouped_attention},
    {"extern_epilogue", extern_epilogue, /*rounds_less=*/true},
    {"channels_last", channels_last},
};

void verify_after(const graph::Graph& graph, std::string_view stage) {
  const std::string error = graph::verify(graph);
  CRESSET_CHECK(error.empty(), fmt::format("after {}: {}\n{}", stage, error, graph::print(graph)));
}

void run(std::span<const Pass> passes, graph::Graph& graph, const driver::Options& options) {
  const bool verify = option_flag(Option::VERIFY);
  for (const Pass& pass : passes) {
    if (pass.rounds_less && options.eager_rounding) continue;
    const auto start = std::chrono::steady_clock::now();
    const bool changed = pass.run(graph);
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
    CRESSET_LOG(Passes, fmt::format("{}: {:.0f} us, {} nodes{}", pass.name, spent.count(), graph.order.size(),
                                    changed ? "" : ", no change"));
    if (verify && changed) verify_after(graph, pass.name);
  }
}

}  // namespace

void clean(graph::Graph& graph, const driver::Options& options) { run(kCleaning, graph, options); }

void run(graph::Graph& graph, const driver::Options& options) {
  if (option_flag(Option::VERIFY)) verify_after(graph, "capture");
  clean(graph, options);
  run(kForLibraries, graph, options);
}

}  // namespace cresset::passes
