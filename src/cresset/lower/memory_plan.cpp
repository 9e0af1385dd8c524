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

constexpr int64_t kAlignment = 64;
// A free block is taken when it is at most this much smaller or larger than needed, by hints.
constexpr int64_t kStretch = 2;

struct Block {
  std::vector<sym::ExprId> bytes;  // the greatest of these
  int64_t hint = 0;
  uint32_t free_from = 0;  // the first step that may use it
};

class ArenaPlanner {
 public:
  ArenaPlanner(sym::ShapeEnv& env, SizeTable& sizes, Program& program, const std::vector<Lifetime>& lives,
               const std::vector<TensorId>& shares)
      : env_(env),
        sizes_(sizes),
        program_(program),
        lives_(lives),
        shares_(shares),
        block_of_(program.tensors.size(), 0) {}

  void run() {
    std::vector<uint32_t> tensors;
    for (uint32_t t = 0; t < program_.tensors.size(); ++t)
      if (program_.tensors[t].home == Home::Arena && lives_[t].used() && !continues_a_call(t)) tensors.push_back(t);
    std::stable_sort(tensors.begin(), tensors.end(),
                     [&](uint32_t a, uint32_t b) { return lives_[a].first < lives_[b].first; });
    for (uint32_t t : tensors) assign(t);
    lay_out(tensors);
  }

 private:
  // In memory that an extern call allocates: no place of its own.
  bool continues_a_call(uint32_t t) const {
    while (shares_[t].valid()) t = shares_[t].index;
    return program_.tensors[t].home == Home::Extern;
  }
  void assign(uint32_t t) {
    const sym::ExprId bytes = sizes_.expr(program_.tensors[t].bytes);
    const uint32_t b = shares_[t].valid() ? block_of_[shares_[t].index] : choose(bytes, lives_[t].first);
    blocks_[b].free_from = std::max(blocks_[b].free_from, lives_[t].last + 1);
    block_of_[t] = b;
  }
  uint32_t choose(sym::ExprId bytes, uint32_t step) {
    const int64_t hint = env_.hint_or(bytes, 1 << 16);
    std::optional<uint32_t> best;
    int64_t best_waste = 0;
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      const Block& block = blocks_[b];
      if (block.free_from > step) continue;
      if (std::find(block.bytes.begin(), block.bytes.end(), bytes) != block.bytes.end()) return b;
      const int64_t waste = block.hint >= hint ? block.hint - hint : hint - block.hint;
      if (block.hint > hint * kStretch || hint > block.hint * kStretch) continue;
      if (!best || waste < best_waste) best = b, best_waste = waste;
    }
    if (!best) {
      blocks_.push_back({{bytes}, hint, 0});
      return static_cast<uint32_t>(blocks_.size() - 1);
    }
    enlarge(blocks_[*best].bytes, bytes);
    blocks_[*best].hint = std::max(blocks_[*best].hint, hint);
    return *best;
  }
  // Which of two sizes is greater is asked of ranges alone: a proof costs far more than the maximum of the two at a
  // call.
  void enlarge(std::vector<sym::ExprId>& sizes, sym::ExprId bytes) {
    const auto at_most = [&](sym::ExprId a, sym::ExprId b) { return env_.range(env_.pool().sub(b, a)).lo >= 0; };
    if (std::any_of(sizes.begin(), sizes.end(), [&](sym::ExprId s) { return at_most(bytes, s); })) return;
    std::erase_if(sizes, [&](sym::ExprId s) { return at_most(s, bytes); });
    sizes.push_back(bytes);
  }
  void lay_out(const std::vector<uint32_t>& tensors) {
    sym::ExprPool& pool = env_.pool();
    std::vector<sym::ExprId> offsets;
    sym::ExprId end = pool.constant(0);
    for (const Block& block : blocks_) {
      offsets.push_back(end);
      sym::ExprId bytes = block.bytes[0];
      for (const sym::ExprId other : block.bytes) bytes = pool.max(bytes, other);
      const sym::ExprId lines = pool.ceil_div(bytes, pool.constant(kAlignment));
      end = pool.add(end, pool.mul(lines, pool.constant(kAlignment)));
    }
    for (uint32_t t : tensors) program_.tensors[t].arena_offset = sizes_.ref_as_is(offsets[block_of_[t]]);
    program_.arena_bytes = sizes_.ref_as_is(end);
  }

  sym::ShapeEnv& env_;
  SizeTable& sizes_;
  Program& program_;
  const std::vector<Lifetime>& lives_;
  const std::vector<TensorId>& shares_;
  std::vector<uint32_t> block_of_;
  std::vector<Block> blocks_;
};

// Gives tensors that ATen allocated back after the last step that needs them.
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

void plan_memory(sym::ShapeEnv& env, const std::vector<Alias>& aliases, SizeTable& sizes, Lowered& lowered) {
  Program& program = lowered.program;
  const std::vector<Lifetime> lives = lifetimes(program, aliases);
  const std::vector<TensorId> shares = reuse_in_place(sizes, lives, lowered);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) program.tensors[t].continues = shares[t];
  ArenaPlanner(env, sizes, program, lives, shares).run();
  add_releases(program, lives);
  for (runtime::Step& step : program.steps) {
    auto* launch = std::get_if<Launch>(&step);
    if (launch == nullptr) continue;
    GeneralKernel general = generalize(*lowered.kernels[launch->kernel]);
    lowered.kernels[launch->kernel] = std::move(general.kernel);
    launch->symbols = sizes.refs(general.arguments);
  }
}

}  // namespace cresset::lower
