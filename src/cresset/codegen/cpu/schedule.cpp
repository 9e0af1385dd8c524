#include "codegen/cpu/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace cresset::codegen::cpu {
namespace {

using loop::Kernel;
using loop::Op;
using loop::Scalar;

constexpr int64_t kPointwiseBlock = 4096;    // elements in a work item of a pointwise kernel
constexpr double kGatherLoss = 2;            // cost of gathered bytes relative to contiguous bytes
constexpr int kLeastGathered = 4;            // bytes: narrower elements are gathered no faster
constexpr int64_t kMostStrided = 4;          // elements between lanes in accesses by whole vectors
constexpr int64_t kLongReduction = 1 << 18;  // inner points from which float sums have two levels of totals

class Scheduler : Planner {
 public:
  Scheduler(const Kernel& kernel, int vector_bits) : Planner(kernel, out_) { out_.width = vector_bits / 32; }

  Schedule run() {
    collapse();
    choose_vector_loop();
    find_live();
    choose_tile();
    find_levels();
    plan_passes();
    choose_unroll();
    size_work();
    prove_unsigned();
    return std::move(out_);
  }

 private:
  // Returns the bytes accessed with unit or small strides along `loop`. A store counts double, since scattering costs
  // more than gathering. In kernels with rows, accesses at row level are ignored, because rows may have any number of
  // points. Reads with large or irregular strides then count against the loop. Along another loop they may be
  // contiguous, or uniform across lanes.
  double unit_stride_bytes(const Loop& loop) {
    const bool has_rows = !space().inner.empty();
    double votes = 0;
    auto vote = [&](ExprId e, DType dtype, double weight, bool is_point) {
      sym::ExprPool::Affine form;
      if (has_rows && !is_point) return;
      if (!e.valid() || !pool_.uses_var(e, loop.var)) return;
      const bool affine = pool_.affine_in(e, loop.var, form);
      if (!affine && !cuts_lanes(e, loop)) return;
      const bool known = affine && pool_.is_const(form.coefficient);
      const int64_t apart = known ? std::abs(pool_.const_value(form.coefficient)) : 0;
      if (apart >= 1 && apart <= kMostStrided)
        votes += weight * static_cast<double>(byte_size(dtype)) / static_cast<double>(apart);
      else if (has_rows)
        votes -= kGatherLoss * std::max(kLeastGathered, static_cast<int>(byte_size(dtype)));
    };
    for (size_t i = 0; i < count(); ++i) {
      if (scalar(i).op != Op::Load) continue;
      vote(space().scalar[i], kernel_.buffers[scalar(i).buffer.index].dtype, 1, out_.analysis.is_point[i] != 0);
    }
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      const DType dtype = kernel_.buffers[kernel_.stores[i].buffer.index].dtype;
      vote(space().store[i], dtype, 2, out_.analysis.store_is_point[i] != 0);
    }
    return std::max(votes, 0.0);
  }

  // Whether `e` divides the loop's variable by a number smaller than the vector width.
  bool cuts_lanes(ExprId e, const Loop& loop) {
    const sym::Kind kind = pool_[e].kind;
    const std::vector<ExprId> operands(pool_.operands(e).begin(), pool_.operands(e).end());
    const bool divides = kind == sym::Kind::FloorDiv || kind == sym::Kind::Mod;
    if (divides && pool_.uses_var(operands[0], loop.var) && pool_.is_const(operands[1]) &&
        pool_.const_value(operands[1]) < out_.width)
      return true;
    return std::any_of(operands.begin(), operands.end(), [&](ExprId operand) { return cuts_lanes(operand, loop); });
  }

  // Whether the steps of an outer loop are rows whose single result elements are adjacent, and whose reads are uniform
  // or adjacent across rows. With a vector of rows, every point is then read once for all lanes, and no fold across
  // lanes ends a row. Rows may be shorter than a vector, but the number of rows may not. Without another outer loop
  // there would be too few work items.
  bool shares_reads(const Loop& loop) {
    if (space().inner.empty() || space().outer.size() < 2) return false;
    if (!pool_.is_const(loop.extent) || pool_.const_value(loop.extent) < out_.width) return false;
    const auto steps_by = [&](ExprId e, int64_t step) {
      sym::ExprPool::Affine form;
      return !e.valid() || (pool_.affine_in(e, loop.var, form) && pool_.is_const(form.coefficient, step));
    };
    for (size_t i = 0; i < count(); ++i) {
      const ExprId at = space().scalar[i];
      if (scalar(i).op != Op::Load || !at.valid() || !out_.analysis.is_point[i]) continue;
      if (pool_.uses_var(at, loop.var) && !steps_by(at, 1)) return false;
    }
    for (size_t i = 0; i < kernel_.stores.size(); ++i)
      if (out_.analysis.store_is_point[i] || !steps_by(space().store[i], 1)) return false;
    return true;
  }

