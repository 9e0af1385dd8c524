#include "lower/memory_plan.h"

#include <algorithm>

#include "lower/generalize.h"
#include "lower/in_place.h"
#include "lower/lifetimes.h"

namespace cresset::lower {
namespace {

using runtime::Home;
using runtime::Launch;
using runtime::Program;
using runtime::TensorId;

// Releases tensors allocated by ATen after the last step which needs them.
void add_releases(Program& program, const std::vector<Lifetime>& lives) {
  std::vector<std::vector<TensorId>> dead(program.steps.size());
  for (uint32_t t = 0; t < program.tensors.size(); ++t)
    if (program.tensors[t].home == Home::Extern && lives[t].used() && lives[t].last < Lifetime::kEnd)
      dead[lives[t].last].push_back({t});
  std::vector<runtime::Step> steps;
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    steps.push_back(std::move(program.steps[s]));
    if (!dead[s].empty()) steps.emplace_back(runtime::Release{std::move(dead[s])});
  }
  program.steps = std::move(steps);
}

}  // namespace

void plan_memory(const std::vector<Alias>& aliases, SizeTable& sizes, Lowered& lowered) {
  Program& program = lowered.program;
  const std::vector<Lifetime> lives = lifetimes(program, aliases);
  const std::vector<TensorId> shares = reuse_in_place(sizes, lives, aliases, lowered);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    runtime::TensorSlot& slot = program.tensors[t];
    slot.continues = shares[t];
    slot.first_step = lives[t].first;
    slot.last_step = lives[t].last;
  }
  add_releases(program, lives);
  Generalized generalized;
  for (runtime::Step& step : program.steps) {
    auto* launch = std::get_if<Launch>(&step);
    if (launch == nullptr) continue;
    const GeneralKernel& general = generalized.of(lowered.kernels[launch->kernel]);
    lowered.kernels[launch->kernel] = general.kernel;
    launch->symbols = sizes.refs(general.arguments);
  }
}

}  // namespace cresset::lower