  // The decision applies to all sizes, so it uses constants but no hints, which describe only the first call.
  double score(const Loop& loop) {
    const double lanes = pool_.is_const(loop.extent) ? static_cast<double>(pool_.const_value(loop.extent)) : out_.width;
    return (unit_stride_bytes(loop) + 0.01) * std::min(1.0, lanes / out_.width);
  }

  void choose_vector_loop() {
    const Loop* best = nullptr;
    double best_score = -1;
    for (const auto* list : {&space().inner, &space().outer}) {
      for (auto it = list->rbegin(); it != list->rend(); ++it) {
        const double s = !it->inner && shares_reads(*it) ? std::numeric_limits<double>::infinity() : score(*it);
        if (s > best_score) best = &*it, best_score = s;
      }
    }
    set_loops(*best);
  }

  // Whether load i has unit stride along loop `along`, and larger steps along the vector loop.
  bool crosses(size_t i, const Loop& along) {
    constexpr int64_t kWidestElement = 4;
    const Scalar& s = scalar(i);
    sym::ExprPool::Affine by_vector, by_tile;
    if (!out_.live[i] || s.op != Op::Load || s.a.valid()) return false;
    if (byte_size(kernel_.buffers[s.buffer.index].dtype) > kWidestElement) return false;
    bool indirect = false;
    loop::for_each_bound_scalar(kernel_, s.expr, [&](ScalarId) { indirect = true; });
    const ExprId e = space().scalar[i];
    if (indirect || !pool_.affine_in(e, vector_var(), by_vector) || !pool_.affine_in(e, along.var, by_tile))
      return false;
    const ExprId step = by_vector.coefficient;
    const bool steps = !pool_.is_const(step) || std::abs(pool_.const_value(step)) > kMostStrided;
    return steps && pool_.is_const(by_tile.coefficient, 1) && !pool_.uses_var(by_vector.coefficient, along.var);
  }

  void choose_tile() {
    out_.tiled.assign(count(), 0);
    if (out_.first_inner() != out_.loops.size()) return;
    size_t most = 0;
    for (size_t k = 0; k < out_.vector; ++k) {
      const ExprId extent = out_.loops[k].extent;
      const bool short_loop = pool_.is_const(extent) && pool_.const_value(extent) < out_.width / 2;
      size_t found = 0;
      for (size_t i = 0; i < count(); ++i) found += crosses(i, out_.loops[k]);
      if (short_loop || found <= most) continue;
      most = found;
      out_.tile = k;
    }
    for (size_t i = 0; i < count() && out_.has_tile(); ++i) out_.tiled[i] = crosses(i, out_.loops[out_.tile]);
  }

  // Whether lanes read distant elements one by one, in rows which fit in caches.
  bool is_gathered(size_t i) {
    constexpr int64_t kMostKept = 1 << 16;
    if (scalar(i).op != Op::Load) return false;
    const int64_t rows = out_.vector_is_inner() ? 1 : out_.width;
    if (env_.typical_or(product_of(/*inner=*/true, /*with_vector=*/true), kMostKept) * rows >= kMostKept) return false;
    const ExprId step = out_.scalar_index[i].coefficient;
    return !step.valid() || !pool_.is_const(step) || std::abs(pool_.const_value(step)) > kMostStrided;
  }

  // Values which are expensive to compute or to read, and needed in more than one pass, go through scratch. Spilling a
  // value may make the recomputation of another unnecessary. Values are therefore considered one at a time, latest in
  // dependence order first.
  void plan_passes() {
    for (size_t i = count(); i-- > 0;) {
      if (!out_.live[i] || !out_.is_vector[i] || !(is_heavy(scalar(i).op) || is_gathered(i))) continue;
      std::vector<uint16_t> passes;
      for (uint16_t p = 0; p <= out_.analysis.stages; ++p)
        if (needed_in(p)[i]) passes.push_back(p);
      if (passes.size() < 2) continue;
      out_.spilled.push_back({static_cast<uint32_t>(i)});
      out_.spilled_first.push_back(passes[0]);
    }
    for (uint16_t p = 0; p <= out_.analysis.stages; ++p) out_.needed.push_back(needed_in(p));
  }

  // Several vectors at once give independent chains of dependent folds. Heavy bodies are parallel enough and would only
  // spill registers.
  void choose_unroll() {
    int cost = 0;
    bool has_doubles = false;  // or other values of 8 bytes, of which a vector takes two registers
    for (size_t i = 0; i < count(); ++i) {
      if (!out_.live[i] || scalar(i).op == Op::Const) continue;
      has_doubles |= out_.is_vector[i] != 0 && byte_size(scalar(i).dtype) == 8;
      has_doubles |= scalar(i).op == Op::Reduce && byte_size(scalar(i).dtype) == 8;  // the indices of ArgMax and ArgMin
      cost += is_heavy(scalar(i).op) ? 8 : 1;
    }
    const bool reduces = out_.analysis.stages > 0;
    out_.unroll = cost <= 10 ? (reduces ? 4 : 2) : cost <= 24 ? 2 : 1;
    if (out_.has_tile()) out_.unroll = 1;
    if (has_doubles && out_.unroll > 1) out_.unroll /= 2;
    const ExprId known = out_.loops[out_.vector].extent;
    while (out_.unroll > 1 && pool_.is_const(known) && pool_.const_value(known) < out_.width * out_.unroll)
      out_.unroll /= 2;
    // A constant extent, such as a hidden size, often needs no tail at all.
    if (pool_.is_const(known) && pool_.const_value(known) % out_.width == 0 && out_.vector_is_inner())
      while (pool_.const_value(known) % (out_.width * out_.unroll) != 0) out_.unroll /= 2;
    if (pool_.is_const(out_.loops[out_.vector].extent, 1)) out_.width = out_.unroll = 1;
    // Masks are free next to a long body where the machine has mask registers, and half the code compiles in half the
    // time.
    constexpr int kWidthWithMasks = 16;
    const bool sequential_inside = !out_.vector_is_inner() && out_.first_inner() != out_.loops.size();
    out_.masked = out_.width > 1 && (sequential_inside || (out_.unroll == 1 && out_.width == kWidthWithMasks));
  }

  // A work item: a block of the tile loop times a block of the vector loop. Each row of the block reads whole cache
  // lines and each column writes whole cache lines, few enough to stay in the caches.
  void size_tiles() {
    constexpr int64_t kBlock = 64;
    out_.tile_block = out_.block = kBlock;
    ExprId others = pool_.constant(1);
    for (size_t k = 0; k < out_.loops.size(); ++k)
      if (k != out_.vector && k != out_.tile) others = pool_.mul(others, out_.loops[k].extent);
    const ExprId height = pool_.constant(out_.tile_block), block = pool_.constant(out_.block);
    const ExprId columns = out_.loops[out_.vector].extent, rows = out_.loops[out_.tile].extent;
    out_.work_items = pool_.mul(others, pool_.mul(pool_.ceil_div(rows, height), pool_.ceil_div(columns, block)));
    out_.item_cost = pool_.mul(pool_.min(rows, height), pool_.min(columns, block));
    out_.scratch_bytes = pool_.constant(0);
  }

  void size_work() {
    if (out_.has_tile()) return size_tiles();
    const Loop& vector = out_.loops[out_.vector];
    const bool pointwise = out_.first_inner() == out_.loops.size();
    out_.block = pointwise ? kPointwiseBlock : static_cast<int64_t>(out_.width) * out_.unroll;
    int64_t weight = 1;
    for (size_t i = 0; i < count(); ++i)
      if (out_.live[i] && is_heavy(scalar(i).op)) weight += 4;
    const ExprId inner = product_of(/*inner=*/true, /*with_vector=*/true);
    const ExprId block = pool_.constant(out_.block), passes = pool_.constant(weight * (out_.analysis.stages + 1));
    out_.sum_levels = env_.typical_or(inner, 0) >= kLongReduction ? 2 : 1;
    out_.work_items = product_of(/*inner=*/false, /*with_vector=*/true);
    out_.item_cost = pool_.mul(inner, passes);
    if (!vector.inner) {
      out_.work_items = pool_.mul(product_of(false, false), pool_.ceil_div(vector.extent, block));
      out_.item_cost = pool_.mul(out_.item_cost, pool_.min(vector.extent, block));
    }
    const int64_t lanes = static_cast<int64_t>(out_.width) * out_.unroll;
    const ExprId slots =
        vector.inner ? pool_.add(inner, pool_.constant(lanes)) : pool_.mul(inner, pool_.constant(lanes));
    out_.scratch_bytes = pool_.mul(slots, pool_.constant(8 * static_cast<int64_t>(out_.spilled.size())));
  }

  Schedule out_;
};

}  // namespace

Schedule make_schedule(const Kernel& kernel, int vector_bits) { return Scheduler(kernel, vector_bits).run(); }

std::string schedule_text(const Kernel& kernel, const Schedule& s) {
  return fmt::format("vector {} width {} unroll {} masked {} block {} by {} sums {}\n", s.vector, s.width, s.unroll,
                     s.masked, s.block, s.tile_block, s.sum_levels) +
         plan_text(kernel, s);
}

std::string describe(const Kernel& kernel, const Schedule& s) {
  std::string out = "schedule:";
  for (size_t k = 0; k < s.loops.size(); ++k) {
    const char* lanes = k == s.vector ? "vector " : k == s.tile ? "tile " : "";
    out += fmt::format(" {}{}[{}]", lanes, s.loops[k].inner ? "inner" : "outer",
                       kernel.env().to_string(s.loops[k].extent));
  }
  return out +
         fmt::format("; {} x {} lanes{}, {} spilled\n", s.width, s.unroll, s.masked ? " masked" : "", s.spilled.size());
}

}  // namespace cresset::codegen::cpu
